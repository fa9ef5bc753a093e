"""Closed forms of means over pairs, compared with double sums."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raretok.metrics.mean_similarity import mean_cosine, mean_cosine_between, mean_inner_product


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norms) if norms else 0.0


def rows(seed: int, n: int, d: int = 4) -> np.ndarray:
    w = np.random.default_rng(seed).normal(0.3, 1.0, (n, d))
    # Some rows are zero, as a padding type's may be.
    w[::5] *= seed % 2
    return w


@given(st.integers(0, 10**6), st.integers(1, 14))
def test_mean_cosine_equals_the_double_sum(seed, n):
    w = rows(seed, n)
    expected = sum(cosine(w[i], w[j]) for i in range(n) for j in range(n) if i != j) / n**2
    assert mean_cosine(w) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_cosine_between_groups_is_the_mean_over_pairs(seed, n, m):
    a, b = rows(seed, n), rows(seed + 1, m)
    expected = np.mean([cosine(x, y) for x in a for y in b])
    assert mean_cosine_between(a, b) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 14))
def test_inner_product_is_the_mean_over_pairs_of_two(seed, n):
    w = rows(seed, n)
    expected = np.mean([w[i] @ w[j] for i in range(n) for j in range(n) if i != j])
    assert mean_inner_product(w) == pytest.approx(expected, abs=1e-12)


def test_a_row_that_is_not_finite_has_no_mean():
    w = np.eye(3)
    w[1, 0] = np.nan
    assert math.isnan(mean_cosine(w))
    assert math.isnan(mean_cosine_between(np.eye(3), w))


def test_one_row_has_no_pairs():
    assert math.isnan(mean_inner_product(np.ones((1, 3))))
    assert mean_cosine(np.ones((1, 3))) == 0


def test_extremes():
    same = np.tile([1.0, 2.0], (4, 1))
    assert mean_cosine(same) == pytest.approx(3 / 4)
    assert mean_cosine_between(same, -3 * same) == pytest.approx(-1)
