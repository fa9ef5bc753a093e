"""Groups of types by training frequency, and statistics by group.

Ids are sorted by frequency, so three groups are given by the first ids of the second and of the third.
"""

from dataclasses import dataclass

import numpy as np

from raretok.data.text.frequency_groups import group_of


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
        """Group (0, 1 or 2) of each id."""
        return group_of(self.bounds, ids)

    def occurrences(self, ids: np.ndarray) -> np.ndarray:
        """Number of `ids` in each group, (3,) int64."""
        return np.bincount(self.of(ids), minlength=3)


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
    found = groups.occurrences(np.unique(ids))
    return np.append(found, found.sum())
