"""Link counts of pairs of types from word alignment: the sparse pseudo-gold vectors of agps, section 4.1.2.

a(i) counts the links of type i with every type of the joint vocabulary. Links from source to target and from target to
source are added (deviations, G10), so the matrix is symmetric.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from raretok.core.errors import UserError

# Number of pairs that are buffered before they are merged into the counts.
PENDING = 2**23


@dataclass(frozen=True)
class CoOccurrences:
    """A symmetric sparse matrix of counts of N types; each pair (i <= j) that occurs is stored once.

    first, second: ids, (P,) int64, sorted by (first, second). counts: (P,) int64; a(i)_j = a(j)_i.
    """

    types: int
    first: np.ndarray
    second: np.ndarray
    counts: np.ndarray

    def squared_lengths(self, itself: bool = True) -> np.ndarray:
        """|a(i)|^2 of each type, (N,) float64; 0 of a type without a link. itself: whether a(i)_i counts."""
        other = self.first != self.second
        squares = np.where(other | itself, self.counts.astype(np.float64) ** 2, 0)
        lengths = np.bincount(self.first, weights=squares, minlength=self.types)
        return lengths + np.bincount(self.second[other], weights=squares[other], minlength=self.types)


def count(links: Iterable[tuple[np.ndarray, np.ndarray]], pairs, types: int) -> CoOccurrences:
    """Count the links of a corpus.

    links: from `alignment.links.link_arrays`. pairs: ids and offsets of the same lines (`prepared_pairs.Pairs`), whose
    lines end in a token that is never linked. types: N. Raises UserError if a link points outside its line: the links
    then belong to another text.
    """
    merged = _Merged()
    for lines, places in links:
        if len(lines) and lines.max() >= len(pairs):
            raise UserError(f"the links are of more lines than the corpus has, {len(pairs):,}; align the corpus again")
        sides = []
        for side, column in ((pairs.source, 0), (pairs.target, 1)):
            offsets = np.asarray(pairs.source_offsets if column == 0 else pairs.target_offsets)
            here = offsets[lines] + places[:, column]
            if (here >= offsets[lines + 1] - 1).any():
                line = lines[np.flatnonzero(here >= offsets[lines + 1] - 1)[0]] + 1
                raise UserError(
                    f"line {line:,} of the links points beyond its sentence: they are links of another text; "
                    "align the corpus again"
                )
            sides.append(np.asarray(side[here], dtype=np.int64))
        # A link of a type with itself also counts in both directions.
        merged.add(np.minimum(*sides) * types + np.maximum(*sides))
    keys, counts = merged.result()
    first, second = keys // types, keys % types
    return CoOccurrences(types, first, second, counts * np.where(first == second, 2, 1))


class _Merged:
    """Distinct keys and their counts; memory grows with the number of distinct keys."""

    def __init__(self):
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._pending = 0

    def add(self, keys: np.ndarray) -> None:
        self._waiting.append(np.unique(keys, return_counts=True))
        self._pending += len(self._waiting[-1][0])
        if self._pending > max(PENDING, len(self._keys)):
            self._merge()

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        self._merge()
        return self._keys, self._counts

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        self._keys, places = np.unique(keys, return_inverse=True)
        # Counts below 2^53 are exact in float64.
        self._counts = np.bincount(places, weights=counts, minlength=len(self._keys)).astype(np.int64)
        self._waiting, self._pending = [], 0
