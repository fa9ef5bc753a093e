"""Agreement of two lists of numbers in sign and rank."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from scipy import stats

# With two rows a rank correlation is only the sign of their difference.
LEAST = 3


class Concordance(NamedTuple):
    """Agreement of two lists of `rows` numbers.

    pairs: number of pairs that differ in print. signs: the share of them with the same sign in ours. kendall, spearman:
    rank correlations. None if one of the lists is constant; rank correlations also for fewer than three rows.
    """

    rows: int
    pairs: int
    signs: float | None
    kendall: float | None
    spearman: float | None


def concordance(printed: Sequence[float], ours: Sequence[float]) -> Concordance:
    """The concordance of numbers of the same rows, none of them NaN.

    A pair that is tied in ours counts as a disagreement. Kendall's tau is tau-b, which allows ties.
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
    """1 if `first` is above `second`, -1 if it is below, 0 if they are equal or any is NaN."""
    return (first > second) - (first < second)
