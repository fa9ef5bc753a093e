"""BLEU and chrF of plain text, as the history of a training has them."""

from collections.abc import Sequence


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """`valid_bleu` and `valid_chrf` (0 to 100) of detokenised lines, with sacrebleu's default signatures."""
    from sacrebleu.metrics import BLEU, CHRF

    return {
        "valid_bleu": BLEU().corpus_score(list(hypotheses), [list(references)]).score,
        "valid_chrf": CHRF().corpus_score(list(hypotheses), [list(references)]).score,
    }
