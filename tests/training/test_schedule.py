"""Learning rates, step by step."""

import pytest

from rarepapers.core.errors import UserError
from rarepapers.training.schedule import Cosine, InverseSqrt, build_schedule


def test_cosine_schedule():
    schedule = Cosine(peak=1e-3, final=1e-4, warmup=100, steps=8000)
    assert schedule(0) == 0
    assert schedule(50) == pytest.approx(5e-4)
    assert schedule(100) == pytest.approx(1e-3)
    assert schedule(4050) == pytest.approx(5.5e-4)
    assert schedule(7999) == pytest.approx(1e-4, rel=1e-3)
    assert schedule(8000) == 1e-4


def test_inverse_sqrt_schedule_is_fairseqs():
    """At every step it equals fairseq's InverseSquareRootSchedule.step_update."""
    start, peak, warmup = 1e-7, 7e-4, 4000
    schedule = InverseSqrt(peak=peak, warmup=warmup, steps=50_000, start=start)
    lr_step, decay_factor = (peak - start) / warmup, peak * warmup**0.5
    for updates in (0, 1, 1999, 3999, 4000, 4001, 16_000, 49_999):
        expected = start + updates * lr_step if updates < warmup else decay_factor * updates**-0.5
        assert schedule(updates) == pytest.approx(expected, rel=1e-12)
    assert schedule(0) == start
    assert schedule(4000) == peak


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"name": "linear"}, "schedule.name is 'linear'"),
        (
            {"name": "cosine", "peak": 1, "final": 0, "warmup": 10},
            "warmup is 10, but training has only 10 steps",
        ),
        ({"name": "cosine", "peak": 1}, "configured wrongly"),
        ({"name": "inverse_sqrt", "peak": 1, "warmup": 10}, "warmup is 10, but training has only 10 steps"),
        ({"name": "inverse_sqrt", "peak": 1, "warmup": 0}, "warmup is 0; inverse_sqrt needs at least 1"),
        ({"name": "inverse_sqrt", "peak": 1, "warmup": 5, "final": 0}, "configured wrongly"),
    ],
)
def test_wrong_schedules_are_refused(settings, expected):
    with pytest.raises(UserError, match=expected):
        build_schedule(settings, 10)
