"""The predicate language: what it allows, what it refuses, and its slack."""

import math
import operator

import pytest
from fake_results import PUBLISHED
from hypothesis import given
from hypothesis import strategies as st

from raretok.core.errors import UserError
from raretok.reporting.claims.predicates import MAX_CHARACTERS, Truth, Undefined, evaluate, greater, quantities
from raretok.reporting.claims.table_claims import keys_of
from raretok.reporting.results import printed_numbers, read_published

TABLE_CLAIMS = [
    claim
    for paper in ("agg", "agps", "stop_jostling")
    for claim in read_published(PUBLISHED, "claims", paper).itertuples()
    if claim.measured_by == "table"
]


def test_there_are_84_table_claims():
    assert len(TABLE_CLAIMS) == 84


@pytest.mark.parametrize("claim", TABLE_CLAIMS, ids=lambda claim: claim.id)
def test_truth_on_printed_numbers(claim):
    printed = printed_numbers(PUBLISHED, claim.paper)
    truth = evaluate(claim.predicate, lambda t, r, c, g="": printed[t, r, c, g].value)
    assert truth.holds == (claim.holds_on_printed_numbers == "yes")
    if truth.slack:
        assert truth.holds == (truth.slack > 0)


def test_a_quantity_is_split_into_its_numbers():
    """Tuples, generators and their sums; each number asks for its own cells alone."""
    row = "v('t',r,'c')"
    quantity = f"(v('t','a','c') / 2,) + tuple({row} - v('t','b','c') for r in ('a','b')) + (max(v('t','a','c'), 9),)"
    parts = quantities(quantity)
    assert [part(look_up) for part in parts] == [1.0, -3.0, 0.0, 9.0]
    assert [part(look_up) for part in quantities("v('t','a','c') + v('t','b','c')")] == [7.0]
    assert [keys_of(part) for part in parts[:3]] == [[("t", "a", "c", "")], [A, B], [B]]
    for refused in ("'a'", "('a', 1)", "1 < 2", "tuple(x for x in (1, 2) if x)", "(1, (2 < 3))"):
        with pytest.raises(UserError):
            [part(look_up) for part in quantities(refused)]
    with pytest.raises(Undefined):
        quantities("v('t','a','c') / (v('t','b','c') - 5)")[0](look_up)


def test_a_conjunction_keeps_its_parts():
    truth = evaluate("v('t','a','c') < 3 and all(v('t',r,'c') > 3 for r in ('a','b'))", look_up)
    assert [part.slack for part in truth.parts] == [1, -1, 2]
    assert (truth.holds, truth.slack) == (False, -1)


A, B = ("t", "a", "c", ""), ("t", "b", "c", "")
NUMBERS = {"a": 2.0, "b": 5.0, "inf": math.inf, "nan": math.nan}


def look_up(table, row, column, group=""):
    assert (table, column, group) == ("t", "c", "")
    return NUMBERS[row]


@pytest.mark.parametrize(
    ("predicate", "holds", "slack"),
    [
        ("v('t','a','c') < v('t','b','c')", True, 3),
        ("v('t','a','c') >= v('t','b','c')", False, -3),
        ("2 <= v('t','a','c') <= 2.5", True, 0),
        ("2 < v('t','a','c') <= 2.5", False, 0),
        ("v('t','a','c') == 2", True, 0),
        ("v('t','a','c') == 4", False, -2),
        ("abs(v('t','a','c') - 3) <= 0.25", False, -0.75),
        ("v('t','a','c') < 3 and v('t','b','c') < 4", False, -1),
        ("v('t','a','c') < 3 or v('t','b','c') < 4", True, 1),
        ("all(v('t',r,'c') * k < 11 for r in ('a','b') for k in (1, 2))", True, 1),
        ("any(v('t',r,'c') > 4 for r in ('a',) + ('b',))", True, 1),
        ("max(v('t',r,'c') for r in ('a','b')) - min(2, 1) == 4", True, 0),
        ("sum(tuple(v('t',r,'c') for r in ('a','b'))) > -7 / 2", True, 10.5),
        ("v('t','inf','c') == v('t','inf','c')", True, 0),
        ("v('t','a','c') < v('t','inf','c')", True, math.inf),
    ],
)
def test_slack(predicate, holds, slack):
    assert evaluate(predicate, look_up) == Truth(holds, slack)


def test_names_are_formatted():
    truth = evaluate("all(v('t','a%d' % k,'c') > 0 for k in (1,2))", lambda t, r, c: {"a1": 1, "a2": 2}[r])
    assert truth == Truth(True, 1)


@pytest.mark.parametrize(
    "predicate",
    [
        "__import__('os').system('true') < 1",
        "(1).real < 2",
        "open('x') < 1",
        "v('t','a','c')",
        "1 < 2 < 'a'",
        "'a' < 'b'",
        "not 1 < 2",
        "1 if 1 < 2 else 0",
        "[1] == [1]",
        "(lambda: 1)() < 2",
        "v.__class__ == 1",
        "v('t','a') < 1",
        "v(t='t') < 1",
        "v(1,2,3) < 1",
        "unknown < 1",
        "True == 1",
        "2 ** 9 > 1",
        "('a',) * 9 == 1",
        "'%999999999d' % 1 == 1",
        "all(x < 1 for x in (1,2) if x > 1)",
        "all(x < 1 for (x, y) in ((1, 2),))",
        "max(()) < 1",
        "all((1, 2))",
        "1 <",
        "1 < 2; 3",
        "f'{1}' == 1",
        "1 in (1, 2)",
        "1 != 2",
        "-" * 60 + "1 < 2",
        "1 < 2" + " " * MAX_CHARACTERS,
        "all(1 < 2 for a in (1,2,3,4,5,6,7,8,9) for b in (1,2,3,4,5,6,7,8,9) for c in (1,2,3,4,5,6,7,8,9)"
        " for d in (1,2,3,4,5,6,7,8,9) for e in (1,2,3,4,5,6,7,8,9))",
    ],
)
def test_refused(predicate):
    with pytest.raises(UserError):
        evaluate(predicate, look_up)


@pytest.mark.parametrize(
    "predicate",
    [
        "1 / (1 - 1) < 1",
        "v('t','inf','c') - v('t','inf','c') < 1",
        "v('t','inf','c') / v('t','inf','c') < 1",
        # A NaN that `max` or `min` would drop where it stands second.
        "max(1, v('t','inf','c') - v('t','inf','c')) < 2",
        "min(1, v('t','inf','c') * 0) < 2",
        "max(1, v('t','nan','c')) < 2",
        "sum((v('t','inf','c'), -v('t','inf','c'))) < 2",
    ],
)
def test_no_number(predicate):
    with pytest.raises(Undefined):
        evaluate(predicate, look_up)


def test_named_claims_know_no_nan_either():
    with pytest.raises(Undefined):
        greater(math.nan, 1)


@pytest.mark.parametrize(
    ("predicate", "holds"),
    [
        ("abs(1.05 - 1) <= 0.05", True),
        ("0.05 >= abs(1.05 - 1)", True),
        ("0.05 < abs(1.05 - 1)", False),
        ("abs(0.95 - 1) <= 0.05", True),
        ("0.1 + 0.2 == 0.3", True),
        ("0.1 + 0.2 > 0.3", False),
        ("0.3 < 0.1 + 0.2", False),
        ("30000000.1 + 0.2 <= 30000000.3", True),
    ],
)
def test_a_bound_is_met_whatever_the_rounding(predicate, holds):
    assert evaluate(predicate, look_up) == Truth(holds, 0)


def test_what_differs_by_more_than_rounding_is_no_tie():
    assert evaluate("1.0000001 <= 1", look_up).slack == pytest.approx(-1e-7)
    assert not evaluate("1.0000001 == 1", look_up).holds
    # Relative to the numbers: isotropies of e-20 are compared like any others.
    assert evaluate("0.00000000000000000001 < 0.00000000000000000002", look_up).holds


# Multiples of 1/64 are exact and differ by more than rounding.
numbers = st.integers(-(10**6), 10**6).map(lambda k: k / 64)
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


@given(numbers, numbers, numbers, st.sampled_from(sorted(SIGNS)), st.sampled_from(sorted(SIGNS)), st.booleans())
def test_sign_of_slack_is_the_truth(a, b, c, first, second, chain):
    values = {"a": a, "b": b, "c": c}
    x, y, z = (f"v('t','{name}','c')" for name in values)
    text = f"{x} {first} {y} {second} {z}" if chain else f"{x} {first} {y} or {y} {second} {z}"
    truth = evaluate(text, lambda t, r, col: values[r])
    parts = SIGNS[first](a, b), SIGNS[second](b, c)
    assert truth.holds == (all(parts) if chain else any(parts))
    if truth.slack:
        assert truth.holds == (truth.slack > 0)
