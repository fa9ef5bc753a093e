"""Comparisons of a claim: estimate of a quantity, its bounds and its printed value.

A claim with several comparisons is a conjunction: it holds if all of them do. Ratios are compared as logarithms,
because the seed spread of a perplexity grows with its level, and that of its logarithm does not.
"""

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from rarepapers.core.errors import UserError
from rarepapers.reporting.claims.quantities import RATIO, in_scale
from rarepapers.reporting.claims.truths import Truth, difference
from rarepapers.reporting.statistics.moderated_t import Estimate, Spread


class Bound(NamedTuple):
    """A bound: the quantity must be above `value` if `sign` is 1, below it if -1; it may be equal unless `strict`."""

    sign: int
    value: float
    strict: bool = True

    def slack(self, mean: float) -> float:
        """The margin by which a mean keeps the bound; 0 for a difference within rounding errors."""
        return self.sign * difference(mean, self.value)

    def holds(self, mean: float) -> bool:
        """Whether a number without seeds keeps the bound."""
        slack = self.slack(mean)
        return slack > 0 or (slack == 0 and not self.strict)


@dataclass(frozen=True)
class Part:
    """One comparison of a claim. estimate, bounds, printed, single: logarithms if `log`, else in the claim's unit.

    label: distinguishes it from the claim's other comparisons. methods: (experiment, method) whose runs it uses.
    single: the spread of the quantity of two runs that share no random numbers, if the paper's do not.
    """

    label: str
    estimate: Estimate
    bounds: tuple[Bound, ...]
    printed: float | None = None
    log: bool = False
    methods: tuple[tuple[str, str], ...] = ()
    single: Spread | None = None

    @property
    def slack(self) -> float:
        """The margin by which our mean keeps its bounds; negative if it does not."""
        return min((bound.slack(self.estimate.mean) for bound in self.bounds), default=0.0)


def in_unit(value: float | None, log: bool) -> float | None:
    """A value on the scale of the test, converted to the claim's unit; `log`: the value is the logarithm of a ratio."""
    if value is None or not log:
        return value
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def is_ratio(claim) -> bool:
    """Whether a claim's quantity is a ratio."""
    return claim.unit == RATIO


def bounds_of(claim, place: int) -> tuple[Bound, ...]:
    """The bounds of a claim's comparison number `place`; none if it claims no direction.

    `>`: above the null value, `<`: below it; with a margin, not below or above it by more than that ("no harm"). `=`:
    within the margin of the null value. For a ratio, a margin of 0.01 is a factor of 1.01.
    """
    if not claim.direction:
        return ()
    if claim.direction not in (">", "<", "="):
        raise UserError(f"claims.csv: the direction of {claim.id} is '{claim.direction}', not >, < or =.")
    margins = [float(text) for text in claim.margin.split(";")] if claim.margin else [0.0]
    margin, null = margins[min(place, len(margins) - 1)], float(claim.null)
    margin, null = math.log1p(margin) if is_ratio(claim) else margin, in_scale(null, claim.unit)
    above, below = Bound(1, null - margin, not margin), Bound(-1, null + margin, not margin)
    if claim.direction == "=":
        return above._replace(strict=False), below._replace(strict=False)
    return (above if claim.direction == ">" else below,)


def holds(claim, values: list[float]) -> bool:
    """Whether numbers without seeds keep all bounds of a claim."""
    return all(bound.holds(value) for place, value in enumerate(values) for bound in bounds_of(claim, place))


def slacks(claim, values: list[float]) -> list[float]:
    """The margin by which each comparison of a claim keeps its bounds; 0 for a claim without direction."""
    return [
        min((bound.slack(value) for bound in bounds_of(claim, place)), default=0.0)
        for place, value in enumerate(values)
    ]


def seen(claim, truths: dict[int, Truth]) -> list[tuple[str, dict[int, float]]]:
    """The comparisons of a claim about figures: label, and quantity by seed on the scale of the test.

    A claim's function gives slacks above the null value or, if the claim's direction is `<`, below it. If its truths
    are conjunctions, there is one comparison per part.
    """
    parts = {seed: truth.parts or (truth,) for seed, truth in truths.items()}
    number = min(map(len, parts.values()))
    if number != max(map(len, parts.values())):  # a seed without a curve has no parts
        parts, number = {seed: (truth,) for seed, truth in truths.items()}, 1
    names = claim.quantity.split("; ")
    null, sign = float(claim.null), -1 if claim.direction == "<" else 1
    found = []
    for place in range(number):
        label = ""
        if number > 1:
            label = f"{place + 1} of {number}" if number % len(names) else names[place % len(names)]
            # With several data sets, each has all parts.
            label += f" ({place // len(names) + 1} of {number // len(names)})" if number > len(names) else ""
        values = {seed: null + sign * of_seed[place].slack for seed, of_seed in parts.items()}
        found.append((label, {seed: in_scale(value, claim.unit) for seed, value in values.items()}))
    return found


def place_of(claim, label: str) -> int:
    """The place of a comparison among its claim's quantities, from its label (`seen`); 0 without a quantity's name."""
    names, name = claim.quantity.split("; "), re.sub(r" \(\d+ of \d+\)$", "", label)
    return names.index(name) if name in names else 0
