"""Confidence intervals of a mean over seeds, by Student's t."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import stdtrit  # scipy.stats takes longer to import than most tables take to render

from rarepapers.reporting.statistics.over_seeds import ROUNDING, deviation_of, mean_of

# Of all confidence and prediction intervals.
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and the bounds of its confidence interval, None if undefined."""

    mean: float
    lower: float | None
    upper: float | None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both bounds, or None."""
        return None if self.lower is None else (self.lower, self.upper)


def t_interval(values: list[float]) -> Interval:
    """Mean of `values` (one per seed) with its two-sided 95% t interval; no bounds if they have no spread."""
    mean = mean_of(values)
    if not has_spread(values):
        return Interval(mean, None, None)
    half = half_width(deviation_of(values), len(values))
    return Interval(mean, mean - half, mean + half)


def half_width(spread: float, seeds: int) -> float:
    """Half the width of a two-sided 95% t interval; `spread` is the sample standard deviation over `seeds` values."""
    return float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2)) * spread / math.sqrt(seeds)


def has_spread(values: Sequence[float]) -> bool:
    """Whether there are several values, all finite, that differ by more than rounding.

    Otherwise nothing can be said about another seed: two equal counts or shares say no more about a third seed than one
    does.
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return False
    return not math.isclose(min(values), max(values), rel_tol=ROUNDING)
