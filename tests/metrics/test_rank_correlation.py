"""Spearman's rank correlation."""

import math

import numpy as np
import pytest

from rarepapers.metrics.rank_correlation import ranks, spearman


def test_ties_share_the_mean_of_their_ranks():
    assert ranks(np.array([7.0, 1.0, 7.0, 3.0, 7.0])).tolist() == [4.0, 1.0, 4.0, 2.0, 4.0]
    assert ranks(np.array([2.0, 2.0])).tolist() == [1.5, 1.5]


def test_spearman_by_hand():
    assert spearman(np.array([1.0, 2, 3]), np.array([10.0, 20, 30])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2, 3]), np.array([9.0, 5, 1])) == pytest.approx(-1)
    # Without ties: 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 0, 1, -1, 0.
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 9])) == pytest.approx(1 - 6 * 2 / (4 * 15))
    # Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5.
    assert spearman(np.array([0.0, 5, 5, 6]), np.array([1.0, 2, 3, 4])) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert math.isnan(spearman(np.ones(3), np.arange(3.0)))
    assert math.isnan(spearman(np.array([1.0, math.nan]), np.array([1.0, 2.0])))
    assert math.isnan(spearman([], []))
    assert spearman([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
