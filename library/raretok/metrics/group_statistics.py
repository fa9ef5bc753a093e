"""Groups of types by training frequency, and statistics by group.

Ids are sorted by frequency, so three groups are given by the first ids of the second and of the third.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Groups:
    """Three groups of the V `types`, from frequent to rare.

    names: of the groups. bounds: first id of the second and of the third group. suffix: distinguishes the rows of this
    set from those of another. rule: how the bounds were found, for signatures.
    """

    names: tuple[str, str, str]
    bounds: tuple[int, int]
    types: int
    suffix: str = ""
    rule: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names with the suffix, as in metric rows."""
        return tuple(name + self.suffix for name in self.names)

    @property
    def parts(self) -> tuple[slice, ...]:
        """The ids of each group."""
        first, second = self.bounds
        return slice(0, first), slice(first, second), slice(second, self.types)

    def of(self, ids: np.ndarray) -> np.ndarray:
        """Group of each id, 0, 1 or 2, in the shape of ids."""
        return np.searchsorted(self.bounds, ids, side="right")


def group_perplexities(nll: np.ndarray, targets: np.ndarray, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Perplexity of the targets in each group and in total, and their numbers; (4,) both.

    nll: negative log-likelihood of each of N targets. targets: their ids. The total is exp of the sum of all nll
    divided by N, which is exactly the combination of the groups weighted by their masses. A group without targets has
    NaN.
    """
    members = groups.of(targets)
    sums = np.bincount(members, weights=nll, minlength=3)
    numbers = np.bincount(members, minlength=3)
    sums, numbers = np.append(sums, sums.sum()), np.append(numbers, numbers.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(sums / numbers), numbers


def nonrare_perplexity(nll: np.ndarray, targets: np.ndarray, groups: Groups) -> tuple[float, int]:
    """Perplexity of the targets in the first and second group together, and their number (agg, figure 5; A23)."""
    frequent = np.asarray(targets) < groups.bounds[1]
    number = int(frequent.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.exp(np.divide(nll[frequent].sum(), number))), number


def distinct(ids: np.ndarray, groups: Groups) -> np.ndarray:
    """Uniq: number of distinct ids in each group and in total; (4,) int64 (agg, section 5.1).

    For the arg max predictions at all positions this is a model's Uniq, for the targets the Human row. The groups add
    up to the total.
    """
    found = np.bincount(groups.of(np.unique(ids)), minlength=3)
    return np.append(found, found.sum())
