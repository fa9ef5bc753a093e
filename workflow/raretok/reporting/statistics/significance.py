"""Tests of a mean over seeds, and what many tests at once need."""

import statistics

from scipy.special import stdtr

from raretok.reporting.statistics.intervals import has_spread, standard_error

LEVEL = 0.05


def two_sided_p(values: list[float]) -> float | None:
    """The p value of Student's t test that the mean of `values` (one per seed) is 0.

    It is below 0.05 where `t_interval` at 95% leaves 0 out. None where values have no spread to test against.
    """
    if not has_spread(values):
        return None
    ratio = statistics.fmean(values) / standard_error(values)
    return float(2 * stdtr(len(values) - 1, -abs(ratio)))


def holm(ps: list[float]) -> list[float]:
    """The p values of one family of tests, adjusted so that rejecting below a level errs once or more at that rate.

    In the order of `ps`; never below them and at most 1.
    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted
