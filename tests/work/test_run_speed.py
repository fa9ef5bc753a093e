"""How long runs will take."""

import pytest

from raretok.work.run_speed import Speed


def test_what_runs_took_corrects_the_plan(table_with):
    table = table_with(config=["device=cpu"], scale="smoke", papers=None)
    speed, runs = Speed(table), table.runs
    character, other = runs["shakespeare", "baseline", 1], runs["shakespeare", "threshold_m2", 1]
    language = runs["language_model", "mle", 1]
    planned = speed.expected(language)
    assert planned == pytest.approx(speed.planned(language))
    assert planned > 0
    speed.note(character, 3 * speed.planned(character))
    assert speed.expected(other) == pytest.approx(3 * speed.planned(other))
    # Of another experiment the only thing known is how far plans are off here.
    assert speed.expected(language) == pytest.approx(3 * planned)
    # A run that was half done took half as long.
    speed.note(language, planned, share=0.5)
    assert speed.expected(language, share=0.25) == pytest.approx(planned / 2)
    # One that had only to be evaluated says nothing.
    speed.note(language, 100 * planned, share=0)
    assert speed.expected(language) == pytest.approx(2 * planned)
