"""Link counts of word alignment against a double loop."""

from types import SimpleNamespace

import numpy as np
import pytest

from rarepapers.core.errors import UserError
from rarepapers.metrics import co_occurrences
from rarepapers.metrics.co_occurrences import count


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
