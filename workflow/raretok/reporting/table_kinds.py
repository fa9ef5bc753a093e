"""The cells of each kind of table. A kind's function takes the definition, an item and the numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import (
    GPT2_COLUMNS,
    NEEDS_FINITE,
    Printed,
    Results,
    gpt2_values,
    printed_numbers,
    read_published,
    summarise,
)

NOT_RUN = "not run"
NOT_PRINTED = "not printed"
LAST_STEP = "Weights after the last step"


@dataclass(frozen=True)
class Cell:
    """One row of a table's csv, and how it is shown. `block`: the heading of a further table it is in."""

    row: str
    column: str
    group: str = ""
    published: str = ""
    value: float | str | None = None
    spread: float | None = None
    seeds: int = 0
    difference: float | None = None
    note: str = ""
    remark: str = ""  # the part of the note that a reader of the whole table must see
    format: str = ""
    direction: str = "none"  # up, down: which values are better
    best: bool = False
    block: str = ""


def metric_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Rows x columns x groups of a `kind: metrics` table, of the best checkpoint and of the last step.

    The last step stands beside because the authors select checkpoints by plain cross-entropy, which is biased
    against methods that train another loss (inventory of stop_jostling, S6).
    """
    entry = definition.entry("tables", item)
    printed = printed_numbers(published, definition.paper)
    cells = []
    for checkpoint in ("best", "last"):
        for name in entry["methods"]:
            method = definition.method(name)
            for group in entry.get("groups", [""]):
                for column, how in entry["columns"].items():
                    number = printed.get((item, method.printed_label, column, group))
                    cells.append(_metric_cell(definition, results, method, checkpoint, group, column, how, number))
    return mark_best(cells)


def _metric_cell(
    definition: Definition,
    results: Results,
    method: Method,
    checkpoint: str,
    group: str,
    column: str,
    how: dict,
    printed: Printed | None,
) -> Cell:
    measured = method.is_measured_on(group)
    values = results.per_seed(method, how["metric"], group, checkpoint, how.get("split")) if measured else {}
    summary = summarise(values)
    missing = ""
    if not measured:
        missing = f"says nothing of {group}"
    elif summary is None:
        needs = NEEDS_FINITE.get(how["metric"])
        infinite = needs and results.per_seed(method, needs, group, checkpoint, how.get("split"))
        missing = "no temperature: the perplexity is infinite" if infinite else NOT_RUN
    elif summary.seeds < len(method.seeds):
        missing = f"{summary.seeds} of {len(method.seeds)} seeds"
    notes = [
        printed.note if printed else NOT_PRINTED,
        f"further reading of the printed row: {method.reading}" if method.reading else "",
        "weights after the last step, not the best by validation loss" if checkpoint == "last" else "",
        missing,
    ]
    difference = _difference(definition, summary.mean if summary else None, printed)
    if difference is not None and printed.reference is not None:
        notes.append(f"the difference is from {printed.reference:g}, the notebook's value")
    # That a row stands in another table too, or was not run, can be seen; what is odd about it cannot.
    remarks = [
        printed.note if printed and checkpoint == "best" and not printed.note.startswith("repeats") else "",
        missing if missing != NOT_RUN else "",
    ]
    reading = ", ".join(filter(None, [method.reading, "last step" if checkpoint == "last" else ""]))
    return Cell(
        row=f"{method.printed_label} [{reading}]" if reading else method.label,
        column=column,
        group=group,
        published=printed.text if printed else "",
        value=summary.mean if summary else None,
        spread=summary.spread if summary else None,
        seeds=summary.seeds if summary else 0,
        difference=difference,
        note="; ".join(filter(None, notes)),
        remark="; ".join(filter(None, remarks)),
        format=how.get("format", ".4g"),
        direction=printed.direction if printed else "none",
        block=LAST_STEP if checkpoint == "last" else "",
    )


def mark_best(cells: list[Cell]) -> list[Cell]:
    """Mark the best of our values in each block, column and group; equal as shown is equally good."""
    # A further row may have no printed number to take the direction from, a column's other rows have.
    directions = {cell.column: cell.direction for cell in cells if cell.direction != "none"}
    shown = {}
    for cell in cells:
        if isinstance(cell.value, float) and math.isfinite(cell.value) and cell.column in directions:
            shown.setdefault((cell.block, cell.column, cell.group), []).append(float(format(cell.value, cell.format)))
    best = {
        key: (max if directions[key[1]] == "up" else min)(values) for key, values in shown.items() if len(values) > 1
    }
    return [
        replace(
            cell,
            best=isinstance(cell.value, float)
            and float(format(cell.value, cell.format)) == best.get((cell.block, cell.column, cell.group)),
        )
        for cell in cells
    ]


def gpt2_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Effective margin and alpha of GPT-2 (stop_jostling, table 3), from `gpt2/<repository>.json`."""
    printed = printed_numbers(published, definition.paper)
    formats = {"d_model": ".0f", "margin": ".2f", "alpha": ".3f", "sigma": ".2g"}
    cells = []
    for row, model in definition.gpt2["models"].items():
        measured = results.gpt2(model["repository"])
        for column in ("d_model", *GPT2_COLUMNS):
            found = gpt2_values(measured, column)
            # Pre-trained weights and the width have no seed, hence no spread.
            summary = summarise(found) if isinstance(found, dict) else None
            value = summary.mean if summary else found
            number = printed.get((item, row, column, ""))
            # A measurement says itself why a part of it is missing: no weights were given.
            missing = ((measured or {}).get("reason") or NOT_RUN) if value is None else ""
            notes = [number.note if number else NOT_PRINTED, missing]
            if column == "d_model":
                shown = "d_model"
            else:
                shown = "sigma" if column.endswith("_sigma") else GPT2_COLUMNS[column][1]
            cells.append(
                Cell(
                    row=row,
                    column=column,
                    published=number.text if number else "",
                    value=value,
                    spread=summary.spread if summary else None,
                    seeds=summary.seeds if summary else 0,
                    difference=_difference(definition, value, number),
                    note="; ".join(filter(None, notes)),
                    remark=missing if missing != NOT_RUN else "",
                    format=formats[shown],
                )
            )
    return cells


def hyperparameter_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """The printed settings of an experiment beside those that this scale used."""
    entry = definition.entry("tables", item)
    table = read_published(published, "hyperparameters", definition.paper)
    printed = {row.name: row.value for row in table[table["item"] == item].itertuples()}
    settings = definition.settings.get(entry["experiment"], {})
    cells = []
    for name, path in entry["settings"].items():
        value = _at_path(settings, path)
        text = printed.get(name, "")
        differs = ""
        notes = [path, "" if text else NOT_PRINTED, NOT_RUN if value is None else ""]
        if text and value is not None and float(text) != float(value):
            differs = "differs from the paper"
            notes.append(differs)
        number = Printed(text, float(text), "none", "") if text else None
        cells.append(
            Cell(
                row=name,
                column="value",
                published=text,
                value=None if value is None else float(value),
                difference=_difference(definition, None if value is None else float(value), number),
                note="; ".join(filter(None, notes)),
                remark=differs,
                format="g",
            )
        )
    return cells


def _at_path(settings, path: str):
    """The value at a dotted path of keys and list positions, or None."""
    for key in path.split("."):
        try:
            settings = settings[int(key)] if isinstance(settings, list) else settings[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return settings


def _difference(definition: Definition, value: float | None, printed: Printed | None) -> float | None:
    """Ours minus the paper's (its reference's, where the print slipped), where that is meaningful and finite."""
    if not definition.comparable or value is None or printed is None:
        return None
    theirs = printed.value if printed.reference is None else printed.reference
    return value - theirs if math.isfinite(value) and math.isfinite(theirs) else None


def blocks(cells: list[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """(heading, cells) of the main table and of each further one, in order."""
    for heading in dict.fromkeys(cell.block for cell in cells):
        yield heading, [cell for cell in cells if cell.block == heading]
