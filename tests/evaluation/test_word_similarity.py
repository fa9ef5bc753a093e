"""Rank correlation of cosines and human scores."""

import math

import numpy as np
import pytest

from raretok.evaluation.word_similarity import ranks, spearman, word_similarity


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


def test_a_word_is_the_mean_of_its_pieces_and_unknown_pieces_take_the_unknown_row():
    w = np.random.default_rng(0).normal(size=(6, 3))
    pieces = {"ab": [4, 5], "a": [4], "b": [5], "x": [1], "ax": [4, 1], "": []}
    pairs = [("ab", "a", 3.0), ("a", "b", 1.0), ("x", "ab", 2.0), ("ax", "b", 2.0), ("", "a", 5.0)]

    def vector(word):
        return w[pieces[word] or [1]].mean(0)

    cosines = []
    for first, second, _ in pairs:
        a, b = vector(first), vector(second)
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    found = word_similarity(pairs, pieces.__getitem__, w, unknown=1)
    assert found.spearman == pytest.approx(100 * spearman(np.array(cosines), np.array([3.0, 1, 2, 2, 5])))
    assert (found.pairs, found.words) == (5, 6)
    assert found.coverage == pytest.approx(3 / 6)


def test_all_pairs_are_kept_where_nothing_is_known():
    found = word_similarity([("p", "q", 1.0), ("r", "s", 2.0)], lambda word: [0], np.ones((2, 2)), unknown=0)
    assert found.pairs == 2
    assert found.coverage == 0
    assert math.isnan(found.spearman)
