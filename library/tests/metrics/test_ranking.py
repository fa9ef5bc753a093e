"""Ranks of targets and metrics derived from them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raretok.metrics.ranking import accuracy, mean_rank, mean_reciprocal_rank, recall, target_ranks


def literal_rank(logits: list[float], target: int) -> int:
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    return order.index(target) + 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12))
def test_rank_is_the_place_in_a_stable_sort(logits):
    # Few distinct values, so there are many ties; each token is the target once.
    rows = torch.tensor([logits] * len(logits), dtype=torch.float32)
    ranks = target_ranks(rows, torch.arange(len(logits))).tolist()
    assert ranks == [literal_rank(logits, i) for i in range(len(logits))]
    assert sorted(ranks) == list(range(1, len(logits) + 1))


def test_accuracy_is_arg_max_also_with_ties():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(0, 3, (500, 7), generator=generator).float()
    targets = torch.randint(7, (500,), generator=generator)
    expected = (logits.numpy().argmax(1) == targets.numpy()).mean()
    assert accuracy(target_ranks(logits, targets).numpy()) == expected


def test_a_nan_counts_against_the_target():
    nan = math.nan
    logits = torch.tensor([[nan, 5.0, 1.0], [nan, 5.0, 1.0], [nan, nan, nan]])
    assert target_ranks(logits, torch.tensor([0, 1, 0])).tolist() == [3, 2, 3]


def test_aggregates_equal_their_definitions():
    ranks = np.array([1, 2, 5, 6, 130, 1])
    assert accuracy(ranks) == 2 / 6
    assert recall(ranks, 5) == 4 / 6
    assert mean_reciprocal_rank(ranks) == pytest.approx(sum(1 / r for r in (1, 2, 5, 6, 130, 1)) / 6)
    assert mean_rank(ranks) == 145 / 6
    assert all(math.isnan(f(np.array([]))) for f in (accuracy, mean_reciprocal_rank, mean_rank))


def mrr_bounds(accuracy, recall_5, vocabulary):
    """The smallest and the largest MRR: targets not first but among five have ranks 2 to 5, others 6 to V."""
    second, rest = recall_5 - accuracy, 1 - recall_5
    return accuracy + second / 5 + rest / vocabulary, accuracy + second / 2 + rest / 6


@given(st.lists(st.integers(1, 130), min_size=1, max_size=60))
def test_mrr_lies_within_its_bounds(ranks):
    ranks = np.array(ranks)
    low, high = mrr_bounds(accuracy(ranks), recall(ranks, 5), 130)
    assert low - 1e-12 <= mean_reciprocal_rank(ranks) <= high + 1e-12


def test_printed_rows_against_the_bounds():
    # stop_jostling: Baseline of table 1 fits, Softminus (DT, margin=1, C=5) of table 7 does not (S7).
    low, high = mrr_bounds(0.5187, 0.8299, 130)
    assert low <= 0.6541 <= high
    low, high = mrr_bounds(0.3463, 0.6956, 130)
    assert high == pytest.approx(0.5717, abs=1e-4)
    assert not low <= 0.6595 <= high
    assert low <= 0.5017 <= high
