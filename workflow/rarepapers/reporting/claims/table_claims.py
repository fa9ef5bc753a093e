"""Claims about numbers of tables: quantities by seed and on the printed numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rarepapers.reporting.claims.jackknife import mean_of
from rarepapers.reporting.claims.quantities import (
    Comparison,
    Key,
    comparisons,
    in_scale,
    left_out_groups,
    of_this_scale,
)
from rarepapers.reporting.claims.truths import Missing, Undefined, of_seed
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.printed_places import UNIQ
from rarepapers.reporting.results import Printed, Results, gpt2_values, is_initialised
from rarepapers.reporting.statistics.moderated_t import Spread, single_runs
from rarepapers.reporting.tables.cells import data_value, measured_at
from rarepapers.reporting.tables.generated_table import metric_group

Numbers = dict[Key, dict[int, float] | float]  # values by seed, or one number for quantities without seeds


@dataclass(frozen=True)
class Compared:
    """One comparison of a claim, on the scale of its test (the logarithm of a ratio).

    values: by seed; for quantities without seeds a single value at 0. pool: the same quantity with each other method of
    the experiment as the first row, by seed. paired: whether it compares two rows that both have seeds. methods:
    (experiment, method) whose runs it uses. rows: names of its rows in the paper. single: the spread of the quantity of
    two runs that share no random numbers; None unless `paired` and known.
    """

    label: str
    values: dict[int, float]
    seeded: bool
    pool: list[dict[int, float]]
    paired: bool
    methods: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    single: Spread | None


def compared(quantity: str, unit: str, definition: Definition, results: Results) -> list[Compared]:
    """The comparisons of a quantity at this scale, each on the seeds that all its rows have; raises Missing."""
    found = of_this_scale(comparisons(quantity), definition)
    return [_compared(one, label, unit, definition, results) for one, label in zip(found, labels(found), strict=True)]


def _compared(one: Comparison, label: str, unit: str, definition: Definition, results: Results) -> Compared:
    numbers = {key: measured(definition, results, key) for key in one.keys}
    places = {key: place_of(definition, key) for key in one.keys if isinstance(numbers[key], dict)}
    methods = tuple(dict.fromkeys((place[1].experiment, place[1].name) for place in places.values() if place))
    rows = list(dict.fromkeys(key[:2] for key in one.keys))
    paired = len({key[:2] for key in places}) == 2
    # Pooling needs a row that is compared with one other row or with none.
    poolable = len(rows) <= 2 and all(places.get(key) for key in one.keys if key[:2] == rows[0])
    pool = _pool(one, numbers, places, rows[0], unit, definition, results) if poolable else []
    single = _single(one, rows, numbers, places, unit, definition, results) if paired else None
    names = tuple(row for _, row in rows)
    return Compared(label, by_seed(one, numbers, unit), bool(_seeded(numbers)), pool, paired, methods, names, single)


def _single(
    one: Comparison, rows: list, numbers: Numbers, places: dict, unit: str, definition: Definition, results: Results
) -> Spread | None:
    """The spread of a comparison of two runs, one of each row, that have no random numbers in common.

    A row varies at least as much as the method of its experiment with the most seeds: three seeds do not show that one
    in ten ends elsewhere.
    """
    own, known = [], []
    try:
        for row in rows:
            part = Comparison(*(tuple(key for key in side if key[:2] == row) for side in one))
            own.append(by_seed(part, {key: numbers[key] for key in part.keys}, unit))
            of_row = {key: places.get(key) for key in part.keys}
            if not all(of_row.values()):
                known.append(own[-1])
                continue
            found = [_of_method(results, method, of_row) for method in _trained(definition, of_row)]
            most = by_seed(part, max(found, key=lambda values: min(map(len, values.values()))), unit)
            known.append(most if len(most) > len(own[-1]) else own[-1])
    except Undefined:
        return None
    return single_runs(own, known)


def _trained(definition: Definition, places: dict) -> list[Method]:
    """The methods that are trained in the experiment of these places, which is one."""
    experiment = next(iter(places.values()))[1].experiment
    methods = [method.within(experiment) for method in definition.methods.values()]
    return [method for method in methods if method.is_trained_in(experiment)]


def _of_method(results: Results, method: Method, places: dict) -> Numbers:
    """The numbers at these places, of another method."""
    return {key: measured_at(results, entry, method, how, group) for key, (entry, _, how, group) in places.items()}


def _pool(
    one: Comparison, numbers: Numbers, places: dict, subject, unit: str, definition: Definition, results: Results
) -> list[dict]:
    """The quantity with each method of the experiment as the `subject` row, for methods with several seeds.

    If the row that it is compared with has one seed, the method with most seeds takes its place: differences to that
    method have a similar spread, which shows how much a second seed may differ.
    """
    own = {key: place for key, place in places.items() if key[:2] == subject}
    other = {key: place for key, place in places.items() if key[:2] != subject and place}
    trained = _trained(definition, own)

    def with_each(numbers: dict, against: set[str]) -> list[dict]:
        found = []
        for method in trained:
            if method.name in against:
                continue
            try:
                values = by_seed(one, numbers | _of_method(results, method, own), unit)
            except Missing:
                continue
            if len(values) > 1 and all(map(math.isfinite, values.values())):
                found.append(values)
        return found

    found = with_each(numbers, {place[1].name for place in other.values()})
    if found or not other:
        return found
    most = max(trained, key=lambda method: min(map(len, _of_method(results, method, other).values())))
    return with_each(numbers | _of_method(results, most, other), {most.name})


def by_seed(one: Comparison, numbers: Numbers, unit: str) -> dict[int, float]:
    """A comparison on each seed that all numbers have, 0 if they have no seeds; raises Missing."""
    values = {}
    for seed in _seeds(numbers):
        known = {key: of[seed] if isinstance(of, dict) else of for key, of in numbers.items()}
        values[seed] = of_seed(seed, lambda known=known: in_scale(one.value(known, unit), unit))
    return values


def printed_quantities(found: Iterable[Comparison], unit: str, printed: dict[tuple, Printed]) -> list[float | None]:
    """Comparisons of the printed numbers, on the scale of their test; None if one of them is not printed."""
    numbers = {key: number.value for key, number in printed.items()}
    return [in_scale(one.value(numbers, unit), unit) if numbers.keys() >= set(one.keys) else None for one in found]


def quantities_of_means(quantity: str, unit: str, definition: Definition, results: Results) -> tuple[list[float], int]:
    """Comparisons of our means over common seeds, and the number of these seeds; raises Missing."""
    found = of_this_scale(comparisons(quantity), definition)
    numbers = {key: measured(definition, results, key) for one in found for key in one.keys}
    seeds = _seeds(numbers)
    means = {key: mean_of(of, seeds) if isinstance(of, dict) else of for key, of in numbers.items()}
    return [in_scale(one.value(means, unit), unit) for one in found], len(seeds) if _seeded(numbers) else 0


def labels(found: list[Comparison]) -> list[str]:
    """Labels that distinguish comparisons: for each, the names in it that are not in all of them."""
    words = [list(dict.fromkeys(word for key in one.keys for word in key[1:] if word)) for one in found]
    shared = set.intersection(*map(set, words))
    return [", ".join(word for word in of_one if word not in shared) for of_one in words]


def has_seeds(quantity: str, definition: Definition) -> bool:
    """Whether more training seeds could decide a claim: whether any of its numbers has seeds, run or not."""
    return any(_has_seeds(definition, key) for one in comparisons(quantity) for key in one.keys)


def _has_seeds(definition: Definition, key: Key) -> bool:
    entry = definition.tables.get(key.table, {})
    if entry.get("kind") == "gpt2":
        return is_initialised(key.column)
    return key.row not in entry.get("data", {})


def expected_seeds(quantity: str, definition: Definition) -> int:
    """The number of common seeds that the scale has for all methods of a quantity; 0 if it compares none."""
    keys = (key for one in of_this_scale(comparisons(quantity), definition) for key in one.keys)
    sets = [set(place[1].seeds) for key in keys if (place := place_of(definition, key))]
    return len(set.intersection(*sets)) if sets else 0


def common_seeds(values) -> list[int]:
    """Seeds that all of the per-seed `values` have; raises Missing if there are none."""
    seeds = sorted(set.intersection(*(set(of_seed) for of_seed in values)))
    if not seeds:
        raise Missing("the compared methods have no finished seed in common")
    return seeds


def _seeded(numbers: Numbers) -> list[dict[int, float]]:
    return [of for of in numbers.values() if isinstance(of, dict)]


def _seeds(numbers: Numbers) -> list[int]:
    return common_seeds(_seeded(numbers)) if _seeded(numbers) else [0]


def measured(definition: Definition, results: Results, key: Key) -> dict[int, float] | float:
    """Our value of a printed number: by seed, or one number if it has no seeds. Raises Missing."""
    table, row, column, group = key
    place = place_of(definition, key)
    if place is None and definition.tables[table]["kind"] == "gpt2":
        return _gpt2_number(definition, results, row, column)
    if place is None:
        value = data_value(definition.of(table), table, results, row, column, group)
        if value is None:
            raise Missing(f"no run of {table} was made")
        return value
    entry, method, how, group = place
    values = measured_at(results, entry, method, how, group)
    if not values:
        raise Missing(f"{method.name} was not run ({column} {group})".replace(" )", ")"))
    return values


def place_of(definition: Definition, key: Key) -> tuple | None:
    """Arguments of `measured_at` for a printed number: entry, method, column, group; None for GPT-2 and for the data.

    Raises Missing if the scale does not have it.
    """
    table, row, column, group = key
    entry = definition.tables.get(table)
    if entry is None:
        raise Missing(f"{table} is not made")
    if entry["kind"] == "gpt2" or row in entry.get("data", {}):
        return None
    for where, name, experiment in left_out_groups(definition):
        if (where, name) == (table, group):
            raise Missing(f"{experiment} is left out at this scale")
    method = next((method for method in definition.methods_of(table) if method.label == row), None)
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
