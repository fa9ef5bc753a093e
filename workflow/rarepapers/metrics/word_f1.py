"""F1 of translated words in buckets of training frequency.

As in compare-mt (Neubig et al. 2019): in each sentence, a hypothesis word is correct at most as often as the reference
has it; a bucket's precision and recall count its words over all sentences. Words are those of the corpus's BLEU
(`translation_scores.Scoring`); their frequencies are counted in the plain training text in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rarepapers.metrics.translation_scores import Scoring


@dataclass(frozen=True)
class Bucket:
    """Words seen in training at least `least` times, and less often than those of the next bucket.

    matched: hypothesis words that their references have; given: hypothesis words; wanted: reference words.
    """

    label: str
    matched: int
    given: int
    wanted: int

    @property
    def f1(self) -> float:
        """2 matched / (given + wanted), the harmonic mean of precision and recall; NaN without words."""
        both = self.given + self.wanted
        return 2 * self.matched / both if both else float("nan")


def training_frequencies(lines: Iterable[str], scoring: Scoring) -> Counter:
    """Number of occurrences of each word in lines of plain text."""
    counts = Counter()
    for line in lines:
        counts.update(scoring.words(line))
    return counts


def word_f1(
    hypotheses: Sequence[str],
    references: Sequence[str],
    frequencies: Counter,
    buckets: Sequence[int],
    scoring: Scoring,
) -> list[Bucket]:
    """F1 of each bucket, rarest words first; plain text of n sentences, one reference each.

    buckets: lower bounds of frequency, increasing; words below the first have their own bucket unless the first is 0.
    """
    labels = bucket_labels(buckets)
    edges = np.array(buckets if len(labels) > len(buckets) else buckets[1:])
    sums = np.zeros((3, len(labels)), dtype=np.int64)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        given, wanted = Counter(scoring.words(hypothesis)), Counter(scoring.words(reference))
        for row, found in zip(sums, (given & wanted, given, wanted), strict=True):
            for word, times in found.items():
                row[np.searchsorted(edges, frequencies[word], side="right")] += times
    return [Bucket(label, *column) for label, column in zip(labels, sums.T.tolist(), strict=True)]


def bucket_labels(buckets: Sequence[int]) -> list[str]:
    """Names of the buckets: `0`, `1`, `2-4`, ..., `1000+`."""
    starts = [*([0] if buckets[0] > 0 else []), *buckets]
    return [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(starts)] + [f"{starts[-1]}+"]
