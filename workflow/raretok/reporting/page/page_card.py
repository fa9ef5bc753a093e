"""The picture of a paper on the first page: one number of a few methods, printed and ours, over that of the first."""

import math
from dataclasses import dataclass
from pathlib import Path

from raretok.reporting.definition import Definition
from raretok.reporting.results import Results
from raretok.reporting.tables.cells import Cell
from raretok.reporting.tables.table_command import cells_of


@dataclass(frozen=True)
class Bar:
    """One method: printed and our number over those of the first method, with the numbers as they are read."""

    label: str
    printed: float | None
    ours: float | None
    printed_number: str
    our_number: str


@dataclass(frozen=True)
class Card:
    """What the picture says, and its bars. longest: of all bars, at least 1."""

    says: str
    bars: tuple[Bar, ...]

    @property
    def longest(self) -> float:
        return max([1.0, *(value for bar in self.bars for value in (bar.printed, bar.ours) if value is not None)])


def card(definition: Definition, results: Results, published: Path) -> Card | None:
    """The picture that `headline` of the paper's config asks for, or None."""
    shown = definition.headline
    if not shown:
        return None
    item = shown["table"]
    labels = [definition.of(item).method(name).label for name in shown["methods"]]
    cells = {
        cell.row: cell
        for cell in cells_of(definition, item, results, published)
        if (cell.column, cell.group) == (shown["column"], shown["group"]) and not cell.block
    }
    found = [cells[label] for label in labels if label in cells]
    base, base_printed = _first(cell.value for cell in found), _first(_number(cell) for cell in found)
    bars = tuple(
        Bar(
            label=cell.row,
            printed=None if base_printed is None or _number(cell) is None else _number(cell) / base_printed,
            ours=None if cell.value is None else cell.value / base,
            printed_number=cell.published,
            our_number="" if cell.value is None else format(cell.value, cell.format),
        )
        for cell in found
        if cell.value is not None or cell.published
    )
    return Card(shown["says"], bars)


def _number(cell: Cell) -> float | None:
    value = float(cell.published) if cell.published else math.nan
    return value if math.isfinite(value) else None


def _first(values) -> float | None:
    return next((value for value in values if value is not None), None)
