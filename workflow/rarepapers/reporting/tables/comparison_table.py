"""Tables of kind `comparison`: one grid per task, one row per method, with the chosen candidate, quality and cost."""

import math
from dataclasses import replace
from pathlib import Path

from rarepapers.metrics.declared import better
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.results import Results, summarise
from rarepapers.reporting.table_layout import readable
from rarepapers.reporting.tables.cells import NOT_RUN, Cell, blocks, mark_best, numbers_of
from rarepapers.reporting.tables.method_comparison import (
    ROLES,
    Change,
    Chosen,
    changes_against,
    chosen_candidate,
    families,
    is_caveat,
    measured,
    seconds_against,
)

CHOSEN, MEMORY, SEEDS = "chosen", "GiB", "seeds"
UNCORRECTED = "By 95% intervals over seeds, not corrected for the number of methods. One seed has no interval."
# Whether a fitted temperature lies at an end of the searched interval; old recorded runs lack this metric.
AT_BOUND = {"metric": "temperature_at_bound", "split": "valid@best"}


def comparison_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """The cells of a table of kind `comparison`; `published` is unused, since nothing of it is printed."""
    entry = definition.entry(item)
    tasks = {task: one for task, one in entry["experiments"].items() if one in definition.settings}
    cells = []
    for task, experiment in tasks.items():
        found = [chosen_candidate(definition, results, family, experiment) for family in families(definition, entry)]
        found = [one for one in found if one is not None]
        made = [cell for one in found for cell in _row(definition, results, entry, experiment, one, found[0])]
        heading = f"{task[0].upper()}{task[1:]}"
        suffix = f" [{task}]" if len(tasks) > 1 else ""
        made = [replace(cell, row=f"{cell.row}{suffix}", block=heading, reading=task) for cell in made]
        unfinished = {f"{one.label}{suffix}" for one in found if one.is_provisional}
        # A mean over other seeds, or of a provisional candidate, cannot be marked as best.
        cells += [replace(cell, best=cell.best and cell.row not in unfinished) for cell in mark_best(made)]
    return cells


def better_methods(definition: Definition, item: str, cells: list[Cell]) -> list[str]:
    """For each task, the methods better than the first on rare tokens, and those of them not worse on frequent ones.

    Judged by 95% intervals over seeds; provisional and diverged choices are left out.
    """
    said = []
    for heading, grid in blocks(cells):
        names = {cell.row: cell.row.removesuffix(f" [{cell.reading}]") for cell in grid}
        doubtful = {cell.row for cell in grid if cell.column == CHOSEN and any(map(is_caveat, cell.remarks))}
        first = grid[0].row
        columns = (change_column(role, names[first]) for role in ROLES)
        frequent, rare = (
            {cell.row: cell.interval for cell in grid if cell.interval and cell.column == column} for column in columns
        )
        better = [row for row, (_, upper) in rare.items() if upper < 0 and row in frequent.keys() - doubtful]
        free = [row for row in better if frequent[row][0] <= 0]
        if rare and first not in doubtful:
            found, kept = (", ".join(map(names.get, rows)) or "none" for rows in (better, free))
            than = f"{heading}: better for rare tokens than {names[first]}"
            said.append(f"{than}: {found}; of these, not measurably worse for frequent ones: {kept}.")
    return [*said, UNCORRECTED] if said else []


def change_column(role: str, first: str) -> str:
    """The name of a column of changes; `first` is the label of the baseline."""
    return f"{role} - {first}, %"


def time_column(first: str) -> str:
    """The name of the column of training times."""
    return f"time / {first}'s"


def _row(
    definition: Definition, results: Results, entry: dict, experiment: str, one: Chosen, first: Chosen
) -> list[Cell]:
    columns = {name: how for name, how in entry["columns"].items() if experiment in how["of"]}
    if one.method is None:
        changes = [change_column(role, first.label) for role in ROLES]
        names = [*changes, SEEDS, *columns, CHOSEN, time_column(first.label), MEMORY]
        return [Cell(one.label, name, note=NOT_RUN) for name in names]
    changes = changes_against(results, columns, experiment, one, first) if one is not first else {}
    cells = [_change_cell(one.label, change_column(role, first.label), changes.get(role)) for role in ROLES]
    values = {name: measured(results, one.method, how, how["of"][experiment]) for name, how in columns.items()}
    seeds, expected = max(map(len, values.values())), len(one.method.seeds)
    cells.append(Cell(one.label, SEEDS, value=f"{seeds} of {expected}" if seeds < expected else f"{seeds}"))
    for name, how in columns.items():
        made = _mean_cell(
            one.label,
            name,
            values[name],
            how["format"],
            _missing(len(values[name]), expected),
            better(how["metric"]),
        )
        cells.append(replace(made, remarks=()) if len(values[name]) == seeds else made)
    ours = results.trainings(one.method)
    derived = next(iter(ours.values())).get("derived") or {}
    cells.append(_chosen_cell(one, values_used(one.words, derived), measured(results, one.method, AT_BOUND, "")))
    ratios, why = seconds_against(ours, results.trainings(first.method) if first.method else {})
    cells.append(_mean_cell(one.label, time_column(first.label), ratios, ".2f", why))
    memory = {seed: training["peak_memory_gib"] for seed, training in ours.items()}
    return [*cells, _mean_cell(one.label, MEMORY, memory, ".2f")]


def values_used(words: str, derived: dict) -> str:
    """A candidate's values in words, with those in units of the corpus as the run `derived` them."""
    pairs = [part.partition("=") for part in words.split(", ")]
    used = [f"{name}={derived[name]:.4g}" if derived.get(name) else name + mark + value for name, mark, value in pairs]
    return readable(", ".join(used))


def _chosen_cell(one: Chosen, used: str, at_bound: dict[int, float]) -> Cell:
    where = f"on {len(one.seeds)} seed{'s' if len(one.seeds) != 1 else ''}" if one.seeds else "without a common seed"
    note = (
        f"of {one.finished} of {one.tried} candidates, {where}: the lowest validation perplexity, {one.criterion:.4g}"
    )
    if not one.seeds:
        note = f"of {one.finished} of {one.tried} candidates, {where}: the first"
    remarks = list(one.caveats)
    if number := sum(value > 0 for value in at_bound.values()):
        seeds = f"{number} of {len(one.method.seeds)} seeds"
        remarks.append(f"in {seeds} the temperature is at an end of the searched interval and may not be the best")
    return Cell(one.label, CHOSEN, value=used, note="; ".join([note, *remarks]), remarks=tuple(remarks))


def _mean_cell(
    row: str, column: str, values: dict[int, float], form: str, note: str = "", direction: str = "none"
) -> Cell:
    summary = summarise(values)
    if summary is None:
        return Cell(row, column, note=note or NOT_RUN, format=form)
    remarks = (note,) if note else ()
    return Cell(row, column, **numbers_of(summary), note=note, remarks=remarks, format=form, direction=direction)


def _change_cell(row: str, column: str, found: Change | None) -> Cell:
    if found is None:
        return Cell(row, column, format="+z.1f")
    if found.interval:
        note = "95% interval {:.6g} to {:.6g}".format(*found.interval)
    elif not math.isfinite(found.mean):
        note = "not finite in some seeds"
    else:
        note = "one seed: no interval" if found.seeds == 1 else "equal values in all seeds: no interval"
    return Cell(
        row,
        column,
        value=found.mean,
        seeds=found.seeds,
        note=note,
        format="+z.1f",
        interval=found.interval,
        not_finite=found.not_finite,
    )


def _missing(seeds: int, expected: int) -> str:
    return "" if seeds == expected else f"{seeds} of {expected} seeds" if seeds else NOT_RUN
