"""Quantities of claims about tables: parser and evaluation of expressions over printed cells.

`table1 | A; B | PPL; MRR | HR against Baseline` in config/papers/<paper>/claims.csv is a conjunction of four
comparisons: each row and column with the same cell of Baseline. `against` is followed by rows, or by whole cells
(`table3 | AGG`) whose missing parts are taken from the left side; without it, a cell stands alone. `and` adds a
comparison, `freq + rare` sums groups, and `margin / d_model` is a ratio of columns. The claim's unit says whether two
cells are divided (`x`) or subtracted.
"""

import math
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from rarepapers.core.errors import UserError
from rarepapers.reporting.claims.truths import Diverged, known
from rarepapers.reporting.definition import Definition

RATIO = "x"  # unit of ratios


class Key(NamedTuple):
    """The place of a printed number."""

    table: str
    row: str
    column: str
    group: str = ""


class Comparison(NamedTuple):
    """A comparison of numbers: the quotient of their products, or the difference of their sums."""

    over: tuple[Key, ...]
    under: tuple[Key, ...]

    @property
    def keys(self) -> list[Key]:
        """All numbers, each once."""
        return list(dict.fromkeys(self.over + self.under))

    def value(self, numbers: Mapping[Key, float], unit: str) -> float:
        """The quantity on these numbers; raises Undefined if it has none."""
        combine = math.prod if unit == RATIO else sum
        over, under = (combine(numbers[key] for key in side) for side in self)
        if unit == RATIO and not under:
            raise Diverged("a division by zero")
        return known(float(over / under if unit == RATIO else over - under))


def comparisons(quantity: str) -> list[Comparison]:
    """The comparisons of a claim's quantity, in order; raises UserError for an invalid expression."""
    return [one for part in quantity.split(" and ") for one in _comparisons(part)]


def in_scale(value: float, unit: str) -> float:
    """A quantity on the scale of its test: for a ratio the logarithm; raises Undefined if there is none."""
    if unit != RATIO:
        return value
    if value <= 0:
        raise Diverged("a ratio that is not positive")
    return math.log(value)


def of_this_scale(found: list[Comparison], definition: Definition) -> list[Comparison]:
    """The comparisons without those in groups whose experiment the scale leaves out.

    All of them if none would remain; their numbers are then missing.
    """
    left_out = {(table, group) for table, group, _ in left_out_groups(definition)}
    return [one for one in found if left_out.isdisjoint((key.table, key.group) for key in one.keys)] or found


def left_out_groups(definition: Definition) -> list[tuple[str, str, str]]:
    """(table, printed group, experiment) for each experiment of a table that the scale leaves out."""
    return [
        (table, group, experiment)
        for table, entry in definition.tables.items()
        if entry["kind"] == "metrics"
        for group, experiment in entry.get("experiments", {}).items()
        if experiment not in definition.settings
    ]


def _comparisons(part: str) -> list[Comparison]:
    cell, _, against = part.partition(" against ")
    table, *own = _fields(cell)
    if len(own) not in (2, 3):
        raise UserError(f"'{part}' is not written as `table | rows | columns | groups against rows`")
    other_table, others, *given = _fields(against) if "|" in against else ["", against]
    rows, columns, groups = ([one.strip() for one in field.split(";")] for field in (*own, "")[:3])
    found = []
    for row, other, column, group in product(rows, others.split("; "), columns, groups):
        over, below = _sides(table, row, column, group)
        under, above = (), ()
        if against:
            place = (new or old for new, old in zip((*given, "", ""), (column, group), strict=False))
            under, above = _sides(other_table or table, other or row, *place)
        found.append(Comparison(over + above, under + below))
    return found


def _sides(table: str, row: str, column: str, group: str) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The numbers of a cell, and those that divide it."""
    first, *others = (tuple(Key(table, row, name, one) for one in group.split(" + ")) for name in column.split(" / "))
    return first, tuple(key for side in others for key in side)


def _fields(cell: str) -> list[str]:
    return [field.strip() for field in cell.split("|")]
