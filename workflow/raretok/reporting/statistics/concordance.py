"""Whether two lists of numbers, a paper's and ours, say the same of which is above which."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from scipy import stats

# Two rows are in order or not: a rank correlation of them says no more than the sign of their difference.
LEAST = 3


class Concordance(NamedTuple):
    """Of `rows` numbers: how many pairs differ in print, the share of them whose sign ours has, rank correlations.

    None where nothing differs in one of the lists, for rank correlations also with fewer than three rows.
    """

    rows: int
    pairs: int
    signs: float | None
    kendall: float | None
    spearman: float | None


def concordance(printed: Sequence[float], ours: Sequence[float]) -> Concordance:
    """The concordance of numbers of the same rows; NaN stands in neither.

    A pair that is equal in ours agrees with no printed difference. Kendall's tau is tau-b, which allows for ties.
    """
    signs = [
        order(printed[i], printed[j]) == order(ours[i], ours[j])
        for i, j in combinations(range(len(printed)), 2)
        if printed[i] != printed[j]
    ]
    varied = min(len(set(printed)), len(set(ours))) > 1
    ranked = len(printed) >= LEAST and varied
    return Concordance(
        len(printed),
        len(signs),
        sum(signs) / len(signs) if signs else None,
        float(stats.kendalltau(printed, ours).statistic) if ranked else None,
        float(stats.spearmanr(printed, ours).statistic) if ranked else None,
    )


def order(first: float, second: float) -> int:
    """1 where `first` is above `second`, -1 where it is below, 0 where they are equal, infinite or not."""
    return (first > second) - (first < second)
