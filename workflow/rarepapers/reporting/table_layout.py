"""Layout of tables: token groups as columns if they fit, else as rows."""

import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from rarepapers.reporting.tables.cells import Cell
from rarepapers.reporting.tables.neighbour_table import PRINTED

# Tables with at most this many value columns have groups as columns, as in the papers.
MOST_COLUMNS = 12
ARROWS = {"up": " ↑", "down": " ↓"}
# Display names of columns whose printed key is not readable.
NAMES = {
    "PPL_best": "PPL at best T",
    "T_best": "best T",
    "d_model": "width",
    "margin_init": "margin (random)",
    "margin_init_sigma": "its σ",
    "margin_PT": "margin (pre-trained)",
    "margin_PT_sigma": "its σ",
    "alpha_init": "alpha (random)",
    "alpha_init_sigma": "its σ",
    "alpha_PT": "alpha (pre-trained)",
    "alpha_PT_sigma": "its σ",
}

DEVIATION = "_sigma"  # suffix of the columns with the standard deviation of another
MACHINE_NAME = re.compile(r"[a-z]{2,}(_([a-z]+|AGG|UL))+")

Key = tuple[str, str]  # column, group


@dataclass(frozen=True)
class Layout:
    """One grid in display order.

    columns: (title, its groups), with groups ("",) if groups are rows. rows: (row, group, cells by (column, group of
    the head), number of rows that the row's name spans, 0 if it stands above). grouped: whether rows have groups.
    """

    columns: list[tuple[str, str, tuple[str, ...]]]
    rows: list[tuple[str, str, dict[Key, Cell], int]]
    grouped: bool

    @property
    def keys(self) -> list[Key]:
        """(column, group) of every column, in order."""
        return [(column, group) for column, _, groups in self.columns for group in groups]

    @property
    def heads(self) -> list[str]:
        """Title and group of every column, as one line each."""
        return [" ".join(filter(None, [title, group])) for _, title, groups in self.columns for group in groups]

    @property
    def two_lines(self) -> bool:
        """Whether the head has a second line with groups."""
        return any(group for _, group in self.keys)


def layout(cells: list[Cell]) -> Layout:
    """The layout of one grid, without rows that have neither a measured nor a printed number of their own."""
    cells = [cell for cell in cells if cell.row in _shown_rows(cells)]
    groups = list(dict.fromkeys(cell.group for cell in cells))
    known = {(cell.column, cell.group) for cell in cells if cell.value is not None or cell.published}
    numbers = not any(isinstance(cell.value, str) or cell.block == PRINTED for cell in cells)
    across = len(groups) > 1 and numbers and 0 < len(known) <= MOST_COLUMNS
    several = len(groups) > 1
    directions = {cell.column: cell.direction for cell in cells if cell.direction != "none"}
    tokens = {cell.column for cell in cells if not cell.named}
    columns = []
    for column in dict.fromkeys(cell.column for cell in cells):
        title = (column if column in tokens else shown_name(column)) + ARROWS.get(directions.get(column), "")
        below = tuple(group for group in groups if (column, group) in known) if across else ("",)
        if below:
            columns.append((column, title, below))
    table: dict[tuple[str, str], dict[Key, Cell]] = {}
    for cell in cells:
        place = (cell.row, "" if across or not several else cell.group)
        table.setdefault(place, {})[cell.column, cell.group if across else ""] = cell
    if several and not across:
        told = {(cell.row, cell.group) for cell in cells if cell.value is not None or cell.published}
        table = {place: found for place, found in table.items() if place in told}
    rows = []
    for row, places in groupby(table, key=itemgetter(0)):
        groups = [group for _, group in places]
        spans = [len(groups), *[0] * (len(groups) - 1)]
        head = row if tokens else shown_name(row)
        rows += [(head, group, table[row, group], span) for group, span in zip(groups, spans, strict=True)]
    return Layout(columns, rows, several and not across)


def shown_name(name: str) -> str:
    """A row's or column's display name: `weight_decay` becomes weight decay."""
    return NAMES.get(name) or (name.replace("_", " ") if MACHINE_NAME.fullmatch(name) else name)


def readable(text: str) -> str:
    """`text` with the display names of the columns and other keys in it."""
    return re.sub(r"(?<![\w-])[A-Za-z]+(_[A-Za-z]+)+(?![\w-])", lambda match: _name_alone(match[0]), text)


def _name_alone(name: str) -> str:
    """A display name that needs no column before it: a column of deviations is only called `its σ` in a table."""
    base = name.removesuffix(DEVIATION)
    return f"σ of {NAMES[base]}" if base != name and base in NAMES else shown_name(name)


def _shown_rows(cells: list[Cell]) -> set[str]:
    """Rows with a number, and rows that were not run but have printed numbers; no alternative [reading] of these."""
    measured = {cell.row for cell in cells if cell.value is not None}
    return measured | {cell.row for cell in cells if cell.published and "[" not in cell.row}
