"""Estimates of the remaining time of runs."""

import pytest

from raretok.work.run_speed import Speed


def test_measured_times_correct_the_plan(table_with):
    table = table_with(config=["device=cpu"], scale="smoke", papers=None)
    speed, runs = Speed(table), table.runs
    character, other = runs["shakespeare", "baseline", 1], runs["shakespeare", "threshold_m2", 1]
    language = runs["language_model", "mle", 1]
    planned = speed.expected(language)
    assert planned == pytest.approx(speed.planned(language))
    assert planned > 0
    speed.note(character, 3 * speed.planned(character))
    assert speed.expected(other) == pytest.approx(3 * speed.planned(other))
    # For another experiment, only the plan's error on this machine is known.
    assert speed.expected(language) == pytest.approx(3 * planned)
    # A run that was half finished took half as long.
    speed.note(language, planned, share=0.5)
    assert speed.expected(language, share=0.25) == pytest.approx(planned / 2)
    # A run that was only evaluated has no training time.
    speed.note(language, 100 * planned, share=0)
    assert speed.expected(language) == pytest.approx(2 * planned)
