"""Claims about numbers of tables: their quantities by seed, and their predicates on our means over seeds."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from raretok.reporting.claims.jackknife import mean_of, shares
from raretok.reporting.claims.predicates import Lookup, Missing, Truth, Undefined, evaluate, quantities
from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Printed, Results, gpt2_values, is_initialised
from raretok.reporting.tables.cells import data_value, measured_at
from raretok.reporting.tables.generated_table import UNIQ, metric_group

# The values that a loop of a predicate runs over: `in ('base','big')`.
LOOP = re.compile(r"\bin \(((?:\s*'[^']*'\s*,?)+)\)")

Key = tuple[str, str, str, str]  # table, row, column, group


@dataclass(frozen=True)
class Compared:
    """One number of a claim's quantity, in the scale in which it is tested (the logarithm of a ratio).

    values: by seed; of what has no seeds one, at 0. pool: the same number with each other method of the experiment in
    the place of the first row, by seed. paired: whether it holds two rows against each other that both have seeds.
    methods: (experiment, method) whose runs it rests on.
    """

    label: str
    values: dict[int, float]
    seeded: bool
    pool: list[dict[int, float]]
    paired: bool
    methods: tuple[tuple[str, str], ...]


def compared(quantity: str, log: bool, definition: Definition, results: Results) -> list[Compared]:
    """The numbers of a quantity at this scale, each on the seeds that all its rows have; raises Missing."""
    parts = quantities(of_this_scale(quantity, definition))
    asked = [keys_of(part) for part in parts]
    return [
        _compared(part, keys, label, log, definition, results)
        for part, keys, label in zip(parts, asked, labels(asked), strict=True)
    ]


def _compared(part, keys: list[Key], label: str, log: bool, definition: Definition, results: Results) -> Compared:
    numbers = {key: _measured(definition, results, *key) for key in keys}
    values = _by_seed(part, numbers, log)
    seeded = any(isinstance(of_key, dict) for of_key in numbers.values())
    places = {key: place_of(definition, *key) for key in keys if isinstance(numbers[key], dict)}
    methods = tuple(dict.fromkeys((place[1].experiment, place[1].name) for place in places.values() if place))
    rows = list(dict.fromkeys(key[:2] for key in keys))
    paired = len({key[:2] for key in places}) == 2
    # A row is pooled with others where it is held against one more, or against none.
    poolable = len(rows) <= 2 and rows[0] == keys[0][:2] and all(places.get(key) for key in keys if key[:2] == rows[0])
    pool = _pool(part, numbers, places, rows[0], log, definition, results) if poolable else []
    return Compared(label, values, seeded, pool, paired, methods)


def _pool(part, numbers, places, subject, log: bool, definition: Definition, results: Results) -> list[dict]:
    """The number with each method of the experiment in the place of the `subject` row, of those with several seeds.

    Where the row that it is compared with has one seed, the method with most seeds takes its place: differences to that
    one spread alike, and say how far a second seed might be.
    """
    own = {key: place for key, place in places.items() if key[:2] == subject}
    other = {key: place for key, place in places.items() if key[:2] != subject and place}
    experiment = next(iter(own.values()))[1].experiment
    trained = [
        method.within(experiment)
        for method in definition.methods.values()
        if method.within(experiment).is_trained_in(experiment)
    ]

    def of_method(method: Method, keys: dict) -> dict:
        return {key: measured_at(results, entry, method, how, group) for key, (entry, _, how, group) in keys.items()}

    def with_each(numbers: dict, against: set[str]) -> list[dict]:
        found = []
        for method in trained:
            if method.name in against:
                continue
            try:
                values = _by_seed(part, numbers | of_method(method, own), log)
            except Missing:
                continue
            if len(values) > 1 and all(map(math.isfinite, values.values())):
                found.append(values)
        return found

    found = with_each(numbers, {place[1].name for place in other.values()})
    if found or not other:
        return found
    most = max(trained, key=lambda method: min(map(len, of_method(method, other).values())))
    return with_each(numbers | of_method(most, other), {most.name})


def _by_seed(part, numbers: dict[Key, dict[int, float] | float], log: bool) -> dict[int, float]:
    """A number of a quantity on each seed that all numbers have, 0 for none; raises Missing."""
    seeded = [of_key for of_key in numbers.values() if isinstance(of_key, dict)]
    values = {}
    for seed in common_seeds(seeded) if seeded else [0]:
        value = part(_lookup({key: of[seed] if isinstance(of, dict) else of for key, of in numbers.items()}))
        values[seed] = in_logs(value) if log else value
    return values


def printed_quantities(quantity: str, log: bool, printed: dict[tuple, Printed]) -> list[float]:
    """The numbers of a quantity on the paper's own numbers, in the scale in which they are tested."""
    look_up = _lookup({key: number.value for key, number in printed.items()})
    values = [part(look_up) for part in quantities(quantity)]
    return [in_logs(value) for value in values] if log else values


def in_logs(ratio: float) -> float:
    """The logarithm of a ratio; raises Undefined where there is none."""
    if ratio <= 0:
        raise Undefined("a ratio that is not above 0")
    return math.log(ratio)


def labels(asked: list[list[Key]]) -> list[str]:
    """What tells the numbers of a quantity apart: of each, the names in it that are not in all of them."""
    words = [list(dict.fromkeys(word for key in keys for word in key[1:] if word)) for keys in asked]
    shared = set.intersection(*map(set, words))
    return [", ".join(word for word in of_part if word not in shared) for of_part in words]


def keys_of(part: Callable[[Lookup], float]) -> list[Key]:
    """The numbers that a number of a quantity asks for, in its order."""
    asked = []

    def ask(table, row, column, group=""):
        asked.append((table, row, column, group))
        return 1.0

    part(ask)
    return list(dict.fromkeys(asked))


def _lookup(numbers: dict[Key, float]) -> Lookup:
    return lambda table, row, column, group="": numbers[table, row, column, group]


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


def has_seeds(quantity: str, definition: Definition) -> bool:
    """Whether more training seeds could decide a claim: whether any number of its quantity has some, run or not."""
    return any(_has_seeds(definition, *key) for part in quantities(quantity) for key in keys_of(part))


def _has_seeds(definition: Definition, table: str, row: str, column: str, group: str) -> bool:
    entry = definition.tables.get(table, {})
    if entry.get("kind") == "gpt2":
        return is_initialised(column)
    return row not in entry.get("data", {})


def expected_seeds(quantity: str, definition: Definition) -> int:
    """How many seeds the scale has of all methods that a quantity compares; 0 where it compares none."""
    sets = []
    for part in quantities(of_this_scale(quantity, definition)):
        for table, row, _, _ in keys_of(part):
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
    return evaluate(predicate, _lookup({key: number.value for key, number in printed.items()}))


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
    return keys_of(lambda look_up: evaluate(predicate, look_up))


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
    entry, method, how, group = place_of(definition, table, row, column, group)
    values = measured_at(results, entry, method, how, group)
    if not values:
        raise Missing(f"{method.name} was not run ({column} {group})".replace(" )", ")"))
    return values


def place_of(definition: Definition, table: str, row: str, column: str, group: str) -> tuple | None:
    """What `measured_at` needs for a printed number: entry, method, column, group; None of a GPT-2. Raises Missing."""
    entry = definition.tables[table]
    if entry["kind"] == "gpt2":
        return None
    method = _labelled(definition.of(table), entry, row)
    if entry["kind"] == "generated":
        columns, group = {UNIQ: {"metric": "generated_uniq"}}, metric_group(entry, group)
    else:
        columns = entry.get("columns", {})
    if method is None or column not in columns:
        raise Missing(f"{table} has no {row}, {column}")
    return entry, method, columns[column], group


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
