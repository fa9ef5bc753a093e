"""BLEU and chrF of translations by sacrebleu, with signatures.

`bleu`, `chrf` and `chrf++` are for plain, cased text with sacrebleu's defaults (natural_bias, section 4.1).
`bleu_tokenised` is the older score that agg and agps print: BLEU of Moses tokens with words split at hyphens, in
references too (the authors' `compound_split_bleu.sh`). It is higher for German, depends on the tokeniser, and
is not comparable with `bleu`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from raretok import __version__


@dataclass(frozen=True)
class Score:
    """A number from 0 to 100, and sacrebleu's signature."""

    value: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU of plain text, one reference per sentence."""
    return _score(BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str], word_order: int = 0) -> Score:
    """chrF of plain text, one reference per sentence; with `word_order` 2, chrF++, which also counts word n-grams."""
    return _score(CHRF(word_order=word_order), hypotheses, references)


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU of tokens between spaces, without smoothing, like Moses' multi-bleu.perl.

    Both sides are Moses tokens with compounds split (`data.pairs.preparation.split_compounds`).
    """
    # force: suppresses sacrebleu's warning about tokenised text, which is intended here.
    score = _score(BLEU(tokenize="none", smooth_method="none", force=True), hypotheses, references)
    return Score(score.value, f"moses|compounds:split|{score.signature}")


def _score(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The metric over all sentences; raises ValueError unless there is one reference per hypothesis."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses do not fit {len(references)} references")
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(value, f"{metric.get_signature()}|raretok:{__version__}")
