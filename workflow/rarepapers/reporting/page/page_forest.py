"""Forest plot: position of printed and measured effects relative to the claim's null value.

Effects to the right of the line agree with the paper, whatever the direction of the claim. Ratios share one scale,
linear in the logarithm near the line and logarithmic in it further out, so that both 1.02 and 9.8 are visible. Every
other quantity has its own scale.
"""

import math

from rarepapers.reporting.claims.claim_parts import bounds_of, is_ratio, place_of
from rarepapers.reporting.claims.quantities import in_scale
from rarepapers.reporting.statistics.over_seeds import ROUNDING

# For ratios: the scale is linear below the first factor and ends at the second.
NEAR, FAR = 1.05, 10.0
# In percent of the plot's width.
MIDDLE, HALF = 50.0, 46.0
TICK_FACTORS = (1.1, 2.0, 10.0)


def drawn_row(row: dict, claim) -> dict | None:
    """Positions in percent of the width for a row of claims.csv and its published claim; None if nothing was measured.

    ours, printed: both effects. lower, upper: our interval; leaves: the ends of the plot that it passes ("left",
    "right"). band: half the width of the equivalence margin.
    """
    bounds = bounds_of(claim, place_of(claim, row.get("part", "")))
    known = {name: float(row[name]) for name in ("ours", "printed", "lower", "upper") if row[name]}
    known = {name: value for name, value in known.items() if not math.isnan(value)}
    if "ours" not in known or not bounds:
        return None
    ratio = is_ratio(claim)
    line = sum(bound.value for bound in bounds) / len(bounds)
    sign = bounds[0].sign if len(bounds) == 1 else 1

    def beyond(value: float) -> float:
        """The distance of a value from its bound on the scale of the test, positive if the bound is kept."""
        # An effect or bound near 0 is printed as 0, whose logarithm is minus infinity.
        scaled = -math.inf if ratio and value <= 0 else in_scale(value, claim.unit)
        return sign * (scaled - line)

    known = {name: beyond(value) for name, value in known.items()}
    margin = abs(bounds[0].value - line)
    most = max([abs(value) for value in known.values() if math.isfinite(value)] + [margin]) or 1.0

    def share(value: float) -> float:
        return of_ratio(value) if ratio else value / most

    def place(value: float) -> float:
        return MIDDLE + HALF * min(1.0, max(-1.0, share(value)))

    places = {name: place(value) for name, value in known.items()}
    interval = sorted(known[name] for name in ("lower", "upper") if name in known)
    lower, upper = map(place, interval) if len(interval) == 2 else (None, None)
    ends = {"left": -share(interval[0]), "right": share(interval[1])} if len(interval) == 2 else {}
    leaves = [side for side, beyond_middle in ends.items() if beyond_middle > 1 + ROUNDING]
    band = place(margin) - MIDDLE if len(bounds) > 1 else 0.0
    return {
        "ours": places["ours"],
        "printed": places.get("printed"),
        "lower": lower,
        "upper": upper,
        "leaves": leaves,
        "band": band,
    }


def of_ratio(logarithm: float) -> float:
    """Position of a ratio, given its logarithm, from -1 to 1 at the ends of the scale."""
    return math.asinh(logarithm / math.log(NEAR)) / math.asinh(math.log(FAR) / math.log(NEAR))


# (position, factor) of the ticks of the ratio scale, on both sides of the line.
TICKS = [
    (MIDDLE + sign * HALF * of_ratio(math.log(factor)), f"x{factor:g}") for factor in TICK_FACTORS for sign in (-1, 1)
]
