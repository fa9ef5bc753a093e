"""Area under the validation curve, by hand."""

import pytest

from rarepapers.core.errors import UserError
from rarepapers.metrics.learning_curve import area, read_curve


@pytest.mark.parametrize(
    ("steps", "values", "end", "expected"),
    [
        # 0 at step 0; triangle to 10, then 10 to 20, then 20 to 20.
        ([10, 20, 40], [10, 20, 20], None, ((50 + 150 + 400) / 40, 40)),
        ([10, 20, 40], [10, 20, 20], 20, (200 / 20, 20)),
        # If the interval ends between measurements, the line is cut there: the value at step 15 is 15.
        ([10, 20], [10, 20], 15, ((50 + (10 + 15) / 2 * 5) / 15, 15)),
        ([10, 20], [10, 20], 5, (2.5, 5)),
        # An interval beyond the end of training stops there.
        ([10, 20], [10, 20], 500, (10, 20)),
        # A measured start replaces zero, and a constant is its own mean wherever it is cut.
        ([0, 10], [4, 4], None, (4, 10)),
        ([0, 3, 30], [5, 5, 5], 1, (5, 1)),
        ([0, 3, 30], [5, 5, 5], 7, (5, 7)),
    ],
)
def test_area_equals_the_trapezoid_by_hand(steps, values, end, expected):
    assert area(steps, values, end) == pytest.approx(expected)


def test_without_measurements_the_area_is_nan():
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
    with pytest.raises(UserError, match="is not a history of validations"):
        read_curve(path, "valid_bleu")
    with pytest.raises(UserError, match="is not a history of validations"):
        read_curve(tmp_path / "absent.csv", "valid_bleu")
