"""I(W) against its formula, and how it behaves under what should not matter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raretok.evaluation import isotropy as module
from raretok.evaluation.isotropy import isotropy

RNG = np.random.default_rng(0)


def literal(w: np.ndarray, both_signs: bool) -> float:
    _, vectors = np.linalg.eigh(w.T @ w)
    z = []
    for j in range(vectors.shape[1]):
        for sign in (1, -1) if both_signs else (1,):
            z.append(math.fsum(math.exp(sign * float(np.dot(row, vectors[:, j]))) for row in w))
    return min(z) / max(z)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (3, 5), (65, 16), (13, 70)])
def test_both_variants_are_the_literal_ones(n, d):
    w = RNG.normal(0.3, 1.0, (n, d))
    assert isotropy(w) == pytest.approx((literal(w, False), literal(w, True)), rel=1e-9)


def test_chunks_of_eigenvectors_change_nothing(monkeypatch):
    w = RNG.normal(0.3, 1.0, (20, 30))
    whole = isotropy(w)
    monkeypatch.setattr(module, "COLUMNS", 7)
    assert isotropy(w) == pytest.approx(whole, rel=1e-12)


@given(st.integers(0, 10**6), st.floats(0.01, 5), st.floats(-2, 2))
def test_values_lie_in_the_unit_interval_and_sign_free_is_lower(seed, scale, shift):
    w = np.random.default_rng(seed).normal(shift, scale, (9, 4))
    returned, sign_free = isotropy(w)
    assert 0 <= sign_free <= returned <= 1


def test_rows_in_another_order_and_a_rotation_leave_the_sign_free_value():
    w = RNG.normal(0.5, 1.0, (40, 6))
    rotation = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    _, expected = isotropy(w)
    assert isotropy(w[RNG.permutation(40)])[1] == pytest.approx(expected, rel=1e-9)
    assert isotropy(w @ rotation)[1] == pytest.approx(expected, rel=1e-9)
    # So does the other sign of every row; the published value may change with any of these.
    assert isotropy(-w)[1] == pytest.approx(expected, rel=1e-9)


def test_isotropic_is_one_and_a_narrow_cone_is_near_zero():
    both = np.concatenate([np.eye(4), -np.eye(4)])
    assert isotropy(both) == pytest.approx((1.0, 1.0))
    assert isotropy(np.full((50, 4), 3.0) + RNG.normal(0, 0.01, (50, 4)))[1] < 0.01


def test_large_norms_do_not_overflow():
    returned, sign_free = isotropy(RNG.normal(0, 1e4, (10, 5)))
    assert 0 <= sign_free <= returned <= 1


def test_a_value_that_is_not_finite_gives_nan():
    w = np.ones((3, 2))
    w[1, 1] = np.inf
    assert all(math.isnan(value) for value in isotropy(w))
