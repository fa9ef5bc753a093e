"""Quantities of claims about tables: syntax, values on numbers, slacks of truths."""

import math

import pytest

from rarepapers.core.errors import UserError
from rarepapers.reporting.claims.quantities import Comparison, Key, comparisons
from rarepapers.reporting.claims.truths import Truth, Undefined, all_of, at_least, greater


def test_rows_columns_and_groups_are_multiplied():
    found = comparisons("t1 | A; B | PPL; MRR | HR; LR against C and t1 | A | PPL | LR against t2 | | I(W)")
    assert len(found) == 9
    assert found[0] == Comparison((Key("t1", "A", "PPL", "HR"),), (Key("t1", "C", "PPL", "HR"),))
    assert found[7] == Comparison((Key("t1", "B", "MRR", "LR"),), (Key("t1", "C", "MRR", "LR"),))
    assert found[8] == Comparison((Key("t1", "A", "PPL", "LR"),), (Key("t2", "A", "I(W)", "LR"),))
    assert [one.under[0].row for one in comparisons("t1 | A | PPL against C (x, y); D")] == ["C (x, y)", "D"]
    assert comparisons("t1 | A | PPL") == [Comparison((Key("t1", "A", "PPL"),), ())]


def test_values_of_quantities():
    numbers = {Key("t", "A", "c", g): value for g, value in (("a", 1.0), ("b", 2.0), ("", 6.0))}
    numbers |= {Key("t", "B", "c"): 3.0, Key("t", "A", "d"): 4.0, Key("t", "B", "d"): 8.0}
    of = {
        ("t | A | c against B", "x"): 2.0,
        ("t | A | c against B", ""): 3.0,
        ("t | A | c", "x"): 6.0,
        ("t | A | c | a + b against t | A | c | ", ""): 0.0,
        ("t | A | c / d against B", "x"): (6 / 4) / (3 / 8),
    }
    for (quantity, unit), value in of.items():
        (one,) = comparisons(quantity)
        assert one.value(numbers, unit) == pytest.approx(value), quantity
    (one,) = comparisons("t | A | c | a + b against B")
    assert [(key.row, key.group) for key in one.keys] == [("A", "a"), ("A", "b"), ("B", "a"), ("B", "b")]


@pytest.mark.parametrize("numbers", [(1.0, 0.0), (math.inf, math.inf), (math.nan, 1.0)])
def test_quantities_without_a_value(numbers):
    (one,) = comparisons("t | A | c against B")
    with pytest.raises(Undefined):
        one.value(dict(zip(one.keys, numbers, strict=True)), "x")


@pytest.mark.parametrize("quantity", ["steps to spare", "t | A", "t | A | b | c | d against B"])
def test_wrong_syntax_is_refused(quantity):
    with pytest.raises(UserError, match="is not written as"):
        comparisons(quantity)


def test_a_conjunction_keeps_its_parts():
    truth = all_of([greater(3, 2), all_of([greater(2, 3), at_least(5, 3)])])
    assert (truth, [part.slack for part in truth.parts]) == (Truth(False, -1), [1, -1, 2])


def test_a_bound_is_met_despite_rounding():
    assert at_least(0.3, 0.1 + 0.2) == at_least(0.1 + 0.2, 0.3) == Truth(True, 0)
    assert greater(0.1 + 0.2, 0.3) == Truth(False, 0)
    with pytest.raises(Undefined):  # as any difference of two infinities
        greater(math.inf, math.inf)
    assert at_least(1, 1.0000001).slack == pytest.approx(-1e-7)
    # Relative to the numbers: isotropies of e-20 are compared like any others.
    assert greater(2e-20, 1e-20).holds
    with pytest.raises(Undefined):
        greater(math.nan, 1)
