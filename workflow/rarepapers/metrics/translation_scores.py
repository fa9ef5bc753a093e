"""BLEU and chrF of translations by sacrebleu, with signatures.

`bleu`, `chrf` and `chrf++` are for plain text with sacrebleu's defaults (natural_bias, section 4.1).
`bleu_tokenised` is the older score that agg and agps print: BLEU of Moses tokens with words split at hyphens, in
references too (the authors' `compound_split_bleu.sh`). It is higher for German, depends on the tokeniser, and
is not comparable with `bleu`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric

from rarepapers.core.errors import UserError
from raretok import __version__


@dataclass(frozen=True)
class Score:
    """A number from 0 to 100, and sacrebleu's signature."""

    value: float
    signature: str


@dataclass(frozen=True)
class Scoring:
    """How translations into the target language of a corpus are scored.

    language: its code; it selects sacrebleu's tokenizer of BLEU and word F1. tokenizer: sacrebleu's name of another
    one, or None. lowercase: whether case is ignored, because the prepared text has none.

    Raises UserError if sacrebleu lacks the tokenizer, or its packages are not installed.
    """

    language: str
    tokenizer: str | None = None
    lowercase: bool = False

    def __post_init__(self):
        if self.tokenizer is not None and self.tokenizer not in BLEU.TOKENIZERS:
            raise UserError(
                f"preparation.bleu_tokenizer of {self.language} is {self.tokenizer}; sacrebleu has "
                f"{', '.join(sorted(BLEU.TOKENIZERS))}"
            )
        try:
            self.bleu()
        except (RuntimeError, ImportError):
            raise UserError(
                f"sacrebleu's tokenizer of {self.language} is not installed; "
                f'run pip install "sacrebleu[{self.language}]", or add '
                f"bleu_tokenizer: {{{self.language}: char}} to the corpus's preparation in config/corpora.yaml"
            ) from None

    @classmethod
    def of(cls, language: str, preparation: Mapping) -> "Scoring":
        """The scoring of a language (its code) with the `preparation` of a corpus's entry in config/corpora.yaml."""
        named = preparation.get("bleu_tokenizer", {}).get(language)
        return cls(language, named, preparation.get("lower", False))

    def bleu(self, references: Sequence[Sequence[str]] | None = None) -> BLEU:
        """sacrebleu's BLEU of plain text."""
        return BLEU(lowercase=self.lowercase, tokenize=self.tokenizer, trg_lang=self.language, references=references)

    def chrf(self, references: Sequence[Sequence[str]] | None = None, word_order: int = 0) -> CHRF:
        """sacrebleu's chrF of plain text; with `word_order` 2, chrF++, which also counts word n-grams."""
        return CHRF(lowercase=self.lowercase, word_order=word_order, references=references)

    @cached_property
    def words(self) -> Callable[[str], list[str]]:
        """The words of a plain line, as BLEU sees them."""
        tokenizer = self.bleu().tokenizer
        return lambda line: tokenizer(line.lower() if self.lowercase else line).split()


def bleu(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring) -> Score:
    """BLEU of plain text, one reference per sentence."""
    return _score(scoring.bleu(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring, word_order: int = 0) -> Score:
    """chrF of plain text, one reference per sentence; with `word_order` 2, chrF++."""
    return _score(scoring.chrf(word_order=word_order), hypotheses, references)


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring) -> Score:
    """BLEU of tokens between spaces, without smoothing, like Moses' multi-bleu.perl.

    Both sides are Moses tokens with compounds split (`data.pairs.preparation.split_compounds`).
    """
    # force: suppresses sacrebleu's warning about tokenised text, which is intended here.
    metric = BLEU(lowercase=scoring.lowercase, tokenize="none", smooth_method="none", force=True)
    score = _score(metric, hypotheses, references)
    return Score(score.value, f"moses|compounds:split|{score.signature}")


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The metric over all sentences; raises ValueError unless there is one reference per hypothesis."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses do not fit {len(references)} references")
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(value, f"{metric.get_signature()}|raretok:{__version__}")
