"""What a table shows of its numbers, grids and remarks."""

import math
from dataclasses import replace

import pytest

from rarepapers.reporting.tables.cells import Cell, blocks
from rarepapers.reporting.tables.table_command import tidy
from rarepapers.reporting.tables.table_text import number, remarks, spread, under_heading

MAIN = Cell("MLE", "PPL", "rare", value=1.25, spread=0.5, seeds=2, format=".2f", remarks=("1 of 2 seeds",))


def further(title, reading, **changes):
    return replace(MAIN, row=f"MLE [{reading}]", block=title, reading=reading, **changes)


@pytest.mark.parametrize(
    ("value", "deviation", "shown"),
    [
        (999.999, 12.345, ("1000.00", "12.35")),
        (39892.67, 2871.99, ("39893", "2872")),
        (-1000.5, 0.75, ("-1000", "1")),
        (0.1331, 0.001, ("0.13", "<0.01")),
        (1.0, 0.0, ("1.00", "")),
        (1.0, None, ("1.00", "")),
    ],
)
def test_digits_of_a_mean_and_its_deviation(value, deviation, shown):
    cell = replace(MAIN, value=value, spread=deviation)
    assert (number(cell), spread(cell)) == shown


def test_bounds_have_the_digits_of_their_mean():
    assert number(replace(MAIN, value=2000.4, interval=(-0.25, 4001.2))) == "2000 [-0, 4001]"


def test_equal_further_grids_are_one():
    """The main grid stays alone: it is the table itself."""
    cells = [MAIN, further("Last step", "last"), further("No context", "none"), further("Valid", "valid", value=2.0)]
    found = [(heading, [cell.row for cell in under_heading(grid)]) for heading, grid in blocks(cells)]
    assert found == [("", ["MLE"]), ("Last step; the same numbers: no context", ["MLE"]), ("Valid", ["MLE"])]


def test_a_remark_on_all_grids_names_the_row_once():
    other = replace(MAIN, row="AGG")
    assert remarks([MAIN, further("Last step", "last"), other]) == ["MLE, AGG: 1 of 2 seeds."]
    assert remarks([MAIN, further("Last step", "last", remarks=())]) == ["MLE: 1 of 2 seeds."]
    assert remarks([replace(MAIN, remarks=()), further("Last step", "last")]) == ["MLE [last]: 1 of 2 seeds."]


@pytest.mark.parametrize(
    ("value", "deviation", "shown"),
    [
        (3.3333e199, 5.7735e199, ("3.33e+199", "5.77e+199")),
        (math.inf, None, ("inf", "")),
        (-math.inf, None, ("-inf", "")),
        (math.nan, None, ("undefined", "")),
        (1e-320, None, ("0.00", "")),
    ],
)
def test_odd_numbers(value, deviation, shown):
    cell = Cell("AGG", "PPL", value=value, spread=deviation, seeds=3, format=".2f")
    assert (number(cell), spread(cell)) == shown


def test_an_interval_that_is_not_finite_is_a_word():
    assert number(Cell("a", "b", value=5.0, interval=(-math.inf, math.inf), format="+z.1f")) == "+5.0 [-inf, +inf]"


def test_the_seeds_that_are_not_finite_are_named_below_the_table():
    cells = [
        Cell("AGG", "PPL", value=math.inf, seeds=3, not_finite="infinite in seed 2"),
        Cell("MLE", "PPL", value=2.0),
    ]
    assert remarks(cells) == ["AGG: infinite in seed 2."]
    assert tidy(cells)["note"].tolist() == ["infinite in seed 2", ""]
