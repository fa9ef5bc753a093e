"""Area under the validation curve, by hand."""

import pytest

from raretok.core.errors import UserError
from raretok.metrics.learning_curve import area, read_curve


def test_the_trapezoid_by_hand():
    # 0 at update 0; triangle to 10, then 10 to 20, then 20 to 20.
    steps, values = [10, 20, 40], [10.0, 20.0, 20.0]
    assert area(steps, values) == (pytest.approx((50 + 150 + 400) / 40), 40)
    assert area(steps, values, 20) == (pytest.approx(200 / 20), 20)


def test_an_end_between_measurements_cuts_the_line():
    # At 15 the line stands at 15.
    assert area([10, 20], [10.0, 20.0], 15) == (pytest.approx((50 + (10 + 15) / 2 * 5) / 15), 15)
    assert area([10, 20], [10.0, 20.0], 5) == (pytest.approx(2.5), 5)


def test_an_end_beyond_training_is_its_end():
    assert area([10, 20], [10.0, 20.0], 500) == (pytest.approx(10.0), 20)


def test_a_measured_start_stands_instead_of_zero():
    assert area([0, 10], [4.0, 4.0]) == (pytest.approx(4.0), 10)


def test_a_constant_is_its_own_mean_however_it_is_cut():
    for end in (1, 7, 30, None):
        assert area([0, 3, 30], [5.0, 5.0, 5.0], end)[0] == pytest.approx(5.0)


def test_nothing_measured_is_no_number():
    for steps in ([], [0]):
        value, last = area(steps, [1.0] * len(steps))
        assert value != value
        assert last == 0


def test_curves_are_read_from_the_history(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(
        "step,split,loss,learning_rate,gradient_norm,tokens\n5,train,3.1,0.1,1,9\n20,valid_bleu,12.5,,,\n"
        "10,valid_bleu,2.5,,,\n10,valid_chrf,30,,,\n10,valid,2.0,,,\n"
    )
    steps, values = read_curve(path, "valid_bleu")
    assert steps.tolist() == [10, 20]
    assert values.tolist() == [2.5, 12.5]
    assert [len(column) for column in read_curve(path, "valid_ter")] == [0, 0]
    path.write_text("step,loss\n1,2\n")
    with pytest.raises(UserError, match="is not the history of a training"):
        read_curve(path, "valid_bleu")
    with pytest.raises(UserError, match="is not the history of a training"):
        read_curve(tmp_path / "absent.csv", "valid_bleu")
