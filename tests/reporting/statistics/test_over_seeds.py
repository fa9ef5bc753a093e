"""Means over seeds of which one diverged: named, never left out, and no number of floats ends the report."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarepapers.reporting.statistics.intervals import t_interval
from rarepapers.reporting.statistics.moderated_t import estimate, single_runs
from rarepapers.reporting.statistics.over_seeds import (
    deviation_of,
    mean_of,
    mean_text,
    not_finite,
    number_text,
    ratio_of,
    variance_of,
)

NUMBERS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 0.0, 1e200, -1e308, 1e308, 1e-320, 5.0])
ROWS = st.dictionaries(st.integers(1, 5), NUMBERS, min_size=1)


def test_a_seed_that_is_not_finite_is_named_and_not_left_out():
    values = {1: 2.0, 2: math.inf, 3: math.nan, 4: 4.0, 5: math.inf}
    assert not_finite(values) == "infinite in seeds 2, 5; undefined in seed 3"
    assert mean_text(values, ".2f") == "undefined (infinite in seeds 2, 5; undefined in seed 3)"
    assert mean_text({1: 2.0, 2: -math.inf}, ".2f") == "-inf (infinite in seed 2)"
    assert mean_text({1: 2.0, 2: 4.5}, ".2f") == "3.25"
    assert deviation_of(values.values()) is None
    assert math.isnan(mean_of([math.inf, -math.inf]))


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1234.50"), (3.3333e199, "3.33e+199"), (-math.inf, "-inf"), (math.nan, "undefined")]
)
def test_a_number_has_no_digits_that_its_float_does_not_have(value, text):
    assert number_text(value, ".2f") == text


def test_a_ratio_is_finite_or_none():
    assert ratio_of(6.0, 3.0) == 2.0
    for value, base in ((1.0, 0.0), (1.0, math.inf), (math.inf, 1.0), (math.nan, 1.0), (1.0, 1e-320), (None, 1.0)):
        assert ratio_of(value, base) is None


@given(ROWS)
def test_means_and_spreads_of_any_floats(values):
    numbers = list(values.values())
    mean, deviation, variance = mean_of(numbers), deviation_of(numbers), variance_of(numbers)
    if not all(map(math.isfinite, numbers)):
        assert not math.isfinite(mean)
        assert deviation is variance is None
        assert not_finite(values)
        return
    assert (
        min(numbers) * (1 - 1e-12 * (1 if min(numbers) > 0 else -1)) <= mean <= max(numbers) + 1e-12 * abs(max(numbers))
    )
    assert not not_finite(values)
    if variance is not None and variance < 1e300:
        assert variance == pytest.approx(statistics.variance(numbers))
        assert deviation == pytest.approx(variance**0.5)


@given(ROWS, st.lists(ROWS, max_size=6))
def test_estimates_of_any_floats(values, pool):
    """No exception, a p between 0 and 1, an interval around the mean."""
    for compared in (True, False):
        found = estimate(values, pool, compared)
        p, (lower, upper) = found.p(0.0), found.interval()
        assert found.seeds == len(values)
        assert p is None or 0 <= p <= 1
        assert lower is None or lower <= found.mean <= upper
        if found.diverged:
            assert (found.sd, p, lower) == (None, None, None)
    single_runs([values, *pool], [values, *pool])


@given(ROWS)
def test_intervals_of_any_floats(values):
    if not all(map(math.isfinite, values.values())):
        assert t_interval(list(values.values())).bounds is None


def test_a_pool_with_a_row_beyond_the_range_of_floats_is_the_pool_without_it():
    rng = np.random.default_rng(0)
    rows = [dict(enumerate(row)) for row in rng.normal(size=(8, 3)).tolist()]
    odd = {0: 1e200, 1: 2.0, 2: 3.0}
    assert estimate(rows[0], [*rows, odd]) == estimate(rows[0], rows)
    assert estimate(odd, [*rows, odd]).diverged == "from 2 to 1e+200, whose variance is not finite or 0"
