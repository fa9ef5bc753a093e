"""Truth values of comparisons with a signed slack, and exceptions for claims without one.

The **slack** is the margin by which a comparison holds (+) or fails (-), in the unit of the compared numbers: a > b has
the slack a - b. A conjunction has the smallest slack of its parts. A slack of 0 is a tie, which holds or fails
depending on strictness, so the truth is stored separately. A slack within rounding errors is 0.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from rarepapers.reporting.statistics.over_seeds import ROUNDING, not_finite

Judged = TypeVar("Judged")


@dataclass(frozen=True)
class Truth:
    """Whether a claim holds, and its signed slack. `parts`: the truths that a conjunction consists of."""

    holds: bool
    slack: float
    parts: tuple["Truth", ...] = field(default=(), compare=False, repr=False)


class Missing(Exception):
    """A number that the claim needs was not measured; the message names it.

    asked: (experiment, method) of the trainings looked up until then, if known.
    """

    asked: tuple[tuple[str, str], ...] = ()


class Undefined(Missing):
    """Everything was measured, but there is no truth value, for example because of inf / inf after an overflow."""


class Diverged(Undefined):
    """A number of some seed is infinite or NaN, so that there is no truth value."""


def of_seed(seed: int, judge: Callable[..., Judged], *values) -> Judged:
    """`judge` on the values of one seed, which Diverged then names."""
    try:
        return judge(*values)
    except Diverged as reason:
        raise Diverged(f"{reason} (seed {seed})") from None


def naming_seeds(judge: Callable[..., Judged], values: Iterable[Mapping[int, float]], *means) -> Judged:
    """`judge` on means of `values` by seed; Diverged then names the seeds that are not finite."""
    try:
        return judge(*means)
    except Diverged as reason:
        named = dict.fromkeys(filter(None, map(not_finite, values)))
        raise Diverged(f"{reason} ({'; '.join(named)})" if named else str(reason)) from None


def difference(a: float, b: float) -> float:
    """a - b, and exactly 0 for numbers that are equal up to rounding.

    Raises Diverged if it is NaN, as for two infinities.
    """
    return 0.0 if math.isfinite(a) and math.isclose(a, b, rel_tol=ROUNDING) else known(float(a - b))


def known(value: float) -> float:
    """`value`; raises Diverged for NaN, which would make `min` and `max` depend on the order of arguments."""
    if math.isnan(value):
        raise Diverged("a number is undefined, such as a ratio of infinite numbers")
    return value


def greater(a: float, b: float) -> Truth:
    """a > b, by more than rounding errors."""
    slack = difference(a, b)
    return Truth(slack > 0, slack)


def at_least(a: float, b: float) -> Truth:
    """a >= b, up to rounding errors."""
    slack = difference(a, b)
    return Truth(slack >= 0, slack)


def all_of(truths) -> Truth:
    """Conjunction: smallest slack and all parts. True with infinite slack if there are none."""
    truths = list(truths)
    parts = tuple(part for truth in truths for part in truth.parts or (truth,))
    return Truth(all(t.holds for t in truths), min((t.slack for t in truths), default=math.inf), parts)
