"""I(W), compared with its formula and over eigenvector routines, and its invariances."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from raretok.metrics import isotropy as module
from raretok.metrics.isotropy import EIGENVECTORS, general_eigenvectors, isotropy, isotropy_readings, sign_range

RNG = np.random.default_rng(0)
# All unit eigenvectors of W^T W, as different routines return them.
DRIVERS = {
    "numpy.linalg.eigh": lambda w: np.linalg.eigh(w.T @ w)[1],
    "scipy.linalg.eigh, evr": lambda w: scipy.linalg.eigh(w.T @ w, driver="evr")[1],
    "scipy.linalg.eigh, ev": lambda w: scipy.linalg.eigh(w.T @ w, driver="ev")[1],
    "numpy.linalg.svd": lambda w: np.linalg.svd(w)[2].T,
    "torch.linalg.eig, float32": general_eigenvectors,
}


def z(w: np.ndarray, a: np.ndarray) -> float:
    return math.fsum(math.exp(float(np.dot(row, a))) for row in w)


def literal(w: np.ndarray) -> float:
    _, vectors = np.linalg.eigh(w.T @ w)
    both = [z(w, sign * vectors[:, j]) for j in range(vectors.shape[1]) for sign in (1, -1)]
    return min(both) / max(both)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (3, 5), (65, 16), (13, 70)])
def test_it_equals_its_formula(n, d):
    w = RNG.normal(0.3, 1.0, (n, d))
    assert isotropy(w) == isotropy_readings(w)["isotropy_sign_free"] == pytest.approx(literal(w), rel=1e-9)


def test_chunks_of_eigenvectors_change_nothing(monkeypatch):
    w = RNG.normal(0.3, 1.0, (20, 30))
    whole = isotropy_readings(w)
    monkeypatch.setattr(module, "COLUMNS", 7)
    assert isotropy_readings(w) == pytest.approx(whole, rel=1e-12)


# Also with more columns than rows: zero is then a multiple eigenvalue, with an arbitrary basis.
@pytest.mark.parametrize("shape", [(65, 32), (65, 128)])
def test_all_eigenvector_routines_give_the_same_value(monkeypatch, shape):
    w = np.random.default_rng(1).normal(0.02, 0.3, shape)
    found, returned = {}, {}
    for name, vectors in DRIVERS.items():
        monkeypatch.setattr(module, "symmetric_eigenvectors", vectors)
        found[name] = isotropy(w)
        plus, _ = module.log_partition(w, vectors(w))
        returned[name] = math.exp(plus.min() - plus.max())
    # 1e-12 in float64, 1e-5 for eigenvectors in float32
    exact = found["numpy.linalg.eigh"]
    for name, value in found.items():
        assert value == pytest.approx(exact, rel=1e-5 if "float32" in name else 1e-12), name
    # With the returned sign of each they differ, so the table's value must not depend on these signs.
    assert max(returned.values()) - min(returned.values()) > 0.001


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_the_range_is_over_all_choices_of_signs(d, seed):
    plus, minus = np.random.default_rng(seed).normal(size=(2, d)).round(1)
    every = [math.exp(min(choice) - max(choice)) for choice in itertools.product(*zip(plus, minus, strict=True))]
    assert sign_range(plus, minus) == pytest.approx((min(every), max(every)))


@given(st.integers(0, 10**6), st.floats(0.01, 5), st.floats(-2, 2))
def test_readings_are_ordered_in_the_unit_interval(seed, scale, shift):
    found = isotropy_readings(np.random.default_rng(seed).normal(shift, scale, (9, 4)))
    assert found.keys() == EIGENVECTORS.keys()
    both, lowest, highest, one = found.values()
    assert 0 <= both <= lowest <= highest <= 1
    # Its eigenvectors are in single precision.
    assert lowest * (1 - 1e-3) <= one <= highest * (1 + 1e-3)


def test_it_is_invariant_to_row_order_rotation_and_reflection():
    w = RNG.normal(0.5, 1.0, (40, 6))
    rotation = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    expected = isotropy(w)
    for same in (w[RNG.permutation(40)], w @ rotation, -w):
        assert isotropy(same) == pytest.approx(expected, rel=1e-9)


def test_isotropic_is_one_and_a_narrow_cone_is_near_zero():
    both = np.concatenate([np.eye(4), -np.eye(4)])
    assert isotropy_readings(both) == pytest.approx(dict.fromkeys(EIGENVECTORS, 1.0))
    assert isotropy(np.full((50, 4), 3.0) + RNG.normal(0, 0.01, (50, 4))) < 0.01


def test_large_norms_do_not_overflow():
    assert all(0 <= value <= 1 for value in isotropy_readings(RNG.normal(0, 1e4, (10, 5))).values())


def test_a_value_that_is_not_finite_gives_nan():
    w = np.ones((3, 2))
    w[1, 1] = np.inf
    assert math.isnan(isotropy(w))
    assert all(math.isnan(value) for value in isotropy_readings(w).values())
