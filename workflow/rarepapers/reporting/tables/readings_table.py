"""Tables of kind `readings`: alternative readings of an ambiguous passage, each compared with the first.

A reading is another method (`readings` is a list, and `methods` has one method per reading, comparison by comparison)
or another way to measure the same method (`readings` says how, for each of the `methods`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Printed, Results, printed_numbers, summarise
from rarepapers.reporting.statistics.intervals import t_interval
from rarepapers.reporting.statistics.over_seeds import not_finite
from rarepapers.reporting.tables.cells import (
    Cell,
    corpus_remark,
    derived_remark,
    measured_at,
    missing_note,
    numbers_of,
    places_of,
)

PAIRED = "mean difference, paired by seed, with its 95% t interval"
NO_SPREAD = "equal differences in all seeds: no interval"
NO_INTERVAL = "not finite in some seeds"
NOT_PAIRED = "no seed with numbers for both"


@dataclass(frozen=True)
class Reading:
    """One reading of a passage: a trained method, and how it is measured.

    suffix: see `with_suffix`. metrics: substitutes for a column's metric, by that metric's name.
    """

    name: str
    method: Method
    checkpoint: str = "best"
    suffix: str = ""
    split: str | None = None
    metrics: dict[str, str] = field(default_factory=dict)

    def per_seed(self, results: Results, entry: dict, how: dict, group: str) -> dict[int, float]:
        """Values by seed of a column (`how`, whose `group` overrides the table's); empty if it was not run."""
        how = how | {"metric": self.metrics.get(how["metric"], how["metric"])}
        if self.split:
            how["split"] = self.split
        group = how.get("group", group)
        return measured_at(results, entry, self.method, how, group, self.checkpoint, self.suffix)


@dataclass(frozen=True)
class ReadingCell(Cell):
    """A number of one reading; or, if `against` names the first reading, the paired difference from it.

    subject: the passage or method that is read in several ways. way: the reading's name.
    """

    subject: str = ""
    way: str = ""
    against: str = ""


def reading_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """For each subject: all readings, then the differences from the first; columns x groups of each."""
    entry = definition.entry(item)
    printed = printed_in(entry, printed_numbers(published, definition.paper))
    compared = list(comparisons(definition, item))
    cells = []
    for subject, readings in compared:
        named = f"{subject}: " if len(compared) > 1 else ""
        for reading in readings:
            cells += _cells(definition, entry, results, printed, subject, named, reading, None)
        for reading in readings[1:]:
            cells += _cells(definition, entry, results, printed, subject, named, reading, readings[0])
    return cells


def reading_outcomes(definition: Definition, item: str, cells: list[ReadingCell]) -> list[str]:
    """The table's question, and for each alternative reading where it differs from the first, by 95% intervals.

    The answer depends on one column and group, which the config names before anything is run, because some of many
    numbers differ by chance.
    """
    entry = definition.entry(item)
    deciding = [cell for cell in cells if cell.against and is_deciding(entry, cell.column, cell.group)]
    where = " of ".join(filter(None, (entry["decides"]["column"], entry["decides"].get("group", ""))))
    said: dict[str, dict[str, list[str]]] = {}
    for cell in deciding:
        lower, upper = cell.interval or (None, None)
        outcome = cell.note if lower is None else "they differ" if lower > 0 or upper < 0 else "no difference shown"
        said.setdefault(f"Reading {cell.way} against {cell.against}", {}).setdefault(outcome, []).append(cell.subject)
    answers = []
    for pair, found in said.items():
        listed = (f"{outcome} ({', '.join(subjects)})" for outcome, subjects in found.items())
        answers.append(f"{pair} ({where}): {'; '.join(listed)}.")
    return [entry["question"], *answers]


def comparisons(definition: Definition, item: str) -> Iterator[tuple[str, list[Reading]]]:
    """(subject, its readings) of a table."""
    entry = definition.entry(item)
    methods = definition.methods_of(item)
    ways = entry["readings"]
    if isinstance(ways, dict):
        for method in methods:
            yield method.label, [Reading(name, method, **how) for name, how in ways.items()]
        return
    for k in range(0, len(methods), len(ways)):
        together = zip(ways, methods[k : k + len(ways)], strict=True)
        yield methods[k].printed_label, [Reading(name, method) for name, method in together]


def _cells(
    definition: Definition,
    entry: dict,
    results: Results,
    printed: dict,
    subject: str,
    named: str,
    reading: Reading,
    first: Reading | None,
) -> Iterator[ReadingCell]:
    """The cells of a reading or, with `first`, of its difference from that reading."""
    about = {"subject": subject, "way": reading.name, "against": first.name if first else ""}
    row = f"{named}{reading.name} - {first.name}" if first else f"{named}{reading.name}"
    for group, column, how in places_of(entry, entry["columns"]):
        values = reading.per_seed(results, entry, how, group)
        numbers = [printed.get((reading.method.printed_label, column, group))]
        place = about | {"row": row, "column": column, "group": group, "format": how["format"]}
        if first is None:
            remarks = _remarks(definition, results, reading.method, values)
            missing = "" if values else missing_note(results, reading.method)
            yield _value_cell(entry, place, values, numbers[0], missing, remarks)
            continue
        others = first.per_seed(results, entry, how, group)
        if first.method.printed_label != reading.method.printed_label:
            numbers.append(printed.get((first.method.printed_label, column, group)))
        missing = "" if values and others else missing_note(results, (reading if others else first).method)
        yield _difference_cell(definition, place, values, others, numbers, missing)


def _remarks(definition: Definition, results: Results, method: Method, values: dict[int, float]) -> tuple[str, ...]:
    missing = f"{len(values)} of {len(method.seeds)} seeds" if 0 < len(values) < len(method.seeds) else ""
    said = (missing, derived_remark(definition, results.training(method)), corpus_remark(definition, method.experiment))
    return tuple(filter(None, said))


def _value_cell(
    entry: dict,
    place: dict,
    values: dict[int, float],
    number: Printed | None,
    missing: str,
    remarks: tuple[str, ...],
) -> ReadingCell:
    found = summarise(values)
    reach = entry["decides"].get("reach")
    if found and reach is not None and is_deciding(entry, place["column"], place["group"]):
        remarks = (
            f"{sum(value >= reach for value in values.values())} of {found.seeds} seeds reach {reach:g}",
            *remarks,
        )
    return ReadingCell(
        **place, **numbers_of(found, number), note="; ".join(filter(None, [missing, *remarks])), remarks=remarks
    )


def _difference_cell(
    definition: Definition,
    place: dict,
    values: dict[int, float],
    others: dict[int, float],
    numbers: list[Printed | None],
    missing: str,
) -> ReadingCell:
    """The paired difference of two readings; numbers: those printed, this reading's first, or one number for both.

    missing: why there are no values of one of them; empty if both have some.
    """
    gaps = {seed: values[seed] - others[seed] for seed in sorted(values.keys() & others.keys())}
    signed = f"+z{place['format']}"  # z: no minus sign before a number that rounds to 0
    theirs = printed_difference(numbers)
    shown = {"published": "" if theirs is None else format(theirs, signed)}
    if not gaps:
        return ReadingCell(**place | {"format": signed}, **shown, note=missing or NOT_PAIRED)
    mean, *_ = found = t_interval(list(gaps.values()))
    named = not_finite(gaps)
    common = f"over the {len(gaps)} seeds that both have" if len(gaps) > 1 else "over the only seed that both have"
    return ReadingCell(
        **place | {"format": signed},
        **shown,
        value=mean,
        interval=found.bounds,
        seeds=len(gaps),
        difference=mean - theirs if definition.comparable and theirs is not None and math.isfinite(mean) else None,
        note=PAIRED if found.bounds else NO_INTERVAL if named else "one seed" if len(gaps) == 1 else NO_SPREAD,
        not_finite=named,
        remarks=(common,) if len(gaps) < max(len(values), len(others)) else (),
    )


def printed_difference(numbers: list[Printed | None]) -> float | None:
    """The printed difference of a reading from the first; None unless the paper prints both."""
    if len(numbers) < 2 or None in numbers:
        return None
    mine, first = (number.meant for number in numbers)
    return mine - first if math.isfinite(mine) and math.isfinite(first) else None


def printed_in(entry: dict, printed: dict) -> dict[tuple[str, str, str], Printed]:
    """Printed numbers by (row, column, group), each from the first of the tables `printed` that has it."""
    found = {}
    for item in entry.get("printed", []):
        own = {key[1:]: number for key, number in printed.items() if key[0] == item}
        found = own | found
    return found


def is_deciding(entry: dict, column: str, group: str) -> bool:
    """Whether a column and group decide the table's answer."""
    return (column, group) == (entry["decides"]["column"], entry["decides"].get("group", ""))
