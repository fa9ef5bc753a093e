"""Forest plot: side of the line and scale."""

import math
from types import SimpleNamespace

import pytest

from rarepapers.reporting.page.page_forest import FAR, HALF, MIDDLE, drawn_row


def claim(unit="x", null="1", direction=">", margin="", quantity="a"):
    return SimpleNamespace(id="made.up", unit=unit, null=null, direction=direction, margin=margin, quantity=quantity)


def row(ours, printed="", lower="", upper=""):
    return {"ours": ours, "printed": printed, "lower": lower, "upper": upper}


@pytest.mark.parametrize(
    ("direction", "ours", "right"), [(">", "1.2", True), (">", "0.8", False), ("<", "0.8", True), ("<", "1.2", False)]
)
def test_the_papers_direction_is_to_the_right(direction, ours, right):
    assert (drawn_row(row(ours), claim(direction=direction))["ours"] > MIDDLE) == right


def test_ratios_share_a_scale_and_are_cut_at_its_end():
    assert drawn_row(row("10"), claim())["ours"] == pytest.approx(MIDDLE + HALF)
    beyond = drawn_row(row("500", lower="0.001", upper=str(10 * FAR)), claim())
    assert (beyond["ours"], beyond["lower"], beyond["upper"]) == (MIDDLE + HALF, MIDDLE - HALF, MIDDLE + HALF)
    two, half = drawn_row(row("2"), claim()), drawn_row(row("0.5"), claim())
    assert two["ours"] - MIDDLE == pytest.approx(MIDDLE - half["ours"])


def test_the_line_is_the_bound_of_the_claim():
    assert drawn_row(row("2"), claim(null="2"))["ours"] == MIDDLE
    assert drawn_row(row(str(1 / 1.05)), claim(margin="0.05"))["ours"] == pytest.approx(MIDDLE)


@pytest.mark.parametrize(("part", "right"), [("BLEU", True), ("area", False), ("area (3 of 6)", False)])
def test_each_comparison_of_a_claim_has_its_own_margin(part, right):
    of_two = claim(unit="BLEU", null="0", margin="0.5; 0", quantity="BLEU; area")
    assert (drawn_row(row("-0.3") | {"part": part}, of_two)["ours"] > MIDDLE) == right


def test_other_quantities_fill_their_own_row():
    at = drawn_row(row("-6", printed="28"), claim(unit="tokens", null="0"))
    assert (at["printed"], at["ours"]) == (pytest.approx(MIDDLE + HALF), pytest.approx(MIDDLE - HALF * 6 / 28))


def test_the_margin_of_equality_is_a_band():
    at = drawn_row(row("1.04"), claim(direction="=", margin="0.01"))
    assert 0 < at["band"] < at["ours"] - MIDDLE


def test_claims_that_were_not_run_are_not_drawn():
    assert drawn_row(row(""), claim()) is None
    assert drawn_row(row("1"), claim(direction="")) is None


def test_an_infinite_effect_has_a_finite_position():
    at = drawn_row(row("inf", printed="2"), claim(unit="", null="0"))
    assert math.isfinite(at["ours"])


@pytest.mark.parametrize(
    ("lower", "upper", "leaves"),
    [("0.5", "2", []), ("0", "2", ["left"]), ("1.5", "inf", ["right"]), ("0", "inf", ["left", "right"])],
)
def test_an_interval_that_leaves_the_scale_has_an_arrow(lower, upper, leaves):
    """Bounds of a ratio can be so small that they are printed as 0; a wider interval is never drawn shorter."""
    at = drawn_row(row("1.2", lower=lower, upper=upper), claim())
    assert at["leaves"] == leaves
    inner = drawn_row(row("1.2", lower="0.5", upper="2"), claim())
    assert at["lower"] <= max(inner["lower"], at["lower"])
    assert (at["lower"] <= inner["lower"]) == (float(lower) <= 0.5)
    assert (at["upper"] >= inner["upper"]) == (float(upper) >= 2)
    assert drawn_row(row("1.2", lower=lower, upper=upper), claim(direction="<"))["leaves"] == [
        {"left": "right", "right": "left"}[side] for side in leaves[::-1]
    ]


def test_an_interval_beyond_one_end_has_one_arrow():
    assert drawn_row(row("500", lower="200", upper="1000"), claim())["leaves"] == ["right"]
    assert drawn_row(row("2", lower="-inf", upper="3"), claim(unit="BLEU", null="0"))["leaves"] == ["left"]
    assert drawn_row(row("nan"), claim()) is None
