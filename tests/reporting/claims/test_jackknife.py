"""Claims about means over seeds: pseudo-values by hand, and error rates of verdicts."""

import math
import statistics

import numpy as np
import pytest

from rarepapers.reporting.claims.jackknife import mean_of, shares
from rarepapers.reporting.claims.truths import Truth, all_of, at_least, greater
from rarepapers.reporting.statistics.intervals import t_interval


def shares_of(judge, *values):
    """Pseudo-values of `judge(means)` by seed."""
    by_seed = [dict(enumerate(of, 1)) for of in values]
    return shares(list(by_seed[0]), lambda seeds: judge(*(mean_of(of, seeds) for of in by_seed)))


def slacks(found):
    return [truth.slack for truth in found.values()]


def test_pseudo_values_of_a_linear_slack_are_the_seeds_slacks():
    found = shares_of(greater, [0.68, 0.76, 0.73], [0.7, 0.7, 0.72])
    assert slacks(found) == pytest.approx([-0.02, 0.06, 0.01])
    assert shares_of(greater, [0.68], [0.7]) == {1: greater(0.68, 0.7)}


def test_pseudo_values_of_a_ratio_by_hand():
    """2 / 1 and 4 / 3: on the means 3 / 2, without one 4 / 3 and 2; 2 * 1.5 less these; their mean is nearer to 0."""
    found = shares_of(lambda a, b: greater(a / b, 0), [2.0, 4.0], [1.0, 3.0])
    assert slacks(found) == pytest.approx([3 - 4 / 3, 3 - 2])
    assert statistics.fmean(slacks(found)) == pytest.approx(4 / 3)


def test_if_a_kink_makes_the_correction_overshoot_the_means_decide():
    """Within 1 of 0, the slack is at most 1: of 2 and -2.2 it is 0.9, less its bias 2.9."""
    found = shares_of(lambda x: at_least(1, abs(x)), [2.0, -2.2])
    assert statistics.fmean(slacks(found)) == pytest.approx(0.9)
    # What fails on the means is never reproduced, whatever the correction: here 2 * -0.5 + (0.5 + 2.5) / 2 = 0.5.
    found = shares_of(lambda x: at_least(1, abs(x)), [3.5, -0.5])
    assert [truth.holds for truth in found.values()] == [False, False]
    assert statistics.fmean(slacks(found)) <= 0


def test_infinite_slacks_have_no_pseudo_values():
    found = shares_of(greater, [math.inf, 3.0], [1.0, 1.0])
    assert found == {1: Truth(True, math.inf), 2: Truth(True, 2.0)}


def shares_of_false_verdicts(judge, means, seeds, trials=800):
    """How often `judge` on normal values around `means` is reproduced, and how often not, by its own interval."""
    draws = np.random.default_rng(seeds).normal(size=(trials, len(means), seeds)) + np.array(means)[:, None]
    intervals = [t_interval(slacks(shares_of(judge, *of.tolist()))) for of in draws]
    return statistics.fmean(one.lower > 0 for one in intervals), statistics.fmean(one.upper < 0 for one in intervals)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_false_verdicts_are_rare(seeds):
    """2.5% errors on each side for a quantity at its bound; pseudo-values keep this for kinked slacks, seeds do not.

    Ties in eight places at once are the worst case: one in eight is `not reproduced`, of which Holm takes its share.
    """
    both = lambda *values: all_of(greater(value, 0) for value in values)  # noqa: E731
    near = lambda x: at_least(0.1, abs(x))  # noqa: E731
    assert max(shares_of_false_verdicts(greater, [0.0, 0.0], seeds)) < 0.045
    assert max(shares_of_false_verdicts(near, [0.1], seeds)) < 0.06
    assert shares_of_false_verdicts(both, [0.0, 3.0], seeds)[0] < 0.045
    reproduced, refuted = shares_of_false_verdicts(both, [0.0] * 8, seeds, trials=400)
    assert reproduced < 0.02
    assert refuted < 0.17
