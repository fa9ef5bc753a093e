"""Claims about numbers of tables: a predicate of config/published/claims.csv, judged on our means over seeds."""

import re
from collections.abc import Callable

from raretok.reporting.definition import Definition, Method
from raretok.reporting.generated_table import UNIQ, metric_group
from raretok.reporting.jackknife import mean_of, shares
from raretok.reporting.predicates import Missing, Truth, evaluate
from raretok.reporting.results import Printed, Results, gpt2_values, is_initialised
from raretok.reporting.table_kinds import data_value, measured_at

# The values that a loop of a predicate runs over: `in ('base','big')`.
LOOP = re.compile(r"\bin \(((?:\s*'[^']*'\s*,?)+)\)")


def truths_of_means(predicate: str, definition: Definition, results: Results) -> tuple[dict[int, Truth], bool]:
    """The truth of a predicate on our means over seeds, with each seed's share in it (`jackknife.shares`).

    And whether any of its numbers has seeds: one without (of the data, of weights that someone else trained) is the
    same for every seed; where all are, there is one truth, at 0. Raises Missing.
    """
    truth_on, seeds = _on_means(predicate, definition, results)
    return shares(seeds or [0], truth_on), bool(seeds)


def truth_of_means(predicate: str, definition: Definition, results: Results) -> tuple[Truth, int]:
    """The truth of a predicate on our means over seeds, and how many those are, 0 of none; raises Missing."""
    truth_on, seeds = _on_means(predicate, definition, results)
    return truth_on(seeds), len(seeds)


def has_seeds(predicate: str, definition: Definition) -> bool:
    """Whether more training seeds could decide a predicate: whether any of its numbers has some, run or not."""
    return any(_has_seeds(definition, *key) for key in _needed(predicate))


def _has_seeds(definition: Definition, table: str, row: str, column: str, group: str) -> bool:
    entry = definition.tables.get(table, {})
    if entry.get("kind") == "gpt2":
        return is_initialised(column)
    return row not in entry.get("data", {})


def expected_seeds(predicate: str, definition: Definition) -> int:
    """How many seeds the scale has of all methods that a predicate compares; 0 where it compares none."""
    sets = []
    for table, row, _, _ in _needed(of_this_scale(predicate, definition)):
        entry = definition.tables.get(table, {})
        method = _labelled(definition.of(table), entry, row) if "methods" in entry else None
        sets += [set(method.seeds)] if method and row not in entry.get("data", {}) else []
    return len(set.intersection(*sets)) if sets else 0


def _on_means(
    predicate: str, definition: Definition, results: Results
) -> tuple[Callable[[list[int]], Truth], list[int]]:
    """The truth of a predicate at this scale on the means over some seeds, and the seeds that all its numbers have."""
    predicate = of_this_scale(predicate, definition)
    numbers = {key: _measured(definition, results, *key) for key in _needed(predicate)}
    seeded = [values for values in numbers.values() if isinstance(values, dict)]

    def truth_on(seeds: list[int]) -> Truth:
        def look_up(table, row, column, group=""):
            values = numbers[table, row, column, group]
            return mean_of(values, seeds) if isinstance(values, dict) else values

        return evaluate(predicate, look_up)

    return truth_on, common_seeds(seeded) if seeded else []


def printed_truth(predicate: str, printed: dict[tuple, Printed]) -> Truth:
    """The truth of a predicate on the paper's own numbers."""
    return evaluate(predicate, lambda table, row, column, group="": printed[table, row, column, group].value)


def of_this_scale(predicate: str, definition: Definition) -> str:
    """A predicate whose loops over printed groups pass over those whose experiment the scale leaves out.

    A loop that would be left with nothing stays as it is: then its numbers are missing.
    """
    left_out = {repr(group) for table, group, _ in left_out_groups(definition) if f"'{table}'" in predicate}

    def shortened(match: re.Match) -> str:
        values = re.findall(r"'[^']*'", match[1])
        kept = [value for value in values if value not in left_out]
        return f"in ({','.join(kept)},)" if 0 < len(kept) < len(values) else match[0]

    return LOOP.sub(shortened, predicate)


def left_out_groups(definition: Definition) -> list[tuple[str, str, str]]:
    """(table, printed group, experiment) of tables that compare experiments, where the scale leaves that one out."""
    return [
        (table, group, experiment)
        for table, entry in definition.tables.items()
        if entry["kind"] == "metrics"
        for group, experiment in entry.get("experiments", {}).items()
        if experiment not in definition.settings
    ]


def common_seeds(values) -> list[int]:
    """Seeds that all of the per-seed `values` have; raises Missing where there is none."""
    seeds = sorted(set.intersection(*(set(of_seed) for of_seed in values)))
    if not seeds:
        raise Missing("no seed was run for all the methods compared")
    return seeds


def _needed(predicate: str) -> list[tuple[str, str, str, str]]:
    """Every number that a predicate asks for; no predicate's questions depend on the answers."""
    asked = []

    def ask(table, row, column, group=""):
        asked.append((table, row, column, group))
        return 1.0

    evaluate(predicate, ask)
    return list(dict.fromkeys(asked))


def _measured(
    definition: Definition, results: Results, table: str, row: str, column: str, group: str
) -> dict[int, float] | float:
    """Our value of a printed number: by seed, or one number where there is no seed. Raises Missing."""
    entry = definition.tables.get(table)
    if entry is None:
        raise Missing(f"{table} is not made")
    if entry["kind"] == "gpt2":
        return _gpt2_number(definition, results, row, column)
    shown = definition.of(table)
    if row in entry.get("data", {}):
        value = data_value(shown, table, results, row, column, group)
        if value is None:
            raise Missing(f"no run of {table} was made")
        return value
    for where, name, experiment in left_out_groups(definition):
        if (where, name) == (table, group):
            raise Missing(f"{experiment} is left out at this scale")
    method = _labelled(shown, entry, row)
    if entry["kind"] == "generated":
        columns, group = {UNIQ: {"metric": "generated_uniq"}}, metric_group(entry, group)
    else:
        columns = entry.get("columns", {})
    if method is None or column not in columns:
        raise Missing(f"{table} has no {row}, {column}")
    values = measured_at(results, entry, method, columns[column], group)
    if not values:
        raise Missing(f"{method.name} was not run ({column} {group})".replace(" )", ")"))
    return values


def _gpt2_number(definition: Definition, results: Results, row: str, column: str) -> dict[int, float] | float:
    model = definition.gpt2["models"].get(row)
    measured = results.gpt2(model["repository"]) if model else None
    if measured is None:
        raise Missing(f"{row} was not measured")
    values = gpt2_values(measured, column)
    if values is None:
        raise Missing(f"{row}, pre-trained: {measured.get('reason') or 'was not measured'}")
    return values


def _labelled(definition: Definition, entry: dict, label: str) -> Method | None:
    methods = (definition.method(name) for name in entry.get("methods", []))
    return next((method for method in methods if method.label == label), None)
