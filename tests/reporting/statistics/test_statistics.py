"""Estimators on data with known answers: published examples or closed forms."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from rarepapers.reporting.statistics.bootstrap import bootstrap_interval, probability_of_improvement
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
    assert t_interval([0.3, 0.1 + 0.2, 0.3])[1:] == bootstrap_interval([0.3, 0.1 + 0.2, 0.3])[1:] == (None, None)
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


def test_probability_of_improvement_equals_rliables():
    """Scores of rliable's own test, runs x tasks; P(X > Y) is 1/3."""
    x, y = [[1, 2], [2, 2], [1, 1], [2, 1]], [[1, 1], [2, 2], [3, 3]]
    by_task = [list(zip(*scores, strict=True)) for scores in (y, x)]
    found = probability_of_improvement(*by_task)
    assert found.mean == pytest.approx(1 / 3)
    assert found.lower < 1 / 3 < found.upper
    assert probability_of_improvement(*reversed(by_task)).mean == pytest.approx(2 / 3)


def test_bootstrap_of_ones_and_zeros_has_the_quantiles_of_a_binomial():
    """Ten of twenty: means of resamples are Binomial(20, 1/2) / 20, which 6 and 14 of 20 bound at 95%."""
    values = [0.0] * 10 + [1.0] * 10
    assert bootstrap_interval(values) == pytest.approx((0.5, 0.3, 0.7))
    assert stats.binom.interval(0.95, 20, 0.5) == (6, 14)
    # No first run is above a second one, and half of those are above it, the others ties: (1 + share) / 2.
    assert probability_of_improvement([[0.0] * 20], [values]) == pytest.approx((0.75, 0.65, 0.85))


def test_each_data_set_is_resampled_by_itself():
    """Always better on one and always worse on the other is a half, whichever runs are drawn."""
    worse, better = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    assert probability_of_improvement([worse, better], [better, worse]) == (0.5, 0.5, 0.5)


def test_bootstrap_depends_only_on_the_numbers():
    values = [0.1, 0.5, 0.7, 1.3]
    first = bootstrap_interval(values), probability_of_improvement([values], [SLEEP])
    np.random.seed(3)  # noqa: NPY002 (of no account, which is what is tested)
    assert (bootstrap_interval(values), probability_of_improvement([values], [SLEEP])) == first


def test_one_seed_has_no_interval():
    for interval in (t_interval, bootstrap_interval):
        assert interval([2.0]) == interval([2.0, 2.0]) == (2.0, None, None)
        assert interval([math.inf, 1.0]) == (math.inf, None, None)
    assert probability_of_improvement([[1.0]], [[2.0]]) == (1.0, None, None)


@pytest.mark.parametrize("seeds", [3, 5])
def test_coverage_of_t_and_bootstrap_intervals(seeds):
    """95% intervals of the mean of normal values: t has its nominal coverage, a bootstrap of few seeds has not."""
    draws = np.random.default_rng(seeds).normal(size=(2000, seeds)).tolist()
    within = statistics.fmean(one.lower <= 0 <= one.upper for one in map(t_interval, draws))
    assert within == pytest.approx(0.95, abs=0.015)  # three standard errors
    within = statistics.fmean(one.lower <= 0 <= one.upper for one in map(bootstrap_interval, draws[:300]))
    assert within < 0.9


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
