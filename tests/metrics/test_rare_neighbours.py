"""Share of rare tokens among the neighbours of rare tokens."""

import math

import numpy as np
import pytest
import torch

from rarepapers.metrics import rare_neighbours
from rarepapers.metrics.neighbours import nearest_to, occurring
from rarepapers.metrics.rare_neighbours import rare_share


@pytest.mark.parametrize("held", [1, 40, 10**9])
@pytest.mark.parametrize(("first_rare", "k"), [(20, 5), (1, 3), (29, 29), (29, 99)])
def test_share_is_that_of_the_lists(monkeypatch, held, first_rare, k):
    monkeypatch.setattr(rare_neighbours, "COSINES", held)
    w = np.random.default_rng(0).normal(0.2, 1, (30, 4)).astype(np.float32)
    ids, _ = nearest_to(w, np.arange(len(w)), k)
    share, slots = rare_share(torch.from_numpy(w), first_rare, k)
    assert slots == ids[first_rare:].size
    assert share == pytest.approx((ids[first_rare:] >= first_rare).mean())


def test_a_cluster_of_rare_tokens_has_only_itself():
    w = torch.cat([torch.eye(5), torch.full((7, 5), -1.0) + 0.01 * torch.randn(7, 5)])
    assert rare_share(w, 5, 5)[0] == 1.0


def test_no_number_in_the_matrix_gives_none():
    assert math.isnan(rare_share(torch.full((4, 2), math.nan), 2, 1)[0])


def test_special_and_unseen_types_neither_ask_nor_answer(monkeypatch):
    """As if their rows were not there: the lists of the others alone, renumbered."""
    monkeypatch.setattr(rare_neighbours, "COSINES", 40)
    counts = np.array([0, 0, 90, 5, *range(40, 16, -1), 0, 0])
    known = occurring(counts, (0, 1, 2, 3))
    ids = np.flatnonzero(known)
    assert ids.tolist() == list(range(4, 28))
    w = np.random.default_rng(2).normal(0.1, 1, (30, 4)).astype(np.float32)
    w[[2, 28, 29]] = w[[27, 26, 25]]  # an unmasked one would be the nearest of all
    expected, cosines = nearest_to(w[ids], np.arange(len(ids)), 5)
    found, values = nearest_to(w, ids, 5, known)
    np.testing.assert_array_equal(found, ids[expected])
    np.testing.assert_allclose(values, cosines, atol=1e-6)
    share, slots = rare_share(torch.from_numpy(w), 20, 5, known)
    assert slots == 8 * 5
    assert share == pytest.approx((ids[expected[16:]] >= 20).mean())
    assert nearest_to(w, ids[:2], 99, known)[0].shape == (2, 23)
    assert rare_share(torch.from_numpy(w), 20, 99, known)[1] == 8 * 23
    # Nothing rare ever occurred.
    share, slots = rare_share(torch.from_numpy(w), 28, 5, known)
    assert math.isnan(share)
    assert slots == 0
