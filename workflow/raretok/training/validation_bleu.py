"""BLEU and chrF of plain text for the history of a training."""

from collections.abc import Sequence


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """`valid_bleu` and `valid_chrf` (0 to 100) of detokenised lines, as sacrebleu computes them by default."""
    found = _scored(hypotheses, references)
    return {split: score for split, (score, _) in found.items()}


def signatures() -> dict[str, str]:
    """sacrebleu's signatures of `scores`, by split."""
    found = _scored(["a"], ["a"])
    return {split: signature for split, (_, signature) in found.items()}


def _scored(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, tuple[float, str]]:
    """Score and signature by split; sacrebleu has no signature before it has seen references."""
    from sacrebleu.metrics import BLEU, CHRF

    found = {}
    for split, metric in (("valid_bleu", BLEU()), ("valid_chrf", CHRF())):
        score = metric.corpus_score(list(hypotheses), [list(references)]).score
        found[split] = score, str(metric.get_signature())
    return found
