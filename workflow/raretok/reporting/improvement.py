"""Whether methods are better than the first one of their table: over seeds, paired and as a probability.

All is of training seeds; tests that resample test items stand apart (`paired_tests.py`). No interval here is corrected
for the number of comparisons.
"""

import argparse
import statistics
from pathlib import Path

from raretok.reporting.bootstrap import bootstrap_interval, probability_of_improvement
from raretok.reporting.definition import Definition, Method, parse_definition
from raretok.reporting.intervals import Interval, t_interval
from raretok.reporting.predicates import difference
from raretok.reporting.results import Printed, Results, printed_numbers, read_results
from raretok.reporting.rows import csv_number, read_rows, write_rows
from raretok.reporting.table_kinds import DIRECTIONS, measured_at, places_of

COLUMNS = [
    *("paper", "item", "row", "against", "column", "group", "better", "seeds", "difference", "lower", "upper"),
    *("bootstrap_lower", "bootstrap_upper", "probability", "probability_lower", "probability_upper"),
]
ALL = "all"  # in the place of a group: the mean over the experiments that an item compares
Pair = tuple[dict[int, float], dict[int, float]]  # values by seed of the first method and of the other, same seeds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--definitions", nargs="+", required=True, help="one JSON of runs.py for each paper")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with metrics.csv")
    parser.add_argument("--published", type=Path, default=Path("config/published"))
    parser.add_argument("--output", type=Path, required=True, help="the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `improvement`."""
    results = read_results(arguments.results)
    rows = [
        row
        for text in arguments.definitions
        for row in improvements(parse_definition(text), results, arguments.published)
    ]
    write_rows(arguments.output, COLUMNS, rows)


def read_improvement(path: Path) -> list[dict[str, str]]:
    """The rows of improvement.csv as text; UserError where there is none."""
    return read_rows(path)


def improvements(definition: Definition, results: Results, published: Path) -> list[dict]:
    """The rows of improvement.csv on one paper: its tables of metrics, and figures that name `columns`.

    What has no seed in common with the first method has no row.
    """
    printed = printed_numbers(published, definition.paper)
    rows = []
    for item, entry in (definition.tables | definition.figures).items():
        if entry.get("kind", "metrics") == "metrics" and "columns" in entry:
            rows += _of_item(definition.of(item), item, entry, results, printed)
    return rows


def _of_item(
    definition: Definition, item: str, entry: dict, results: Results, printed: dict[tuple, Printed]
) -> list[dict]:
    if entry.get("experiments") == "all":
        entry = entry | {"experiments": {name: name for name in definition.settings}}
    columns = entry["columns"]
    # A column has the direction of all its printed rows but those of the data, which have none.
    directed = {key: number.direction for key, number in printed.items() if number.direction != "none"}
    directions = {column: direction for (where, _, column, _), direction in directed.items() if where == item}
    first, *others = map(definition.method, entry["methods"])
    rows = []
    for method in others:
        pairs: dict[str, dict[str, Pair]] = {}
        for group, column, how in places_of(entry, columns):
            pair = _paired(results, entry, first, method, how, group)
            if pair:
                pairs.setdefault(column, {})[group] = pair
        for column, by_group in pairs.items():
            better = directions.get(column) or DIRECTIONS.get(columns[column]["metric"], "none")
            about = {"paper": definition.paper, "item": item, "row": method.label, "against": first.label}
            about |= {"column": column, "better": "" if better == "none" else better}
            rows += [about | {"group": group} | compare([pair], better) for group, pair in by_group.items()]
            if "experiments" in entry and len(by_group) > 1 and _shared_seeds(by_group.values()):
                rows.append(about | {"group": ALL} | compare(list(by_group.values()), better))
    return rows


def compare(pairs: list[Pair], better: str) -> dict:
    """The columns of improvement.csv from `seeds` on, of one data set or of the mean over several.

    difference: of the method from the first, in the column's unit, mean over the seeds that all have; `lower` and
    `upper` are its 95% t interval, `bootstrap_...` that by resampled seeds. probability: that a run of the method is
    better, as `better` (up, down) says; empty for none, and for one seed, of which it could only be 0, 1 or a half.
    """
    seeds = _shared_seeds(pairs)
    differences = [statistics.fmean(difference(other[seed], first[seed]) for first, other in pairs) for seed in seeds]
    mean = t_interval(differences)
    again = bootstrap_interval(differences)
    chance = None
    if better != "none" and len(seeds) > 1:
        samples = [[[of_one[seed] for seed in seeds] for of_one in column] for column in zip(*pairs, strict=True)]
        chance = probability_of_improvement(*(samples if better == "up" else reversed(samples)))
    numbers = {
        "difference": mean.mean,
        "lower": mean.lower,
        "upper": mean.upper,
        "bootstrap_lower": again.lower,
        "bootstrap_upper": again.upper,
    }
    numbers |= dict(zip(COLUMNS[-3:], chance or Interval(None, None, None), strict=True))
    return {"seeds": len(seeds)} | {name: csv_number(value) for name, value in numbers.items()}


def _paired(results: Results, entry: dict, first: Method, method: Method, how: dict, group: str) -> Pair | None:
    """What both were measured at, in the seeds that both have; None where there is none."""
    if not (first.is_measured_on(group) and method.is_measured_on(group)):
        return None
    pair = [measured_at(results, entry, one, how, group) for one in (first, method)]
    shared = sorted(pair[0].keys() & pair[1].keys())
    return tuple({seed: values[seed] for seed in shared} for values in pair) if shared else None


def _shared_seeds(pairs) -> list[int]:
    return sorted(set.intersection(*(set(first) for first, _ in pairs)))
