"""AlignSim against its dense form."""

import numpy as np
import pytest

from raretok.metrics.align_similarity import align_similarity
from raretok.metrics.co_occurrences import CoOccurrences


def reference(w, a, tau):
    """Equations 16 and 17, N x N: the softmax over all j of tau cos(w_i, w_j), and its cosine with row i of a."""
    n = len(w)
    similarity = np.full(n, np.nan)
    for i in range(n):
        scores = [tau * (w[i] @ w[j]) / (np.linalg.norm(w[i]) * np.linalg.norm(w[j])) for j in range(n)]
        model = np.exp(scores) / np.exp(scores).sum()
        if a[i].any():
            similarity[i] = (a[i] @ model) / (np.linalg.norm(a[i]) * np.linalg.norm(model))
    return similarity


def sparse(a):
    first, second = np.nonzero(np.triu(a))
    return CoOccurrences(len(a), first, second, a[first, second])


@pytest.fixture
def counted():
    """A symmetric matrix of counts in which two types have no link, and embeddings."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, (23, 23)) * (rng.random((23, 23)) < 0.2)
    a = a + a.T
    a[[4, 17]] = 0
    a[:, [4, 17]] = 0
    return rng.normal(size=(23, 6)) + 0.3, a


@pytest.mark.parametrize("tau", [10.0, 1.0, 80.0])
@pytest.mark.parametrize("cells", [2**25, 100, 1])
def test_it_is_the_dense_form(counted, tau, cells):
    w, a = counted
    found = align_similarity(w, sparse(a), tau, cells=cells)
    np.testing.assert_allclose(found, reference(w, a, tau), rtol=1e-6 * max(tau, 10), equal_nan=True)
    assert np.flatnonzero(np.isnan(found)).tolist() == [4, 17]


@pytest.mark.parametrize("cells", [2**25, 100, 1])
def test_without_itself_it_is_the_dense_form_of_the_others(counted, cells):
    w, a = counted
    a[[4, 9]], a[:, [4, 9]] = 0, 0
    a[9, 9] = 3  # linked with itself alone: nothing is left
    found = align_similarity(w, sparse(a), cells=cells, itself=False)
    for i in range(len(w)):
        others = np.arange(len(w)) != i
        unit = w / np.linalg.norm(w, axis=1, keepdims=True)
        model, links = np.exp(10 * (unit[others] @ unit[i])), a[i, others]
        if links.any():
            expected = links @ model / np.linalg.norm(links) / np.linalg.norm(model)
            assert found[i] == pytest.approx(expected, rel=1e-5)
        else:
            assert np.isnan(found[i])


def test_with_itself_it_says_little_of_a_model_whose_rows_spread_out():
    rng = np.random.default_rng(0)
    a = np.diag(rng.integers(1, 9, 64)) + np.roll(np.eye(64, dtype=int), 1, axis=1) * 4
    a = a + a.T
    own = np.diag(a) / np.linalg.norm(a, axis=1)
    for seed in range(2):
        w = np.random.default_rng(seed).normal(size=(64, 48))
        np.testing.assert_allclose(align_similarity(w, sparse(a)), own, atol=0.03)


def test_a_model_of_the_alignment_itself_scores_high():
    # Pairs of equal rows, far from all others, linked with each other and themselves.
    w = np.repeat(np.eye(8), 2, axis=0)
    a = np.kron(np.eye(8, dtype=int), np.ones((2, 2), dtype=int))
    np.testing.assert_allclose(align_similarity(w, sparse(a)), 1, atol=1e-4)
    # A model that tells nothing apart: the cosine of a row of ones with one of two ones (deviations, G9).
    np.testing.assert_allclose(align_similarity(np.ones((16, 3)), sparse(a)), np.sqrt(2 / 16), rtol=1e-6)


def test_the_scale_of_embeddings_and_counts_does_not_matter(counted):
    w, a = counted
    found = align_similarity(w, sparse(a))
    np.testing.assert_allclose(align_similarity(w * 7, sparse(a * 3)), found, rtol=1e-5, equal_nan=True)
    # A row of length 0 is as near to every row.
    w[3] = 0
    assert np.isfinite(align_similarity(w, sparse(a))[3])
