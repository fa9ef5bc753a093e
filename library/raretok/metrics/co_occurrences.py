"""Co-occurrence counts of pairs of types, such as links of word alignment (agps, section 4.1.2)."""

from dataclasses import dataclass

import numpy as np


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
