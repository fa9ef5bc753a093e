"""Cells of tables, and the cells of each kind of table: functions of (definition, item, results, published)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rarepapers.metrics.declared import better
from rarepapers.reporting.definition import Definition, Method, by_other_definition
from rarepapers.reporting.results import NEEDS_FINITE, Printed, Results, Spread, printed_numbers, summarise
from rarepapers.reporting.statistics.intervals import half_width

NOT_RUN = "not run"
NOT_MEASURED = "not measured at this scale"
NOT_PRINTED = "not printed"
# Default further grid of tables of metrics. The authors select checkpoints by plain cross-entropy, which is biased
# against methods that train another loss (deviations, S6).
FURTHER = [{"title": "Weights after the last step", "reading": "last step", "checkpoint": "last"}]
NOTES_ON_CHECKPOINT = {"last": "weights after the last step instead of the best by validation loss"}
# Hyper-parameters that a scaled run derives: key in the record, printed name.
DERIVED = {"alpha": "alpha", "memory": "K", "i_r": "i_r", "mu_1": "mu_1", "mu_2": "mu_2"}


@dataclass(frozen=True)
class Cell:
    """One row of a table's csv, with its formatting.

    block: heading of the further grid it belongs to. reading: the bracket shared by all rows of that grid, which its
    heading repeats. named: whether row and column are names of ours, whose underscores are shown as blanks; False for
    tokens. remarks: the parts of the note that are shown below the table. interval: 95% bounds of `value` if
    it is a difference. not_finite: the seeds of `value` that are not finite, in words.
    """

    row: str
    column: str
    group: str = ""
    published: str = ""
    value: float | str | None = None
    spread: float | None = None
    seeds: int = 0
    difference: float | None = None
    note: str = ""
    remarks: tuple[str, ...] = ()
    format: str = ""
    direction: str = "none"  # up, down: the better direction
    best: bool = False
    block: str = ""
    reading: str = ""
    interval: tuple[float, float] | None = None
    named: bool = True
    not_finite: str = ""

    @property
    def shown_remarks(self) -> tuple[str, ...]:
        """What is said of the cell below the table."""
        return (*self.remarks, self.not_finite) if self.not_finite else self.remarks


@dataclass(frozen=True)
class Grid:
    """One grid of a `kind: metrics` table: the table itself, or a further reading of its numbers.

    columns: name: {metric, format, split, groups}; split and groups override those of the table. suffix: see
    `with_suffix`.
    """

    columns: dict[str, dict]
    title: str = ""
    reading: str = ""
    checkpoint: str = "best"
    suffix: str = ""


def with_suffix(group: str, suffix: str) -> str:
    """The name in the metrics of a group of another set of groups; the group of all types has no suffix."""
    return group if group in ("", "total") else group + suffix


def metric_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Cells of a `kind: metrics` table (rows x columns x groups), then of its further grids with measured numbers."""
    entry = definition.entry(item)
    printed = printed_numbers(published, definition.paper)
    cells = []
    for k, words in enumerate([{}, *entry.get("further", FURTHER)]):
        grid = Grid(**({"columns": entry["columns"]} | words))
        found = _grid_cells(definition, item, results, printed, grid)
        # Further groups count as measured only by a group of their own, not by the total that all of them share.
        own = [cell for cell in found if not grid.suffix or with_suffix(cell.group, grid.suffix) != cell.group]
        if k == 0 or any(cell.value is not None for cell in own):
            cells += found
    return cells


def _grid_cells(definition: Definition, item: str, results: Results, printed: dict, grid: Grid) -> list[Cell]:
    entry = definition.entry(item)
    places = places_of(entry, grid.columns)
    cells = []
    for method in definition.methods_of(item):
        cells += [_metric_cell(definition, item, results, printed, grid, method, place) for place in places]
    cells = mark_best(cells)
    if grid.checkpoint == "best":
        for row, columns in entry.get("data", {}).items():
            for group, column, _ in places:
                if column in columns:
                    key = (item, row, column, group)
                    cells.append(_data_cell(definition, results, grid, key, printed.get(key)))
    return cells


def places_of(entry: dict, columns: dict[str, dict]) -> list[tuple[str, str, dict]]:
    """(group, column, metric entry) of every cell in a row of a `kind: metrics` table, in order.

    The groups of a table that compares experiments are its experiments.
    """
    return [
        (group, column, how)
        for group in entry.get("groups") or entry.get("experiments") or [""]
        for column, how in with_other_definitions(columns).items()
        if group in how.get("groups", [group])
    ]


def with_other_definitions(columns: dict[str, dict]) -> dict[str, dict]:
    """The columns; each with another definition of its quantity (`other`) is followed by a column of that one."""
    shown = {}
    for column, how in columns.items():
        shown[column] = how
        if other := how.get("other"):
            shown[other["column"]] = by_other_definition(how)
    return shown


def measured_at(
    results: Results, entry: dict, method: Method, how: dict, group: str, checkpoint: str = "best", suffix: str = ""
) -> dict[int, float]:
    """Values by seed of a method in a column (`how`) and group of a table; empty if it was not run.

    If the table compares experiments, the group is one of them, and metrics by token group are taken from the group
    `total`. suffix: of the groups' names, see `with_suffix`.
    """
    where = {"checkpoint": checkpoint, "split": how.get("split")}
    compared = entry.get("experiments", {})
    if group not in compared:
        return results.per_seed(method, how["metric"], with_suffix(group, suffix), **where)
    method = method.within(compared[group])
    whole = (results.per_seed(method, how["metric"], name, **where) for name in ("", "total"))
    return next(filter(None, whole), {})


def _metric_cell(
    definition: Definition, item: str, results: Results, numbers: dict, grid: Grid, method: Method, place: tuple
) -> Cell:
    (group, column, how), entry = place, definition.entry(item)
    printed = numbers.get((item, method.printed_label, column, group))
    view = method.within(entry.get("experiments", {}).get(group, method.experiment))
    derived = derived_remark(definition, results.training(view))
    measured = method.is_measured_on(group)
    where = (group, grid.checkpoint, grid.suffix)
    summary = summarise(measured_at(results, entry, method, how, *where) if measured else {})
    missing = ""
    if not measured:
        missing = f"not measured on {group}"
    elif summary is None:
        missing = missing_note(results, view)
    elif how["metric"] in NEEDS_FINITE and summary.not_finite:
        missing = "no temperature: the perplexity is infinite"
    elif summary.seeds < len(method.seeds):
        missing = f"{summary.seeds} of {len(method.seeds)} seeds"
    notes = [
        printed.note if printed else NOT_PRINTED,
        f"another reading of the printed row: {method.reading}" if method.reading else "",
        NOTES_ON_CHECKPOINT.get(grid.checkpoint) or (grid.title and f"{grid.title[0].lower()}{grid.title[1:]}"),
        missing,
        derived,
    ]
    fields = numbers_of(summary, printed, definition)
    if fields["difference"] is not None and printed.reference is not None:
        notes.append(f"the difference is to {printed.reference:g}, the notebook's value")
    # Remarks repeat only unusual notes: other rows of the table show whether a row was run or stands in another table.
    remarks = [
        printed.note if printed and not grid.title and not printed.note.startswith("repeats") else "",
        missing if missing not in (NOT_RUN, NOT_MEASURED) else "",
        derived if not grid.title else "",
        corpus_remark(definition, view.experiment) if not grid.title else "",
    ]
    reading = ", ".join(filter(None, [method.reading, grid.reading]))
    return Cell(
        row=f"{method.printed_label} [{reading}]" if reading else method.label,
        column=column,
        group=group,
        **fields,
        note="; ".join(filter(None, notes)),
        remarks=tuple(filter(None, remarks)),
        format=how.get("format", ".4g"),
        direction=better(how["metric"]),
        block=grid.title,
        reading=grid.reading,
    )


def missing_note(results: Results, method: Method) -> str:
    """Why a method has no number: it was not run, or its runs do not measure this."""
    return NOT_RUN if results.training(method) is None else NOT_MEASURED


def numbers_of(summary: Spread | None, printed: Printed | None = None, definition: Definition | None = None) -> dict:
    """The fields of a cell with a mean over seeds and a printed number, each may be None; a definition adds the gap."""
    fields = {"published": printed.text if printed else ""}
    if summary:
        fields |= summary._asdict() | {"value": summary.mean}
        del fields["mean"]
    if definition:
        fields["difference"] = difference(definition, summary.mean if summary else None, printed)
    return fields


def corpus_remark(definition: Definition, experiment: str) -> str:
    """A remark on the corpus of a scaled translation, whose direction may differ; empty at the paper's scale."""
    translates = "beam" in definition.settings.get(experiment, {}).get("evaluation", {})
    return "" if definition.comparable or not translates else f"text of {definition.corpus_title(experiment)}"


def _data_cell(
    definition: Definition, results: Results, grid: Grid, key: tuple[str, str, str, str], printed: Printed | None
) -> Cell:
    item, row, column, group = key
    summary = summarise(data_value(definition, item, results, row, column, with_suffix(group, grid.suffix)))
    return Cell(
        row=f"{row} [{grid.reading}]" if grid.reading else row,
        column=column,
        group=group,
        **numbers_of(summary, printed, definition),
        note="; ".join(filter(None, [printed.note if printed else NOT_PRINTED, "" if summary else NOT_RUN])),
        remarks=(printed.note,) if printed and not grid.title else (),
        format=definition.entry(item)["data"][row][column].get("format", ".4g"),
        block=grid.title,
        reading=grid.reading,
    )


def data_value(definition: Definition, item: str, results: Results, row: str, column: str, group: str) -> float | None:
    """A number of a table's `data` rows, which describe the data and no model, from the first run that measured it.

    `group` is its name in the metrics. None if no run of the table's methods has it.
    """
    how = definition.entry(item)["data"][row][column]
    for method in definition.methods_of(item):
        values = results.per_seed(method, how["metric"], group, split=how.get("split"))
        if values:
            return next(iter(values.values()))
    return None


def derived_remark(definition: Definition, training: dict | None) -> str:
    """The hyper-parameters that a scaled run derived, in words; empty if there are none."""
    derived = (training or {}).get("derived") or {}
    known = [f"{name} {derived[key]:.4g}" for key, name in DERIVED.items() if derived.get(key)]
    if definition.comparable or not known:
        return ""
    return f"{', '.join(known)} (derived for this scale)"


def mark_best(cells: list[Cell]) -> list[Cell]:
    """Mark the best of our means in each block, column and group, if seeds support it.

    Its 95% t interval must not overlap another row's. Rows without an interval (one seed, or equal values in all)
    cannot be marked, but one that is better, or lies in that interval, prevents a mark.
    """
    # Rows without a printed number take the direction of their column's other rows.
    directions = {cell.column: cell.direction for cell in cells if cell.direction != "none"}
    rivals: dict[tuple, list[Cell]] = {}
    for cell in cells:
        if cell.seeds and cell.column in directions:
            rivals.setdefault((cell.block, cell.column, cell.group), []).append(cell)
    best = {id(_clear_best(found, directions[column])) for (_, column, _), found in rivals.items()}
    return [replace(cell, best=id(cell) in best) for cell in cells]


def _clear_best(cells: list[Cell], direction: str) -> Cell | None:
    """The best of several means; None if it has no interval, or another row reaches into it."""
    sign = 1 if direction == "up" else -1
    # An undefined mean is neither better nor worse.
    cells = [cell for cell in cells if not math.isnan(cell.value)]
    if not cells:
        return None
    first, *others = sorted(cells, key=lambda cell: -sign * cell.value)
    if not others or not first.spread:
        return None
    reach = max(sign * cell.value + (half_width(cell.spread, cell.seeds) if cell.spread else 0) for cell in others)
    return first if sign * first.value - half_width(first.spread, first.seeds) > reach else None


def difference(definition: Definition, value: float | None, printed: Printed | None) -> float | None:
    """Ours minus the paper's value (or its reference for a misprint), or None if not comparable or not finite."""
    if not definition.comparable or value is None or printed is None:
        return None
    return value - printed.meant if math.isfinite(value) and math.isfinite(printed.meant) else None


def blocks(cells: list[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """(heading, cells) of the main table and of each further grid, in order.

    A further grid with the same numbers as another further one is only named in that one's heading.
    """
    grids: dict[tuple, tuple[list[str], list[Cell]]] = {}
    for heading in dict.fromkeys(cell.block for cell in cells):
        grid = [cell for cell in cells if cell.block == heading]
        numbers = tuple((cell.column, cell.group, cell.value, cell.spread) for cell in grid)
        grids.setdefault((heading == "", numbers), ([], grid))[0].append(heading)
    for (first, *others), grid in grids.values():
        alike = (f"; the same numbers: {other[0].lower()}{other[1:]}" for other in others)
        yield first + "".join(alike), grid
