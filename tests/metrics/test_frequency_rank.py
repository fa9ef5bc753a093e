"""Cosines against frequency rank, and languages of types."""

import math

import numpy as np
import pytest
from scipy import stats

from rarepapers.metrics.frequency_rank import query_cosines, rank_correlations
from rarepapers.metrics.type_language import BOTH, SOURCE, TARGET, language_of, other_language_share


def test_cosines_equal_a_double_loop():
    w = np.random.default_rng(0).normal(size=(9, 4))
    found = query_cosines(w, np.array([2, 7]))
    for row, i in zip(found, (2, 7), strict=True):
        expected = [w[i] @ w[j] / (np.linalg.norm(w[i]) * np.linalg.norm(w[j])) for j in range(9)]
        np.testing.assert_allclose(row, expected)


def test_the_sign_says_whether_rare_types_are_nearer():
    cosines = np.array([[0.9, 0.1, 0.2, 0.3, 1.0, 0.4], [0.9, 0.7, 0.6, 0.5, 0.3, 1.0]])
    known = np.array([False, True, True, True, True, True])
    counts = np.array([9, 8, 6, 4, 3, 1])
    # Neither the query, whose cosine is 1, nor unknown types count.
    assert rank_correlations(cosines, np.array([4, 5]), known, counts) == pytest.approx([1.0, -1.0])


def test_types_with_equal_counts_share_a_rank():
    cosines, known = np.array([[1.0, 0.5, 0.1, 0.3, 0.2]]), np.ones(5, dtype=bool)
    counts = np.array([9, 8, 0, 0, 0])
    # Ranks 1 and three times 3 against 4, 1, 3 and 2, in any order of the last three types.
    expected = stats.spearmanr([8, 0, 0, 0], [-0.5, -0.1, -0.3, -0.2]).statistic
    assert rank_correlations(cosines, np.array([0]), known, counts) == pytest.approx([expected])


def test_the_language_of_a_type_is_the_side_with_the_larger_share():
    # The source side is ten times as long.
    source, target = np.array([50, 50, 0, 900, 0]), np.array([5, 20, 75, 0, 0])
    assert language_of(source, target).tolist() == [BOTH, TARGET, TARGET, SOURCE, BOTH]


def test_neighbours_of_the_other_language():
    language = np.array([SOURCE, SOURCE, TARGET, TARGET, BOTH])
    assert other_language_share(np.array([0, 3]), np.array([[1, 2], [2, 4]]), language) == pytest.approx(0.25)
    assert math.isnan(other_language_share(np.empty(0, int), np.empty((0, 2), int), language))
