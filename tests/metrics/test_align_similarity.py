"""AlignSim against its dense form, and its link counts."""

from types import SimpleNamespace

import numpy as np
import pytest

from raretok.core.errors import UserError
from raretok.metrics import co_occurrences
from raretok.metrics.align_similarity import align_similarity
from raretok.metrics.co_occurrences import CoOccurrences, count


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


def pairs(source, target):
    """What `load_pairs` gives, of lists of ids; </s> is added."""
    sides = {}
    for name, lines in (("source", source), ("target", target)):
        sides[name] = np.array([i for line in lines for i in [*line, 2]], dtype=np.uint16)
        sides[f"{name}_offsets"] = np.cumsum([0, *(len(line) + 1 for line in lines)])
    result = SimpleNamespace(**sides)

    class Pairs(SimpleNamespace):
        def __len__(self):
            return len(source)

    return Pairs(**vars(result))


def links(*lines):
    lines_of = np.array([n for n, line in enumerate(lines) for _ in line], dtype=np.int64)
    return [(lines_of, np.array([link for line in lines for link in line], dtype=np.int64).reshape(-1, 2))]


def dense(found):
    a = np.zeros((found.types, found.types), dtype=int)
    a[found.first, found.second] = found.counts
    return a + np.triu(a, 1).T


@pytest.mark.parametrize("pending", [2**23, 0])
def test_counts_are_those_of_a_double_loop(monkeypatch, pending):
    monkeypatch.setattr(co_occurrences, "PENDING", pending)
    rng = np.random.default_rng(1)
    source = [rng.integers(4, 12, rng.integers(1, 6)).tolist() for _ in range(30)]
    target = [rng.integers(4, 12, rng.integers(1, 6)).tolist() for _ in range(30)]
    chosen = [
        [(i, j) for i in range(len(s)) for j in range(len(t)) if rng.random() < 0.4]
        for s, t in zip(source, target, strict=True)
    ]
    expected = np.zeros((12, 12), dtype=int)
    for s, t, line in zip(source, target, chosen, strict=True):
        for i, j in line:
            expected[s[i], t[j]] += 1
            expected[t[j], s[i]] += 1
    [(lines_of, places)] = links(*chosen)
    parts = np.array_split(np.arange(len(lines_of)), 5)
    found = count([(lines_of[part], places[part]) for part in parts], pairs(source, target), 12)
    np.testing.assert_array_equal(dense(found), expected)
    np.testing.assert_allclose(found.squared_lengths(), (expected.astype(float) ** 2).sum(1))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([(0, 0), (2, 0)], "line 2 of the links points beyond its sentence"),
        ([(0, 1)], "line 2 of the links points beyond its sentence"),
    ],
)
def test_links_of_another_text_are_refused(line, message):
    corpus = pairs([[5, 6, 7], [5, 6]], [[8, 9], [8]])
    with pytest.raises(UserError, match=message):
        count(links([(2, 1)], line), corpus, 12)
    with pytest.raises(UserError, match="more lines than the corpus has, 2"):
        count(links([], [], [(0, 0)]), corpus, 12)
