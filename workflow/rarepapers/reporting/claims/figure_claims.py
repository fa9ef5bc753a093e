"""Measurements that claims of several papers share: groups that leave the bulk, curves along training."""

import numpy as np

from rarepapers.metrics.rank_correlation import spearman
from rarepapers.reporting.claims.evidence import Evidence
from rarepapers.reporting.claims.table_claims import common_seeds
from rarepapers.reporting.claims.truths import Missing, Truth, Undefined, greater, known
from rarepapers.reporting.statistics.over_seeds import mean_of
from rarepapers.reporting.tables.cells import measured_at

# A group has left the bulk if its centroid is this many spreads of the points from the centre (our choice).
LEFT = 1.0


def group_slices(bounds: np.ndarray) -> list[slice]:
    """Id ranges of the frequent, medium and rare group; ids are sorted by decreasing frequency."""
    first, second = (int(bound) for bound in bounds)
    return [slice(0, first), slice(first, second), slice(second, None)]


def separations(plane: np.ndarray, bounds: np.ndarray, *, balanced: bool = False) -> np.ndarray:
    """Distance of each group's centroid from the centre, divided by the spread; plane V x 2, result 3.

    The centre is the mean of all points, the spread their root mean square distance from it (deviations, agg.f1).
    balanced: every group has equal weight in both; otherwise a group with most types is the bulk.
    """
    groups = [plane[part].astype(float) for part in group_slices(bounds)]
    weights = np.ones(3) if balanced else np.array([len(group) for group in groups])
    centroids = np.stack([group.mean(0) for group in groups])
    centre = np.average(centroids, axis=0, weights=weights)
    squares = [((group - centre) ** 2).sum(1).mean() for group in groups]
    spread = np.sqrt(np.average(squares, weights=weights))
    return np.linalg.norm(centroids - centre, axis=1) / spread if spread else np.zeros(3)


def rare_first(planes: np.ndarray, bounds: np.ndarray, *, balanced: bool = False) -> Truth:
    """Whether the third group leaves the bulk at an earlier checkpoint than both others; slack in checkpoints.

    planes: s x V x 2, in training order. Raises Undefined if no group ever leaves it.
    """
    values = np.stack([separations(plane, bounds, balanced=balanced) for plane in planes])
    left = [int(np.argmax(column >= LEFT)) if (column >= LEFT).any() else len(values) for column in values.T]
    slack = float(min(left[:2]) - left[2])
    if min(left) == len(values):
        raise Undefined("no group leaves the bulk in some run")
    return Truth(slack > 0, slack)


def until(evidence: Evidence, method: str) -> int:
    """The step until which a method of the family `freeze until` froze rare rows; raises Missing."""
    step = evidence.training(method)["settings"]["method"]["gate"].get("until")
    if step is None:
        raise Missing(f"{method} freezes during the whole training")
    return int(step)


def at(steps: np.ndarray, values: np.ndarray, step: float, *, after: bool = False) -> float:
    """The value at the last snapshot up to `step` (`after`: at the first from `step` on); raises Missing."""
    places = np.flatnonzero(steps >= step) if after else np.flatnonzero(steps <= step)
    if not len(places):
        raise Missing(f"no snapshot {'after' if after else 'before'} step {step:g}")
    return float(values[places[0] if after else places[-1]])


def rises(x, y) -> Truth:
    """Whether two series rise and fall together: Spearman's rank correlation, which is the slack, is above 0.

    A constant series has none: its slack is 0. Raises Diverged if a number is not finite.
    """
    for value in (*x, *y):
        known(value if np.isfinite(value) else np.nan)
    rho = spearman(x, y)
    return Truth(False, 0.0) if np.isnan(rho) else greater(rho, 0)


def beside_cited(table: str, group: str, method: str, baseline: str, evidence: Evidence) -> str:
    """Note on a gain over a cited number: the number of seeds in which ours beats our baseline, and the gain over it.

    The gain over the cited number is given only if numbers are comparable with printed ones. Raises Missing.
    """
    shown = evidence.of(table).definition
    entry = shown.tables[table]
    pair = [shown.methods[name] for name in (method, baseline)]
    values = [measured_at(evidence.results, entry, one, entry["columns"]["BLEU"], group) for one in pair]
    if not all(values):
        raise Missing(f"{table} was not run ({group})")
    seeds = common_seeds(values)
    above = sum(values[0][seed] > values[1][seed] for seed in seeds)
    said = f"compared with our own baseline; {pair[0].printed_label} is above it in {above} of {len(seeds)} seeds"
    cited = evidence.printed.get((table, pair[1].printed_label, "BLEU", group))
    if not shown.comparable or cited is None:
        return said
    gain = mean_of(values[0].values()) - cited.value
    return f"{said}; over the cited {cited.text} the gain is {gain:.2f}"
