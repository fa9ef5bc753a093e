"""Ratios of gradient norms from running sums, against sums over single steps."""

import math

import numpy as np
import pytest

from rarepapers.metrics.gradient_ratios import (
    average_of_ratio,
    average_of_ratio_dropped,
    mean_over_tokens,
    ratio_of_average,
)


def running_sums(aligned: np.ndarray, marginal: np.ndarray) -> dict[str, np.ndarray]:
    """What training keeps (docs/results.md) of |g1| + |g2| and |g3|, steps x tokens."""
    zero = marginal == 0
    ratio = np.divide(aligned, marginal, out=np.zeros_like(aligned), where=~zero)
    return {
        "steps": np.float64(len(aligned)),
        "sum_aligned": aligned.sum(0),
        "sum_marginal": marginal.sum(0),
        "sum_ratio": ratio.sum(0),
        "sum_aligned_zero": (aligned * zero).sum(0),
        "zero_steps": zero.sum(0).astype(float),
    }


def test_all_three_are_the_literal_ones():
    rng = np.random.default_rng(0)
    aligned = rng.exponential(size=(37, 9))
    marginal = rng.exponential(size=(37, 9)) * (rng.random((37, 9)) < 0.6)
    sums = running_sums(aligned, marginal)
    for i in range(9):
        a, m = aligned[:, i].tolist(), marginal[:, i].tolist()
        mean = sum(m) / 37
        assert ratio_of_average(sums)[i] == pytest.approx((sum(a) / 37) / mean)
        text = [x / (y if y > 0 else mean) for x, y in zip(a, m, strict=True)]
        assert average_of_ratio(sums)[i] == pytest.approx(sum(text) / 37)
        kept = [x / y for x, y in zip(a, m, strict=True) if y > 0]
        assert average_of_ratio_dropped(sums)[i] == pytest.approx(sum(kept) / len(kept))


def test_without_zero_steps_both_rules_agree():
    rng = np.random.default_rng(1)
    sums = running_sums(rng.exponential(size=(5, 3)), 0.1 + rng.exponential(size=(5, 3)))
    np.testing.assert_allclose(average_of_ratio(sums), average_of_ratio_dropped(sums))


def test_tokens_without_marginalisation_or_without_any_gradient():
    sums = running_sums(np.array([[2.0, 0.0], [1.0, 0.0]]), np.zeros((2, 2)))
    assert ratio_of_average(sums)[0] == average_of_ratio(sums)[0] == math.inf
    for ratio in (ratio_of_average, average_of_ratio, average_of_ratio_dropped):
        assert math.isnan(ratio(sums)[1])
    assert math.isnan(average_of_ratio_dropped(sums)[0])


def test_the_mean_leaves_out_tokens_without_a_ratio_only():
    assert mean_over_tokens(np.array([1.0, np.nan, 3.0])) == (2.0, 2)
    assert mean_over_tokens(np.array([1.0, np.inf])) == (math.inf, 2)
    value, tokens = mean_over_tokens(np.array([np.nan]))
    assert math.isnan(value)
    assert tokens == 0
