"""Measured numbers in Markdown pages, between HTML comments: filled from recorded results.

A marker is `<!-- small QUANTITY -->text<!-- end -->`; small is the scale. Parts of a QUANTITY are separated by `; `:

    CLAIM                                  what claims.csv says of a claim after its sentence
    CLAIM ours, CLAIM printed              its number with the interval, as there; the printed number
    CLAIM SHOW                             for instance `seeds` or `p .2g`
    cell; TABLE; ROW; COLUMN; GROUP; SHOW  a cell of results/recorded/SCALE/tables; agg/table3 for a TABLE
    mean; RUNS; METRIC; GROUP; SHOW        mean over seeds of a metric; RUNS are EXPERIMENT/METHOD (with ` seed 3`, of
                                           that seed), and more of them after commas restrict the seeds to those that
                                           all have
    change; RUNS; RUNS; METRIC; GROUP; SHOW  change in per cent of the first against the second, paired by seed
    difference; RUNS; RUNS; METRIC; GROUP; SHOW  the same in the metric's unit
    constant; RUNS; RUNS; WHAT; SHOW       the second with one constant for rare types that gives it the first's rare
                                           perplexity: its `nats`, the change of a group (freq, med, total), or `lead`,
                                           the first's change of frequent tokens minus that one's, in points
    uniq; RUNS; NATS; GROUP; SHOW          Uniq with a constant; `offset` in place of uniq: the change of perplexity
    count; NAME                            one of COUNTS

A METRIC may end with `at SPLIT` (`group_mass at test@data`). SHOW is a number format, by default of the mean, preceded
by words: `interval` (of 95%, over seeds), `printed`, `spread`, `p`, `p_holm`; `less` turns the sign, `times` turns a
change in per cent into a ratio, `percent` a share into per cent. `seeds` alone is the number of seeds with that word.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import stdtr

from rarepapers.core.errors import UserError
from rarepapers.reporting.claims.claims_command import family_size
from rarepapers.reporting.cost import read_costs, trained, unit_seconds
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Results, read_published, read_results
from rarepapers.reporting.statistics.intervals import has_spread, t_interval
from rarepapers.reporting.statistics.matched_constant import FREQUENT, RARE, Matched, matched_constant
from rarepapers.reporting.statistics.over_seeds import standard_error
from rarepapers.reporting.tables.method_comparison import percent_change

MARK = r"(<!-- {scale} ([^>]+?) -->).*?(<!-- end -->)"
GROUPS = {"freq": FREQUENT, "med": 1, "rare": RARE, "total": 3}
OURS = re.compile(r"ours (.*?)(?:, \d+ seeds?\b.*)?$")
PRINTED = re.compile(r"printed (.*?)(?:, ours .*)?$")


@dataclass(frozen=True)
class Quantity:
    """A number with what can be shown beside it."""

    mean: float
    interval: tuple[float, float] | None = None
    seeds: int | None = None
    printed: float | None = None
    spread: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Recorded:
    """A scale's recorded results, the papers' definitions at that scale, and the folder of the papers' claims."""

    folder: Path
    definitions: list[Definition]
    published: Path

    @cached_property
    def results(self) -> Results:
        """Metrics and arrays of the runs."""
        return read_results(self.folder)

    @cached_property
    def claims(self) -> dict[str, dict]:
        """Rows of claims.csv by id."""
        return {row["id"]: row for row in read_rows(self.folder / "claims.csv")}

    @cached_property
    def cells(self) -> dict[tuple[str, ...], dict]:
        """Rows of all tables by (table, row, column, group)."""
        paths = sorted((self.folder / "tables").glob("*/*.csv"))
        return {
            (f"{path.parent.name}/{path.stem}", row["row"], row["column"], row["group"]): row
            for path in paths
            for row in read_rows(path)
            if "row" in row
        }

    def definition(self, paper: str) -> Definition:
        """A paper's definition."""
        return next(one for one in self.definitions if one.paper == paper)

    def method(self, runs: str) -> Method:
        """The method of EXPERIMENT/METHOD, with the seeds of its experiment."""
        experiment, name = runs.split("/")
        for definition in self.definitions:
            for method in definition.shown():
                if (method.experiment, method.name) == (experiment, name):
                    return method
        raise UserError(f"a page of docs names the runs {runs}, which no paper shows")

    def per_seed(self, runs: str, metric: str, group: str) -> dict[int, float]:
        """Values by seed of the first of `runs`, of the seeds that all have."""
        metric, _, split = metric.partition(" at ")
        runs, _, only = runs.partition(" seed ")
        found = [
            self.results.per_seed(self.method(one), metric, group, split=split or None) for one in runs.split(", ")
        ]
        if only:
            return {int(only): found[0][int(only)]}
        return {seed: value for seed, value in found[0].items() if all(seed in other for other in found)}

    def offsets(self, runs: str) -> dict[int, dict[str, np.ndarray]]:
        """Arrays by seed of runs that were measured with constants for rare types."""
        arrays = self.results.seeds_with_arrays(self.method(runs))
        return {seed: one for seed, one in arrays if "best.offsets" in one}


def filled(text: str, recorded: Recorded, scale: str) -> str:
    """A page with the recorded numbers between its markers.

    Raises UserError for a marker whose quantity does not exist.
    """

    def replaced(mark: re.Match) -> str:
        begin, quantity, end = mark.groups()
        try:
            return begin + shown(recorded, quantity) + end
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(f"a page of docs shows {quantity!r}, which the recorded results do not have") from error

    return re.sub(MARK.format(scale=scale), replaced, text, flags=re.DOTALL)


def shown(recorded: Recorded, quantity: str) -> str:
    """The text of a QUANTITY."""
    kind, *parts = quantity.split("; ")
    if kind == "count":
        return COUNTS[parts[0]](recorded, *parts[1:])
    if parts:
        *names, how = parts
        return written(KINDS[kind](recorded, *names), how)
    name, _, how = kind.partition(" ")
    if name not in recorded.claims:
        raise UserError(f"a page of docs names the claim {name}, which does not exist")
    claim = recorded.claims[name]
    numbers = after_sentence(claim)
    if how in ("", "ours", "printed"):
        return {"": numbers, "ours": _found(OURS, numbers), "printed": _found(PRINTED, numbers)}[how]
    return written(quantity_of(claim, "ours"), how)


def _found(pattern: re.Pattern, text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def after_sentence(claim: dict) -> str:
    """What `says` adds to a claim's sentence: the deciding part, if there are several, and the numbers."""
    part, _, numbers = claim["says"].removeprefix(claim["sentence"]).partition(": ")
    return f"{part.removeprefix(' (').removesuffix(')')}: {numbers}" if part else numbers


def quantity_of(row: dict, value: str) -> Quantity:
    """The Quantity of a row of claims.csv or of a table, whose value is in this column."""
    number = {name: float(text) for name, text in row.items() if name in NUMBERS | {value} and text}
    interval = (number["lower"], number["upper"]) if {"lower", "upper"} <= number.keys() else None
    printed = number.get("printed", number.get("published"))
    seeds = int(number["seeds"]) if "seeds" in number else None
    return Quantity(
        number[value], interval, seeds, printed, number.get("spread"), *(number.get(name) for name in ("p", "p_holm"))
    )


NUMBERS = frozenset({"lower", "upper", "printed", "published", "seeds", "spread", "p", "p_holm"})


def cell_of(recorded: Recorded, *place: str) -> Quantity:
    """A cell of a table."""
    return quantity_of(recorded.cells[place], "value")


def over_seeds(values: list[float]) -> Quantity:
    """Mean, interval and p of a two-sided t test against 0."""
    found = t_interval(values)
    p = None
    if has_spread(values):
        p = 2 * float(stdtr(len(values) - 1, -abs(found.mean / standard_error(values))))
    return Quantity(found.mean, found.bounds, len(values), p=p)


def mean(recorded: Recorded, runs: str, metric: str, group: str) -> Quantity:
    """A metric's mean over seeds."""
    return over_seeds([*recorded.per_seed(runs, metric, group).values()])


def change(recorded: Recorded, runs: str, base: str, metric: str, group: str) -> Quantity:
    """Change in per cent, paired by seed."""
    found = percent_change(recorded.per_seed(runs, metric, group), recorded.per_seed(base, metric, group))
    return Quantity(found.mean, found.interval, found.seeds)


def difference(recorded: Recorded, runs: str, base: str, metric: str, group: str) -> Quantity:
    """Difference in the metric's unit, paired by seed."""
    ours, theirs = recorded.per_seed(runs, metric, group), recorded.per_seed(base, metric, group)
    return over_seeds([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def matched(recorded: Recorded, runs: str, base: str) -> dict[int, Matched | None]:
    """The constant on `base` that has the rare perplexity of `runs`, by seed; None where there is none."""
    rare = recorded.per_seed(runs, "fitted_perplexity", "rare")
    return {
        seed: matched_constant(arrays, rare[seed]) for seed, arrays in recorded.offsets(base).items() if seed in rare
    }


def constant(recorded: Recorded, runs: str, base: str, what: str) -> Quantity:
    """The matched constant in nats, a change of perplexity in per cent with it, or a method's lead over it."""
    with_it = matched(recorded, runs, base)
    if what == "nats":
        return over_seeds([one.nats for one in with_it.values()])
    place = FREQUENT if what == "lead" else GROUPS[what]
    plain = {seed: recorded.offsets(base)[seed]["best.offset_perplexities"][0, place] for seed in with_it}
    changes = {seed: 100 * (one.perplexities[place] / plain[seed] - 1) for seed, one in with_it.items()}
    if what != "lead":
        return over_seeds([*changes.values()])
    ours = recorded.per_seed(runs, "fitted_perplexity", "freq")
    return over_seeds([100 * (ours[seed] / plain[seed] - 1) - changes[seed] for seed in changes])


def with_constant(recorded: Recorded, runs: str, nats: str, group: str) -> Quantity:
    """Uniq of runs with a constant on the logits of rare types."""
    return over_seeds([*_at(recorded, runs, "best.offset_uniq", nats, group)])


def offset_change(recorded: Recorded, runs: str, nats: str, group: str) -> Quantity:
    """Change of test perplexity in per cent with a constant on the logits of rare types."""
    with_it = _at(recorded, runs, "best.offset_perplexities", nats, group)
    plain = _at(recorded, runs, "best.offset_perplexities", "0", group)
    return over_seeds([100 * (one / other - 1) for one, other in zip(with_it, plain, strict=True)])


def _at(recorded: Recorded, runs: str, name: str, nats: str, group: str) -> list[float]:
    of_seeds = recorded.offsets(runs).values()
    return [float(one[name][one["best.offsets"] == float(nats), GROUPS[group]].item()) for one in of_seeds]


KINDS: dict[str, Callable[..., Quantity]] = {
    "cell": cell_of,
    "mean": mean,
    "change": change,
    "difference": difference,
    "constant": constant,
    "uniq": with_constant,
    "offset": offset_change,
}


def written(quantity: Quantity, how: str) -> str:
    """A Quantity as SHOW says; a minus sign is a hyphen, as in tables."""
    *words, form = how.split()
    if form == "seeds":
        return f"{quantity.seeds} seed{'s' * (quantity.seeds > 1)}"
    values = [quantity.mean]
    for name in ("printed", "spread", "p", "p_holm"):
        if name in words:
            values = [getattr(quantity, name)]
    if "interval" in words:
        values = [*quantity.interval]
    if "less" in words:
        values = [-value for value in reversed(values)]
    if "times" in words:
        values = [1 + value / 100 for value in values]
    if "percent" in words:
        values = [100 * value for value in values]
    texts = [re.sub(r"^[-+](0[.0]*)$", r"\1", format(value, form)) for value in values]
    return f"({' to '.join(texts)})" if "interval" in words else texts[0]


def methods_compared(recorded: Recorded) -> list[str]:
    """EXPERIMENT/METHOD of all methods of the comparison but the first."""
    names = [f"{method.experiment}/{method.name}" for method in recorded.definition("cross").shown()]
    return [name for name in names if name != COMPARED_WITH]


COMPARED_WITH = "cross_bpe/mle_rate1"


def comparable(recorded: Recorded) -> str:
    """Number of methods that a constant matches with every seed."""
    of = [matched(recorded, runs, COMPARED_WITH) for runs in methods_compared(recorded)]
    return str(sum(bool(one) and None not in one.values() for one in of))


def rows_near(recorded: Recorded, percent: str) -> str:
    """Number of Stop Jostling's rows with both best perplexities within `percent` of the printed ones."""
    return str(sum(off <= float(percent) for off in _distances(recorded)))


def _distances(recorded: Recorded) -> list[float]:
    """Largest distance of a row's best perplexities from the printed ones, in per cent, for rows with printed ones."""
    off: dict[str, dict[str, float]] = {}
    for (table, row, column, group), cell in recorded.cells.items():
        if table in PERPLEXITIES and column == "PPL_best" and "[" not in row and cell["published"] and cell["value"]:
            printed = float(cell["published"])
            off.setdefault(row, {})[group] = 100 * abs(float(cell["value"]) / printed - 1)
    return [max(of.values()) for of in off.values()]


PERPLEXITIES = tuple(f"stop_jostling/table{number}" for number in (1, 5, 6, 7))


def pairs_ahead(recorded: Recorded, metric: str, what: str) -> str:
    """Pairs of runs in which the log-unigram start is ahead of the zero start at the end of training.

    what: `ahead`, their number; `all`, the number of pairs; `p` of the sign test; `mean`, by how much.
    """
    leads = []
    for experiment in sorted({method.experiment for method in recorded.definition("natural_bias").shown()}):
        ours, theirs = (
            recorded.per_seed(f"{experiment}/{name}", f"{metric} at test@best", "") for name in ("unigram", "zero")
        )
        leads += [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    ahead = sum(lead > 0 for lead in leads)
    if what == "p":
        from scipy.stats import binomtest  # slow to import

        return f"{binomtest(ahead, len(leads)).pvalue:.2f}"
    if what == "mean":
        found = over_seeds(leads)
        return f"{found.mean:.1f} {written(found, 'interval .1f')}"
    return str({"ahead": ahead, "all": len(leads)}[what])


def seeds_above(recorded: Recorded, runs: str, metric: str, group: str, bound: str) -> str:
    """Number of seeds in which a metric is above a bound."""
    return str(sum(value > float(bound) for value in recorded.per_seed(runs, metric, group).values()))


def sign_range(recorded: Recorded, group: str) -> str:
    """Largest difference that the signs of eigenvectors make to I(W) of Stop Jostling's methods, seed 1."""
    gaps = []
    for method in recorded.definition("stop_jostling").shown():
        runs = f"{method.experiment}/{method.name}"
        high, low = (recorded.per_seed(runs, f"isotropy_{end}", group).get(1) for end in ("highest", "lowest"))
        gaps += [high - low] if high is not None else []
    return f"{max(gaps):.2f}"


def tests(recorded: Recorded, paper: str) -> str:
    """Number of a paper's tests that Holm's correction counts."""
    claims = read_published(recorded.published, "claims", paper).itertuples()
    return str(family_size([*claims], recorded.definition(paper)))


def trained_runs(recorded: Recorded, *papers: str) -> str:
    """Number of recorded runs of some papers (all, if none is named) that were trained, not copied."""
    return str(len(_trained(recorded, papers)))


def core_hours(recorded: Recorded, *papers: str) -> str:
    """CPU time of these runs' trainings with validation; those on a GPU do not count."""
    runs = _trained(recorded, papers)
    on_cpu, seconds = unit_seconds(runs)
    return f"{seconds[on_cpu].sum() / 3600:.1f}"


def _trained(recorded: Recorded, papers: tuple[str, ...]):
    runs = trained(read_costs(recorded.folder / "cost.csv"))
    return runs[runs["paper"].isin(papers)] if papers else runs


COUNTS: dict[str, Callable[..., str]] = {
    "methods": lambda recorded: str(len(methods_compared(recorded))),
    "comparable": comparable,
    "rows": lambda recorded: str(len(_distances(recorded))),
    "rows near": rows_near,
    "pairs": pairs_ahead,
    "above": seeds_above,
    "sign range": sign_range,
    "tests": tests,
    "runs": lambda recorded: str(len(recorded.results.runs)),
    "trained": trained_runs,
    "core-hours": core_hours,
}
