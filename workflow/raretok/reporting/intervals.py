"""Confidence intervals of a mean over seeds, by Student's t."""

import math
import statistics
from typing import NamedTuple

from scipy.special import stdtrit  # not scipy.stats, which takes longer to load than a table to make


class Interval(NamedTuple):
    """A mean and the bounds of its confidence interval; None where there can be none."""

    mean: float
    lower: float | None
    upper: float | None


def t_interval(values: list[float], level: float = 0.95) -> Interval:
    """Mean of `values` (one per seed) with its two-sided t interval.

    Values that are all equal, infinite or not, are their own interval. No bounds for a single value, nor
    where only some are infinite: then there is no spread to measure.
    """
    if len(values) > 1 and len(set(values)) == 1:
        return Interval(values[0], values[0], values[0])
    if not all(map(math.isfinite, values)):
        return Interval(sum(values), None, None)
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, None, None)
    half = float(stdtrit(len(values) - 1, (1 + level) / 2)) * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def standard_error(values: list[float]) -> float:
    """Of the mean of two values or more: their sample standard deviation over the root of their number."""
    return statistics.stdev(values) / math.sqrt(len(values))
