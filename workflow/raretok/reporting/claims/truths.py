"""Truths of comparisons with their signed slack, and why a claim can have none.

The **slack** is positive when a truth holds with room, negative when it fails, in the unit of the numbers compared:
a > b has a - b. A conjunction has the least slack of its parts. A slack of 0 is a tie: whether it holds depends on
strictness, so the truth is kept beside it. A slack that rounding alone can make is 0.
"""

import math
from dataclasses import dataclass, field

from raretok.reporting.statistics.intervals import ROUNDING


@dataclass(frozen=True)
class Truth:
    """Whether a claim holds, and its signed slack. `parts`: of a conjunction, the truths that must all hold."""

    holds: bool
    slack: float
    parts: tuple["Truth", ...] = field(default=(), compare=False, repr=False)


class Missing(Exception):
    """A number that the claim needs was not measured; the message says which.

    asked: (experiment, method) of the trainings that were looked up until then, where that is known.
    """

    asked: tuple[tuple[str, str], ...] = ()


class Undefined(Missing):
    """All was measured, but there is no truth: inf / inf, say, of runs whose perplexity overflows."""


def difference(a: float, b: float) -> float:
    """a - b, and exactly 0 for two numbers that are equal but for rounding, or equal infinities.

    Raises Undefined where one is NaN.
    """
    return 0.0 if math.isclose(a, b, rel_tol=ROUNDING) else known(float(a - b))


def known(value: float) -> float:
    """`value`; raises Undefined for NaN, which `min` and `max` would take or leave by where it stands."""
    if math.isnan(value):
        raise Undefined("a number is not defined, such as a ratio of infinite ones")
    return value


def greater(a: float, b: float) -> Truth:
    """a > b, by more than rounding."""
    slack = difference(a, b)
    return Truth(slack > 0, slack)


def at_least(a: float, b: float) -> Truth:
    """a >= b, or short of it by no more than rounding."""
    slack = difference(a, b)
    return Truth(slack >= 0, slack)


def all_of(truths) -> Truth:
    """All hold; the least slack, and all parts. True with infinite slack when there are none."""
    truths = list(truths)
    parts = tuple(part for truth in truths for part in truth.parts or (truth,))
    return Truth(all(t.holds for t in truths), min((t.slack for t in truths), default=math.inf), parts)
