"""Frequency-weighted symmetry, compared with its formula and at its extremes."""

import numpy as np
import pytest

from rarepapers.metrics.zipfian_symmetry import CENTRALITY, ISOTROPY, zipfian_symmetry

RNG = np.random.default_rng(0)


def literal(w, counts):
    """Token by token: each row is repeated as often as its type occurs."""
    tokens = np.repeat(w, counts, axis=0)
    mean = tokens.mean(0)
    centrality = 1 - np.linalg.norm(mean) / np.mean([np.linalg.norm(token) for token in tokens])
    eigenvalues = np.linalg.eigvalsh(np.cov(tokens.T, bias=True))
    shares = eigenvalues / eigenvalues.sum()
    return {CENTRALITY: centrality, ISOTROPY: -sum(share * np.log(share) for share in shares) / np.log(len(shares))}


@pytest.mark.parametrize(("types", "d"), [(40, 3), (9, 6)])
def test_symmetry_equals_its_formula(types, d):
    w, counts = RNG.normal(0.4, 1.0, (types, d)), RNG.integers(0, 9, types)
    assert zipfian_symmetry(w, counts) == pytest.approx(literal(w, counts), rel=1e-9)


def test_rows_that_never_occur_do_not_count():
    w, counts = RNG.normal(size=(12, 4)), np.arange(12)
    other = w.copy()
    other[0] = 1000
    assert zipfian_symmetry(other, counts) == zipfian_symmetry(w, counts)


def test_extremes_are_0_and_1():
    cross = np.concatenate([np.eye(5), -np.eye(5)])
    assert zipfian_symmetry(cross, np.ones(10)) == pytest.approx({CENTRALITY: 1, ISOTROPY: 1})
    # One frequent row on each side of a line, all others rare.
    counts = np.where(np.arange(10) % 5 == 0, 10**9, 1)
    assert zipfian_symmetry(cross, counts)[ISOTROPY] < 1e-6
    # A common shift, which does not change the softmax.
    assert zipfian_symmetry(cross + 100, np.ones(10))[CENTRALITY] < 1e-3


@pytest.mark.parametrize(
    ("w", "counts"), [(np.full((3, 2), np.nan), np.ones(3)), (np.eye(3), np.zeros(3)), (np.zeros((3, 2)), np.ones(3))]
)
def test_undefined_symmetry_is_nan(w, counts):
    assert all(np.isnan(value) for value in zipfian_symmetry(w, counts).values())


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_have_no_isotropy(seed):
    random = np.random.default_rng(seed)
    w, counts = np.tile(random.normal(size=7), (50, 1)), random.integers(1, 9, 50)
    assert np.isnan(zipfian_symmetry(w, counts)[ISOTROPY])
    # A difference above rounding is measured.
    w[0] += 1e-6
    assert 0 <= zipfian_symmetry(w, counts)[ISOTROPY] < 1e-6
