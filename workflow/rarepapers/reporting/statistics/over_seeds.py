"""Means over seeds of which one may have diverged.

A mean, difference or ratio over seeds of which one is infinite or undefined is infinite or undefined too, has no spread
and no interval, and names that seed. It is never the mean of the other seeds (docs/statistics.md).
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping

from rarepapers.experiments.seeds import seed_ranges

# From here on a float has no unit digit, and digits or zeros would suggest one.
NO_UNITS = 1e15
# Relative difference below which numbers count as equal: far above the rounding errors of a few operations (1e-16
# each), far below the printed digits.
ROUNDING = 1e-9


def mean_of(values: Iterable[float]) -> float:
    """The mean; infinite if a value is, NaN if one is NaN or infinities of both signs meet."""
    numbers = list(values)
    if not all(map(math.isfinite, numbers)):
        return float(sum(numbers))
    try:
        return statistics.fmean(numbers)
    except OverflowError:  # of the sum
        return math.fsum(number / len(numbers) for number in numbers)


def deviation_of(values: Iterable[float]) -> float | None:
    """Sample standard deviation; None for one value, and if one is not finite."""
    numbers = list(values)
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return None
    try:
        return statistics.stdev(numbers)
    except OverflowError:
        return math.inf


def standard_error(values: Iterable[float]) -> float | None:
    """Standard error of the mean; None for one value, and if one is not finite."""
    numbers = list(values)
    deviation = deviation_of(numbers)
    return None if deviation is None else deviation / math.sqrt(len(numbers))


def ratio_of(value: float | None, base: float | None) -> float | None:
    """value / base; None if it is not finite, or one of them is missing or not finite."""
    if value is None or not base:
        return None
    ratio = value / base
    return ratio if math.isfinite(ratio) and math.isfinite(base) else None


def not_finite(values: Mapping[int, float]) -> str:
    """The seeds whose value is not finite: `infinite in seed 3; undefined in seeds 1, 2`; empty if there are none."""
    infinite = [seed for seed, value in values.items() if math.isinf(value)]
    undefined = [seed for seed, value in values.items() if math.isnan(value)]
    named = (("infinite", infinite), ("undefined", undefined))
    return "; ".join(f"{what} in {seeds_in_words(seeds)}" for what, seeds in named if seeds)


def seeds_in_words(seeds: Iterable[int]) -> str:
    """`seed 3`, `seeds 1, 2`."""
    seeds = list(seeds)
    return f"seed{'s' * (len(seeds) > 1)} {seed_ranges(seeds)}"


def mean_text(values: Mapping[int, float], form: str) -> str:
    """The mean in a number format, with the seeds that are not finite in parentheses."""
    named = not_finite(values)
    return number_text(mean_of(values.values()), form) + (f" ({named})" if named else "")


def number_text(value: float, form: str) -> str:
    """A number in a format; with three digits where a float has no unit digit."""
    if math.isnan(value):
        return "undefined"
    if NO_UNITS <= abs(value) < math.inf:
        form = re.sub(r"\.\d[a-z]$", ".3g", form)
    return format(value, form)


def no_variance(values: Mapping[int, float]) -> str:
    """Why several seeds have no variance, in words; empty if they have one, and for one finite seed."""
    if named := not_finite(values):
        return named
    if len(values) > 1 and variance_of(values.values()) is None:
        return f"from {min(values.values()):.3g} to {max(values.values()):.3g}, whose variance is not finite or 0"
    return ""


def variance_of(values: Iterable[float]) -> float | None:
    """Sample variance; None for one value, if one is not finite, and if the variance is outside the range of floats."""
    numbers = list(values)
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return None
    try:
        variance = statistics.variance(numbers)
    except OverflowError:
        return None
    return variance if variance or min(numbers) == max(numbers) else None
