"""Estimators on data with known answers: published examples or closed forms."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from rarepapers.reporting.statistics.concordance import concordance, order
from rarepapers.reporting.statistics.intervals import t_interval
from rarepapers.reporting.statistics.moderated_t import estimate
from rarepapers.reporting.statistics.significance import holm
from rarepapers.reporting.statistics.variation import cv_star

# Student 1908: additional hours of sleep by one drug over another, in ten patients; t = 4.0621, p = 0.002833.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


def p_of(values):
    return estimate(dict(enumerate(values))).p()


def test_t_test_and_interval_of_students_own_data():
    assert p_of(SLEEP) == pytest.approx(0.002833, abs=5e-7)
    assert t_interval(SLEEP) == pytest.approx((1.58, 0.7001142, 2.4598858), abs=1e-7)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_p_is_below_a_level_exactly_where_the_interval_leaves_zero_out(seeds):
    values = np.random.default_rng(seeds).normal(size=(50, seeds)) + 1
    for row in values.tolist():
        assert p_of(row) == pytest.approx(stats.ttest_1samp(row, 0).pvalue, rel=1e-9)
        interval = t_interval(row)
        assert (p_of(row) < 0.05) == (interval.lower > 0 or interval.upper < 0)


def test_untestable_values_have_no_p():
    assert p_of([1.0]) is None
    assert p_of([0.0, 0.0, 0.0]) is None
    assert p_of([math.inf, 1.0]) is None
    assert p_of([math.inf, math.inf]) is None
    assert p_of([2.0, 2.0]) is None
    # Equal up to rounding, which would otherwise give a p near 0.
    assert p_of([0.3, 0.1 + 0.2, 0.3]) is None
    assert t_interval([0.3, 0.1 + 0.2, 0.3])[1:] == (None, None)
    assert p_of([2.0, 2.000001]) < 1e-6


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        # four tests of which Holm rejects two at 0.05
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        # p.adjust(p, "holm") of R
        ([0.042, 0.001, 0.031, 0.014, 0.007], [0.062, 0.005, 0.062, 0.042, 0.028]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.03], [0.03]),
        ([], []),
    ],
)
def test_holm(ps, adjusted):
    assert holm(ps) == pytest.approx(adjusted)


@pytest.mark.parametrize(
    ("scores", "printed"),
    [
        ([84.51, 84.50, 87.46, 85.60, 84.20, 86.61, 86.20], 1.562),  # NTS_def, BLEU
        ([30.65, 30.65, 29.13, 30.65, 29.96], 2.487),  # NTS_def, SARI
        ([87.50, 80.75, 89.36, 88.10, 89.64, 88.80], 4.176),  # NTS-w2v_def, BLEU
        ([31.11, 30.28, 31.11, 29.12], 3.572),  # NTS-w2v_def, SARI
    ],
)
def test_cv_star_equals_belz_table_4(scores, printed):
    assert cv_star(scores) == pytest.approx(printed, abs=5e-4)


def test_cv_star_of_two_by_hand():
    """s is |a - b| / sqrt 2, c4(2) is sqrt(2 / pi), the correction 9/8: 12.5 against 10 of 11.25 is 22%."""
    assert cv_star([12.5, 10.0]) == pytest.approx(100 * 9 / 8 * (2.5 / math.sqrt(2)) / math.sqrt(2 / math.pi) / 11.25)
    assert cv_star([10.0, 10.0]) == 0
    for measured in ([10.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.inf], [1.0, math.nan]):
        assert cv_star(measured) is None


def test_one_seed_has_no_interval():
    assert t_interval([2.0]) == t_interval([2.0, 2.0]) == (2.0, None, None)
    assert t_interval([math.inf, 1.0]) == (math.inf, None, None)


@pytest.mark.parametrize("seeds", [3, 5])
def test_coverage_of_t_intervals(seeds):
    """95% intervals of the mean of normal values."""
    draws = np.random.default_rng(seeds).normal(size=(2000, seeds)).tolist()
    within = statistics.fmean(one.lower <= 0 <= one.upper for one in map(t_interval, draws))
    assert within == pytest.approx(0.95, abs=0.015)  # three standard errors


def test_concordance():
    assert concordance([1, 2, 3, 4], [10, 20, 30, 40]) == (4, 6, 1, 1, 1)
    assert concordance([1, 2, 3, 4], [4, 3, 2, 1]) == (4, 6, 0, -1, -1)
    # one swap of neighbours: 5 of 6 pairs, tau (5 - 1) / 6, rho 1 - 6 * 2 / (4 * 15)
    assert concordance([1, 2, 3, 4], [2, 1, 3, 4]) == pytest.approx((4, 6, 5 / 6, 2 / 3, 0.8))


def test_concordance_of_ties_and_infinities():
    # A printed tie has no sign to agree with; a tie in ours agrees with no difference.
    assert concordance([1, 1, 2], [5, 6, 7])[:3] == (3, 2, 1)
    assert concordance([1, 2, 3], [5, 5, 7])[:3] == (3, 3, 2 / 3)
    assert concordance([1, 2, math.inf], [5, 6, math.inf]) == (3, 3, 1, 1, 1)
    assert concordance([1, 2], [3, 4]) == (2, 1, 1, None, None)
    assert concordance([1], [3]) == (1, 0, None, None, None)
    assert concordance([1, 2, 3], [5, 5, 5]) == (3, 3, 0, None, None)
    assert [order(*pair) for pair in ((2, 1), (1, 2), (-math.inf, -math.inf))] == [1, -1, 0]
