"""How well words are translated by how often training saw them: F1 in buckets of training frequency.

As compare-mt (Neubig et al. 2019) has it: in each sentence a word of the hypothesis is right as often as the reference
has it too; a bucket's precision and recall count the words in it over all sentences. Words are those of sacrebleu's
tokeniser 13a, cased, which splits off punctuation; frequencies are those of the plain training text, tokenised alike.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Bucket:
    """Words seen in training at least `least` times, and fewer times than in the next bucket.

    matched: words of the hypotheses that their references have; given: words of the hypotheses; wanted: words of the
    references.
    """

    label: str
    matched: int
    given: int
    wanted: int

    @property
    def f1(self) -> float:
        """2 matched / (given + wanted), the harmonic mean of precision and recall; NaN where there is no word."""
        both = self.given + self.wanted
        return 2 * self.matched / both if both else float("nan")


def training_frequencies(lines: Iterable[str]) -> Counter:
    """How often each word occurs in lines of plain text."""
    words = _tokeniser()
    counts = Counter()
    for line in lines:
        counts.update(words(line).split())
    return counts


def word_f1(
    hypotheses: Sequence[str], references: Sequence[str], frequencies: Counter, buckets: Sequence[int]
) -> list[Bucket]:
    """F1 of each bucket, of rarest words first; plain text of n sentences against one reference each.

    buckets: least frequencies, rising; words below the first have a bucket of their own unless the first is 0.
    """
    words = _tokeniser()
    labels = bucket_labels(buckets)
    edges = np.array(buckets if len(labels) > len(buckets) else buckets[1:])
    sums = np.zeros((3, len(labels)), dtype=np.int64)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        given, wanted = Counter(words(hypothesis).split()), Counter(words(reference).split())
        for row, found in zip(sums, (given & wanted, given, wanted), strict=True):
            for word, times in found.items():
                row[np.searchsorted(edges, frequencies[word], side="right")] += times
    return [Bucket(label, *column) for label, column in zip(labels, sums.T.tolist(), strict=True)]


def bucket_labels(buckets: Sequence[int]) -> list[str]:
    """Names of the buckets: `0`, `1`, `2-4`, ..., `1000+`."""
    starts = [*([0] if buckets[0] > 0 else []), *buckets]
    return [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(starts)] + [f"{starts[-1]}+"]


def _tokeniser():
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()
