"""The picture of a paper on the first page: one number of a few methods, printed and ours, over that of the first."""

import math
from collections.abc import Iterable
from pathlib import Path

from raretok.reporting.definition import Definition
from raretok.reporting.results import Results
from raretok.reporting.tables.cells import Cell
from raretok.reporting.tables.table_command import cells_of


def card(definition: Definition, results: Results, published: Path) -> dict | None:
    """The picture that `headline` of the paper's config asks for, or None.

    What it `says`; `bars`, each a label, and of the paper and of ours the share of the first method's number and the
    number as it is read, None where there is none; and the `longest` of them, at least 1.
    """
    shown = definition.headline
    if not shown:
        return None
    item = shown["table"]
    labels = [definition.of(item).method(name).label for name in shown["methods"]]
    place = (shown["column"], shown["group"], "")
    cells = cells_of(definition, item, results, published)
    cells = {cell.row: cell for cell in cells if (cell.column, cell.group, cell.block) == place}
    shown_cells = [cell for cell in map(cells.get, labels) if cell and (cell.value is not None or cell.published)]
    printed, ours = _shares(map(_printed, shown_cells)), _shares(cell.value for cell in shown_cells)
    bars = [
        (cell.row, (of_paper, cell.published), (own, "" if own is None else format(cell.value, cell.format)))
        for cell, of_paper, own in zip(shown_cells, printed, ours, strict=True)
    ]
    known = [share for share in (*printed, *ours) if share is not None]
    return {"says": shown["says"], "bars": bars, "longest": max([1.0, *known])}


def _shares(values: Iterable[float | None]) -> list[float | None]:
    """Values over the first one that there is."""
    values = list(values)
    first = next((value for value in values if value is not None), None)
    return [None if value is None else value / first for value in values]


def _printed(cell: Cell) -> float | None:
    value = float(cell.published) if cell.published else math.nan
    return value if math.isfinite(value) else None
