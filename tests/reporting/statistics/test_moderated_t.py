"""Moderated t, compared with an independent squeezeVar and closed forms, with few and with unequal rows."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from rarepapers.reporting.statistics.intervals import t_interval
from rarepapers.reporting.statistics.moderated_t import (
    MOST_PRIOR_DF,
    estimate,
    prior_of,
    row_variances,
    single_runs,
    squeeze,
    trigamma_inverse,
)


def rows_of(table):
    return [dict(enumerate(row, 1)) for row in table]


def squeezed(variances, df):
    """Independent fitFDist of limma: the equation for d0 solved by bracketing, in logs as in Smyth's paper."""
    logs = np.log(variances)
    excess = logs.var(ddof=1) - special.polygamma(1, df / 2)
    if excess <= 0:
        return np.mean(variances), math.inf
    d0 = optimize.brentq(lambda d: special.polygamma(1, d / 2) - excess, 1e-6, 1e8)
    s0 = math.exp(logs.mean() - special.digamma(df / 2) + special.digamma(d0 / 2) + math.log(df / d0))
    return s0, d0


@pytest.mark.parametrize("df", [1, 2, 4, 9])
def test_squeeze_agrees_with_another_solution_of_the_same_moments(df):
    generator = np.random.default_rng(df)
    variances = 3.0 * stats.f(df, 5).rvs(400, random_state=generator)
    ours = squeeze(variances, np.full(400, float(df)))
    assert ours == pytest.approx(squeezed(variances, df), rel=1e-6)
    # Both recover the parameters from which the variances were drawn.
    assert 1.5 < ours[0] < 6
    assert 2.5 < ours[1] < 12


def test_equal_variances_are_pooled_completely():
    variances, dfs = np.array([2.0, 2.0, 2.0]), np.array([4.0, 4.0, 4.0])
    assert squeeze(variances, dfs) == (2.0, math.inf)


def test_trigamma_inverse():
    assert trigamma_inverse(math.pi**2 / 6) == pytest.approx(1)
    assert trigamma_inverse(math.pi**2 / 2) == pytest.approx(0.5)
    for value in (1e-4, 0.3, 50, 1e4):
        assert special.polygamma(1, trigamma_inverse(value)) == pytest.approx(value, rel=1e-8)


def test_without_other_rows_it_is_students_t():
    values = {1: 0.3, 2: 0.5, 4: 1.0}
    found = estimate(values)
    assert found.prior is None
    assert found.interval() == pytest.approx(t_interval(list(values.values()))[1:])
    assert found.p(0.2) == pytest.approx(stats.ttest_1samp(list(values.values()), 0.2).pvalue)


def test_shared_effects_of_a_seed_do_not_count_as_variance():
    generator = np.random.default_rng(0)
    own = generator.normal(size=(6, 4))
    shared = own + 100 * generator.normal(size=4)
    for first, second in zip(row_variances(rows_of(own)), row_variances(rows_of(shared)), strict=True):
        assert first == pytest.approx(second, rel=1e-6)
    # a balanced table has a closed form: (rows - 1)(seeds - 1) degrees of freedom in all
    variances, dfs = row_variances(rows_of(own))
    residuals = own - own.mean(0) - own.mean(1, keepdims=True) + own.mean()
    assert dfs == pytest.approx(np.full(6, 3 * 5 / 6))
    assert variances == pytest.approx((residuals**2).sum(1) / (3 * 5 / 6))


def test_degrees_of_freedom_if_rows_lack_seeds():
    generator = np.random.default_rng(1)
    rows = rows_of(generator.normal(size=(5, 6)))
    del rows[0][1], rows[0][2], rows[3][6]
    _, dfs = row_variances(rows)
    assert sum(dfs) == pytest.approx(27 - 5 - 6 + 1)
    assert dfs[0] < dfs[3] < dfs[1]
    # A seed that only one row has carries no information.
    alone = [*rows, {7: 1.0, 8: 3.0}]
    assert row_variances(alone)[1] == pytest.approx(dfs)


def test_a_row_is_drawn_towards_the_others():
    table = rows_of(np.random.default_rng(3).normal(size=(9, 3)))
    known = prior_of(table)
    for row in table:
        found = estimate(row, table)
        plain = estimate(row)
        expected = (known.df * known.variance + 2 * plain.sd**2) / (known.df + 2)
        assert found.sd**2 == pytest.approx(expected)
        assert found.df == pytest.approx(2 + known.df)
        assert found.mean == plain.mean
        # The row may be in its pool or not.
        assert found == estimate(row, [other for other in table if other is not row])


def test_few_rows_add_few_degrees_of_freedom():
    generator = np.random.default_rng(5)
    alike = generator.normal(size=(40, 10))
    # With the baseline, there is one row more.
    assert [prior_of(rows_of(alike[:number])) for number in (0, 1, 2)] == [None, None, None]
    caps = [prior_of(rows_of(alike[:number])).df for number in (3, 4, 40)]
    assert caps == pytest.approx([0.5, 1, MOST_PRIOR_DF])
    levels = [prior_of(rows_of(alike[:number]), compared=False).df for number in (4, 6, 40)]
    assert levels == pytest.approx([0.25, 0.75, MOST_PRIOR_DF / 2])


def test_rows_that_differ_in_variance_fall_back_to_students_t():
    generator = np.random.default_rng(7)
    table = rows_of(generator.normal(size=(12, 10)) * 10.0 ** np.arange(-6, 6)[:, None])
    assert prior_of(table, compared=False).df < 0.2
    row = table[4]
    found, plain = estimate(row, table, compared=False), estimate(row)
    assert found.interval() == pytest.approx(plain.interval(), rel=0.05)


def test_equal_seeds_take_the_spread_of_other_rows():
    table = rows_of(np.random.default_rng(2).normal(size=(9, 3)))
    tie = {1: 0.5, 2: 0.5, 3: 0.5}
    assert estimate(tie).p() is None
    assert estimate(tie).interval() == (None, None)
    found = estimate(tie, table)
    assert found.df == found.prior.df
    assert found.sd**2 == pytest.approx(found.prior.variance)
    assert 0 < found.p() < 1


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("of", [lambda k: 0.1 * k / 3, float, lambda k: 1.0])
def test_a_pool_of_rows_that_are_equal_in_every_seed_gives_no_prior(of, compared):
    """Residuals of such rows are rounding errors, which are no spread."""
    rows = [dict.fromkeys((1, 2, 3), of(row)) for row in range(8)]
    assert prior_of(rows, compared) is None
    found = estimate(rows[1], rows, compared)
    assert (found.sd, found.p(), found.mean) == (None, None, pytest.approx(of(1)))


def test_one_seed_has_no_test_but_a_prediction_interval():
    table = rows_of(np.random.default_rng(2).normal(size=(9, 3)))
    found = estimate({5: 0.5}, table)
    assert found.p() is None
    assert found.interval() == (None, None)
    low, high = found.prediction()
    assert low < 0.5 < high
    assert estimate({5: 0.5}).prediction() == (None, None)


def test_prediction_of_a_new_run():
    values = {1: 1.0, 2: 2.0, 3: 4.0}
    found = estimate(values)
    quantile = stats.t(2).ppf(0.975)
    low, high = found.prediction()
    assert (high - low) / 2 == pytest.approx(quantile * found.sd * math.sqrt(4 / 3))


def test_non_finite_values_have_only_a_mean():
    found = estimate({1: math.inf, 2: 3.0}, rows_of(np.random.default_rng(2).normal(size=(9, 3))))
    assert found.mean == math.inf
    assert found.sd is found.p() is None
    assert found.prediction() == (None, None)


def test_a_baseline_with_a_large_spread_raises_the_pooled_variance():
    generator = np.random.default_rng(11)
    table = generator.normal(size=(9, 4))
    alike = prior_of(rows_of(table[1:] - table[0]))
    table[0] *= 10
    wild = prior_of(rows_of(table[1:] - table[0]))
    assert wild.variance == pytest.approx(np.mean((table[1:] - table[0]).var(1, ddof=1)))
    assert wild.variance > 10 * alike.variance


def test_a_row_that_varies_far_more_is_left_out_of_the_pool_and_judged_alone():
    generator = np.random.default_rng(3)
    table = generator.standard_normal((9, 3)) * np.array([1.0] * 8 + [100.0])[:, None]
    *rows, wild = rows_of(table[1:] - table[0])
    assert estimate(rows[0], [*rows, wild]) == estimate(rows[0], rows)
    assert estimate(wild, [*rows, wild]) == estimate(wild)
    # A single seed of it cannot show this.
    assert estimate({1: wild[1]}, rows).prior is not None


def test_a_new_value_of_two_rows_without_common_seeds_has_both_variances():
    generator = np.random.default_rng(4)
    shared, own = generator.standard_normal(20), 0.01 * generator.standard_normal((2, 20))
    first, second = (dict(enumerate(shared + part, 1)) for part in own)
    paired = estimate({seed: first[seed] - second[seed] for seed in first})
    single = single_runs([first, second], [first, second])
    # Welch and Satterthwaite; with equal variances and numbers 2 (n - 1).
    assert single.sd == pytest.approx(math.sqrt(np.var(shared, ddof=1) * 2), rel=0.02)
    assert single.df == pytest.approx(38, abs=0.1)
    low, high = paired.prediction(single)
    half = stats.t(single.df).ppf(0.975) * math.hypot(single.sd, paired.sd / math.sqrt(20))
    assert (low, high) == pytest.approx((paired.mean - half, paired.mean + half))
    assert paired.p_predicted(high, single) == pytest.approx(0.05)
    assert paired.p_predicted(high) < 1e-6
    alone, equal = [first, {1: 0.3}], [{1: 0.3, 2: 0.3}, {1: 1.0, 2: 1.0}]
    assert single_runs(alone, alone) is None
    assert single_runs(equal, equal) is None


def test_three_seeds_do_not_hide_a_spread_that_twenty_show():
    few, twenty = {1: 0.37, 2: 0.38, 3: 0.37}, dict(enumerate([0.37] * 18 + [0.48, 0.46], 1))
    known = single_runs([few, few], [twenty, few])
    variances = np.var(list(twenty.values()), ddof=1), np.var(list(few.values()), ddof=1)
    assert known.sd == pytest.approx(math.sqrt(sum(variances)))
    assert known.df == pytest.approx(sum(variances) ** 2 / (variances[0] ** 2 / 19 + variances[1] ** 2 / 2))
