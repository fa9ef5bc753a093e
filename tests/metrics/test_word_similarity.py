"""Rank correlation of cosines and human scores."""

import math

import numpy as np
import pytest

from rarepapers.metrics.rank_correlation import spearman
from rarepapers.metrics.word_similarity import word_similarity


def test_a_word_is_the_mean_of_its_pieces_and_unknown_ones_use_the_unk_row():
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


def test_pairs_of_unknown_words_are_kept():
    found = word_similarity([("p", "q", 1.0), ("r", "s", 2.0)], lambda word: [0], np.ones((2, 2)), unknown=0)
    assert found.pairs == 2
    assert found.coverage == 0
    assert math.isnan(found.spearman)
