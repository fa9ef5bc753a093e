"""Confidence intervals of a mean over seeds, by Student's t."""

import math
import statistics
from typing import NamedTuple


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
    half = t_quantile((1 + level) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def t_quantile(probability: float, freedom: int) -> float:
    """The value below which a t variable of `freedom` degrees lies with `probability` (0.5 to 1, exclusive).

    By bisection on the closed form of the distribution; exact to about 1e-12, relative.
    """
    if not 0.5 < probability < 1 or freedom < 1:
        raise ValueError(f"no t quantile for probability {probability} and {freedom} degrees of freedom")
    # Bisect the angle atan(t / sqrt(freedom)), which is bounded where t is not.
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        if (1 + _within(middle, freedom)) / 2 < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """P(|t| <= sqrt(freedom) tan(angle)). Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
