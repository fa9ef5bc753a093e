"""Improvement of methods over the first one of their table: paired differences and probabilities over seeds.

Everything here is over training seeds; tests that resample test items are in `page/page_statistics.py`. No interval is
corrected for the number of comparisons.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from rarepapers.reporting.claims.truths import difference
from rarepapers.reporting.corpus_names import data_set
from rarepapers.reporting.csv_rows import csv_number
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.report_options import add_report_arguments, write_for_papers
from rarepapers.reporting.results import Printed, Results, printed_numbers
from rarepapers.reporting.statistics.bootstrap import bootstrap_interval, probability_of_improvement
from rarepapers.reporting.statistics.intervals import Interval, t_interval
from rarepapers.reporting.statistics.over_seeds import mean_of, not_finite
from rarepapers.reporting.tables.cells import DIRECTIONS, measured_at, places_of
from rarepapers.reporting.tables.comparison_table import BETTER
from rarepapers.reporting.tables.method_comparison import chosen_candidate, measured

COLUMNS = [
    *("paper", "item", "row", "against", "column", "group", "better", "seeds", "not_finite"),
    *("difference", "lower", "upper"),
    *("bootstrap_lower", "bootstrap_upper", "probability", "probability_lower", "probability_upper"),
]
ESTIMATES = COLUMNS[COLUMNS.index("difference") :]
DIFFERENCES = ESTIMATES[:5]
ALL = "all"  # name of the group for the mean over the experiments that an item compares
Pair = tuple[dict[int, float], dict[int, float]]  # values by seed of the first method and of the other, same seeds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `improvement`."""
    write_for_papers(arguments, improvements, COLUMNS)


def improvements(definition: Definition, results: Results, published: Path) -> list[dict]:
    """The rows of improvement.csv for one paper: tables of metrics, and items that compare a column over experiments.

    Methods without a common seed with the first one have no row.
    """
    printed = printed_numbers(published, definition.paper)
    rows = []
    for item, entry in (definition.tables | definition.figures).items():
        if entry.get("kind") == "metrics":
            rows += _of_table(definition.of(item), item, results, printed)
        elif _compares(entry):
            rows += _over_experiments(definition.of(item), item, entry, results)
    return rows


def _compares(entry: dict) -> bool:
    """Whether an item compares experiments; a figure of methods with candidates repeats their table and is left out."""
    return entry.get("kind") == "comparison" or (
        "kind" not in entry and "columns" in entry and "candidates" not in entry
    )


def _contest(about: dict, pairs: dict[str, Pair], data_sets: bool, alike: bool = True) -> Iterator[dict]:
    """Rows of a method against the first one in a column: one per group, and for data sets also one for all of them.

    alike: whether the data sets have numbers of one unit and size, so that differences can be averaged.
    """
    shown = about | {"better": "" if about["better"] == "none" else about["better"]}
    for group, pair in pairs.items():
        yield shown | {"group": group} | compare([pair], about["better"])
    if data_sets and len(pairs) > 1 and _shared_seeds(pairs.values()):
        whole = compare(list(pairs.values()), about["better"])
        yield shown | {"group": ALL} | (whole if alike else whole | dict.fromkeys(DIFFERENCES, ""))


def _of_table(definition: Definition, item: str, results: Results, printed: dict[tuple, Printed]) -> Iterator[dict]:
    """The rows of a table of metrics."""
    entry = definition.entry(item)
    # A column takes the direction of its printed rows; rows of the data have none.
    directed = {key: number.direction for key, number in printed.items() if number.direction != "none"}
    directions = {column: direction for (where, _, column, _), direction in directed.items() if where == item}
    first, *others = definition.methods_of(item)
    for method in others:
        for column, how in entry["columns"].items():
            pairs = {}
            for group, _, _ in places_of(entry, {column: how}):
                if first.is_measured_on(group) and method.is_measured_on(group):
                    pairs |= _paired(group, *(measured_at(results, entry, one, how, group) for one in (first, method)))
            better = directions.get(column) or DIRECTIONS.get(how["metric"], "none")
            about = {"paper": definition.paper, "item": item, "row": method.label, "against": first.label}
            yield from _contest(about | {"column": column, "better": better}, pairs, "experiments" in entry)


def _over_experiments(definition: Definition, item: str, entry: dict, results: Results) -> Iterator[dict]:
    """The rows of an item whose columns name their group in each experiment.

    For methods with candidates, the candidate chosen in each experiment.
    """
    named = entry["experiments"]
    if named == "all":
        named = {data_set(definition.corpus(name), name): name for name in definition.settings}
    named = {title: experiment for title, experiment in named.items() if experiment in definition.settings}
    sides = _sides(definition, item, results, named)
    (against, theirs), *others = sides.items()
    for label, ours in others:
        for column, how in entry["columns"].items():
            pairs = {}
            for title, experiment in named.items():
                if experiment in how["of"] and ours[title] and theirs[title]:
                    pairs |= _paired(
                        title, *(measured(results, one[title], how, how["of"][experiment]) for one in (theirs, ours))
                    )
            about = {"paper": definition.paper, "item": item, "row": label, "against": against, "column": column}
            about["better"] = (DIRECTIONS | BETTER).get(how["metric"], "none")
            yield from _contest(about, pairs, True, "candidates" not in entry)


def _sides(
    definition: Definition, item: str, results: Results, named: dict[str, str]
) -> dict[str, dict[str, Method | None]]:
    """By label, the method in each experiment; None if it has none, or if the choice is provisional."""
    entry = definition.entry(item)
    if "candidates" not in entry:
        methods = definition.methods_of(item)
        return {one.label: {title: one.within(name) for title, name in named.items()} for one in methods}
    sides = {}
    for family in entry["candidates"].values():
        chosen = {title: chosen_candidate(definition, results, family, name) for title, name in named.items()}
        sides[family["label"]] = {
            title: one.method if one and not one.is_provisional else None for title, one in chosen.items()
        }
    return sides


def compare(pairs: list[Pair], better: str) -> dict:
    """The columns of improvement.csv from `seeds` on, for one data set or the mean over several.

    difference: method minus first, in the column's unit, mean over common seeds; `lower` and `upper` are its 95% t
    interval, `bootstrap_...` its bootstrap interval; empty if undefined. probability: that a run of the method is
    better in the direction `better` (up, down); empty without a direction, for one seed, where it could only be 0, 1 or
    a half, and if a number is undefined. not_finite: the seeds whose difference is not finite.
    """
    seeds = _shared_seeds(pairs)
    of_seed = {seed: mean_of(_difference(other[seed], first[seed]) for first, other in pairs) for seed in seeds}
    differences = list(of_seed.values())
    mean = t_interval(differences)
    again = bootstrap_interval(differences)
    chance = None
    defined = not any(math.isnan(one[seed]) for pair in pairs for one in pair for seed in seeds)
    if better != "none" and len(seeds) > 1 and defined:
        samples = [[[of_one[seed] for seed in seeds] for of_one in column] for column in zip(*pairs, strict=True)]
        chance = probability_of_improvement(*(samples if better == "up" else reversed(samples)))
    numbers = (*mean, again.lower, again.upper, *(chance or Interval(None, None, None)))
    known = (None if number is None or math.isnan(number) else number for number in numbers)
    shown = dict(zip(ESTIMATES, map(csv_number, known), strict=True))
    return {"seeds": len(seeds), "not_finite": not_finite(of_seed)} | shown


def _difference(a: float, b: float) -> float:
    """a - b, and exactly 0 for finite numbers that are equal up to rounding; NaN for equal infinities."""
    return difference(a, b) if math.isfinite(a) and math.isfinite(b) else a - b


def _paired(group: str, first: dict[int, float], other: dict[int, float]) -> dict[str, Pair]:
    """Values of both on their common seeds, under the group's name; empty if there are none."""
    shared = sorted(first.keys() & other.keys())
    return {group: tuple({seed: values[seed] for seed in shared} for values in (first, other))} if shared else {}


def _shared_seeds(pairs: Iterable[Pair]) -> list[int]:
    return sorted(set.intersection(*(set(first) for first, _ in pairs)))
