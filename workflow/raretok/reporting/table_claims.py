"""Claims about numbers of tables: a predicate of config/published/claims.csv, judged on ours seed by seed."""

import math
import re

from raretok.reporting.definition import Definition, Method
from raretok.reporting.generated_table import UNIQ, metric_group
from raretok.reporting.predicates import Missing, Truth, evaluate
from raretok.reporting.results import Printed, Results, gpt2_values
from raretok.reporting.table_kinds import data_value, measured_at

# The values that a loop of a predicate runs over: `in ('base','big')`.
LOOP = re.compile(r"\bin \(((?:\s*'[^']*'\s*,?)+)\)")


def table_truths(predicate: str, definition: Definition, results: Results) -> tuple[dict[int, Truth], bool]:
    """The truth of a predicate by seed, and whether any of its numbers has seeds; raises Missing.

    A number without seeds (of the data, of weights that someone else trained) is the same for every seed; where all
    are, there is one truth, at 0.
    """
    predicate, numbers, seeds = _asked(predicate, definition, results)
    return {seed: _on_means(predicate, numbers, [seed]) for seed in seeds or [0]}, bool(seeds)


def truths_of_means(predicate: str, definition: Definition, results: Results) -> tuple[dict[int, Truth], bool]:
    """The same on the means over seeds, which is what a claim is about, each seed's share in it as its slack.

    A slack is seldom linear: |x - 0.72| of a mean is less than the mean of |x - 0.72|, and the more seeds, the surer
    would the latter refute what is true. A seed's share is its jackknife pseudo-value, n s - (n - 1) s', of the slack s
    on the means of all n seeds and s' on those of the others; of a linear slack it is the seed's own. One seed, and
    slacks that are infinite, have none: then as `table_truths`.
    Source: Tukey 1958, Bias and Confidence in Not-quite Large Samples.
    """
    predicate, numbers, seeds = _asked(predicate, definition, results)
    if len(seeds) > 1:
        whole = _on_means(predicate, numbers, seeds)
        shares = {}
        for seed in seeds:
            rest = _on_means(predicate, numbers, [other for other in seeds if other != seed])
            shares[seed] = Truth(whole.holds, len(seeds) * whole.slack - (len(seeds) - 1) * rest.slack)
        if all(math.isfinite(share.slack) for share in shares.values()):
            return shares, True
    return table_truths(predicate, definition, results)


def _asked(predicate: str, definition: Definition, results: Results) -> tuple[str, dict, list[int]]:
    """The predicate at this scale, the numbers that it asks for, and the seeds that all have; raises Missing."""
    predicate = of_this_scale(predicate, definition)
    numbers = {key: _measured(definition, results, *key) for key in _needed(predicate)}
    seeded = [values for values in numbers.values() if isinstance(values, dict)]
    return predicate, numbers, common_seeds(seeded) if seeded else []


def _on_means(predicate: str, numbers: dict, seeds: list[int]) -> Truth:
    def look_up(table, row, column, group=""):
        values = numbers[table, row, column, group]
        # Of one seed its own value, to the bit.
        return math.fsum(values[seed] for seed in seeds) / len(seeds) if isinstance(values, dict) else values

    return evaluate(predicate, look_up)


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
