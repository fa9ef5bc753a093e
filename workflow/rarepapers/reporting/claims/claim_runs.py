"""Runs of a claim: which it needs, which are finished, and the cost of further ones."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rarepapers.reporting.claims.evidence import of_paper
from rarepapers.reporting.claims.quantities import comparisons, of_this_scale
from rarepapers.reporting.claims.table_claims import place_of
from rarepapers.reporting.claims.truths import Missing
from rarepapers.reporting.cost import costs, trained, unit_seconds
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.deviations import items_of
from rarepapers.reporting.results import Results

Trained = tuple[str, str]  # experiment, method
RunName = tuple[str, str, int]  # experiment, method, seed


@dataclass(frozen=True)
class Price:
    """Cost of runs in minutes of a core or of a GPU."""

    minutes: float
    unit: str = "core"

    def in_words(self) -> str:
        """The cost as text: minutes, or hours from two hours on."""
        if self.minutes >= 120:
            form = ",.0f" if self.minutes >= 600 else ".1f"
            return f"{self.minutes / 60:{form}} {self.unit}-hours"
        return f"{max(1, round(self.minutes))} {self.unit}-minute{'' if round(self.minutes) <= 1 else 's'}"


# Function of (experiment, method); None if unknown.
Prices = Callable[[str, str], Price | None]


def price_of(runs: Iterable[RunName], prices: Prices) -> Price | None:
    """The cost of several runs together; None if one is unknown, or if some need a core and others a GPU."""
    known = [prices(experiment, method) for experiment, method, _ in runs]
    units = {price.unit for price in known if price}
    if None in known or len(units) != 1:
        return None
    return Price(sum(price.minutes for price in known), units.pop())


@dataclass(frozen=True)
class Watched(Results):
    """Results that record which trainings were looked up, and which of these exist."""

    asked: dict[Trained, None] = field(default_factory=dict)
    found: dict[Trained, None] = field(default_factory=dict)

    def per_seed(self, method: Method, *args, **kwargs) -> dict[int, float]:
        """As in Results, with the lookup recorded."""
        return self._noted(method, super().per_seed(method, *args, **kwargs))

    def seeds_with_arrays(self, method: Method) -> list:
        """As in Results, with the lookup recorded."""
        return self._noted(method, super().seeds_with_arrays(method))

    def training(self, method: Method) -> dict | None:
        """As in Results, with the lookup recorded; a training's record does not count as a measurement."""
        self.asked[method.experiment, method.name] = None
        return super().training(method)

    def _noted(self, method: Method, values):
        training = (method.experiment, method.name)
        self.asked[training] = None
        if values:
            self.found[training] = None
        return values


def record_lookups(results: Results) -> Watched:
    """The same results, with lookups recorded from now on."""
    return Watched(results.folder, results.metrics, results.values)


def rests_on(claim, claims: dict, asked: Iterable[Trained], definition: Definition) -> tuple[Trained, ...]:
    """(experiment, method) that a claim needs; empty if this scale leaves some out.

    claims: the paper's, by id; a conjunction of claims needs the trainings of all of them. asked: the trainings looked
    up until one was missing, for a claim without table or figure.
    """
    try:
        of_items = (_of_table if claim.measured_by == "table" else _of_figures)(claim, definition)
    except Missing:
        return ()
    found = dict.fromkeys(of_items or asked)
    for other in of_paper(claim.paper, "TOGETHER").get(claim.id, ()):
        needed = rests_on(claims[other], claims, (), definition)
        if not needed:
            return ()
        found |= dict.fromkeys(needed)
    possible = all(
        experiment in definition.settings and definition.methods[name].is_trained_in(experiment)
        for experiment, name in found
    )
    return tuple(found) if possible else ()


def _of_table(claim, definition: Definition) -> list[Trained]:
    """Trainings of the rows named in a claim's quantity; raises Missing if the scale has no such row."""
    keys = [key for one in of_this_scale(comparisons(claim.quantity), definition) for key in one.keys]
    found = []
    for key in keys:
        if place := place_of(definition, key):
            entry, method, *_ = place
            found.append((entry.get("experiments", {}).get(key.group, method.experiment), method.name))
    return found


def _of_figures(claim, definition: Definition) -> list[Trained]:
    """Trainings of the figures that a claim is about, in every experiment that these compare."""
    needs = of_paper(claim.paper, "NEEDS")
    if claim.id in needs:
        return list(needs[claim.id])
    found = []
    for item in (item for item in items_of(claim._asdict()) if item in definition.figures):
        for method in definition.methods_of(item):
            several = [other for other in definition.compared(item) if method.is_trained_in(other)]
            found += [(experiment, method.name) for experiment in several or [method.experiment]]
    return found


def finished_seeds(results: Results) -> dict[Trained, set[int]]:
    """Finished seeds by (experiment, method)."""
    seeds = defaultdict(set)
    names = (results.metrics[name] for name in ("experiment", "method", "seed"))
    for experiment, method, seed in zip(*names, strict=True):
        seeds[experiment, method].add(int(seed))
    return dict(seeds)


def measured_prices(results: Results, paper: str | None = None) -> Prices:
    """Median cost of a method's trainings in `results`; else of its experiment's, else of the `paper`'s."""
    named = (results.folder / "runs" / experiment / method / f"seed{seed}" for experiment, method, seed in results.runs)
    paths = sorted(path for folder in named if (path := folder / "metrics.json").exists())
    known = defaultdict(list)
    table = trained(costs(paths))
    for run, on_cpu, seconds in zip(table.to_dict("records"), *unit_seconds(table), strict=True) if paths else ():
        price = Price(seconds / 60, "core" if on_cpu else "GPU")
        known[run["experiment"], run["method"]].append(price)
        known[run["experiment"]].append(price)
        if run["paper"] == paper:
            known[None].append(price)

    def price(experiment: str, method: str) -> Price | None:
        found = known.get((experiment, method)) or known.get(experiment) or known.get(None)
        if not found:
            return None
        unit = statistics.mode(each.unit for each in found)
        return Price(statistics.median(each.minutes for each in found if each.unit == unit), unit)

    return price
