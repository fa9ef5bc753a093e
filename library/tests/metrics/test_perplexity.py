"""Perplexity and its sweep over temperatures, compared with literal loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raretok.metrics.perplexity import (
    TEMPERATURES,
    best_temperature,
    from_mean,
    negative_log_likelihood,
    perplexity,
    sweep,
)


def literal_nll(logits: list[float], target: int, temperature: float = 1.0) -> float:
    scaled = [z / temperature for z in logits]
    largest = max(scaled)
    return math.log(math.fsum(math.exp(z - largest) for z in scaled)) + largest - scaled[target]


def random_items(n: int, vocabulary: int, scale: float = 4.0, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, vocabulary, generator=generator)
    return logits, torch.randint(vocabulary, (n,), generator=generator)


def test_the_temperatures_are_the_papers():
    assert len(TEMPERATURES) == 200
    assert (TEMPERATURES[0], TEMPERATURES[99], TEMPERATURES[-1]) == (0.01, 1.0, 2.0)


@pytest.mark.parametrize(("n", "vocabulary"), [(1, 1), (1, 7), (13, 130), (5, 2)])
def test_nll_equals_a_literal_loop(n, vocabulary):
    logits, targets = random_items(n, vocabulary)
    expected = [literal_nll(row, y) for row, y in zip(logits.tolist(), targets.tolist(), strict=True)]
    nll = negative_log_likelihood(logits, targets)
    assert nll.dtype == torch.float64
    np.testing.assert_allclose(nll, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("n", "vocabulary", "scale"), [(1, 1, 1.0), (3, 2, 0.1), (7, 11, 4.0), (3, 130, 30.0)])
def test_sweep_equals_a_literal_loop_at_every_temperature(n, vocabulary, scale):
    logits, targets = random_items(n, vocabulary, scale)
    expected = [
        sum(literal_nll(row, y, t) for row, y in zip(logits.tolist(), targets.tolist(), strict=True))
        for t in TEMPERATURES
    ]
    # float32 logits divided by 0.01 have a relative error of about 1e-7.
    np.testing.assert_allclose(sweep(logits, targets), expected, rtol=1e-6, atol=2e-6 * n)


def test_sweep_at_temperature_1_is_the_perplexity():
    logits, targets = random_items(301, 130)
    nll = negative_log_likelihood(logits, targets).numpy()
    curve = from_mean(sweep(logits, targets) / 301)
    assert curve[TEMPERATURES == 1.0].item() == pytest.approx(perplexity(nll), rel=1e-6)


def test_chunks_add_up_and_inputs_are_unchanged():
    logits, targets = random_items(50, 9)
    before = logits.clone()
    chunked = sum(sweep(logits[part], targets[part]) for part in (slice(0, 1), slice(1, 33), slice(33, 50)))
    np.testing.assert_allclose(chunked, sweep(logits, targets), rtol=1e-6)
    assert torch.equal(logits, before)


def test_sweep_finds_the_temperature_the_logits_were_scaled_by():
    # Targets drawn from softmax(z); logits multiplied by 2 are best divided by 2.
    logits, _ = random_items(20_000, 5, 1.5)
    targets = torch.multinomial(logits.softmax(1), 1, generator=torch.Generator().manual_seed(1)).squeeze(1)
    _, temperature = best_temperature(from_mean(sweep(2 * logits, targets) / len(logits)))
    assert temperature == pytest.approx(2.0, abs=0.08)


@given(st.lists(st.lists(st.floats(0, 50), min_size=1, max_size=9), min_size=1, max_size=5))
def test_total_is_the_weighted_combination_of_groups(groups):
    total = perplexity(np.concatenate(groups))
    items = sum(len(group) for group in groups)
    combined = math.prod(perplexity(np.array(group)) ** (len(group) / items) for group in groups)
    assert total == pytest.approx(combined, rel=1e-9)


def test_published_totals_of_agg_combine_from_groups():
    # agg, table 3: the group masses give the printed totals of MLE and AGG.
    masses = (0.9368, 0.0612, 0.0020)
    for groups, total in (((13.30, 146.47, 438.67), 15.51), ((13.35, 146.44, 75.39), 15.51)):
        nll = sum(mass * math.log(value) for mass, value in zip(masses, groups, strict=True))
        assert float(from_mean(nll)) == pytest.approx(total, abs=0.01)


def test_overflow_is_infinity_without_a_warning():
    logits = torch.tensor([[0.0, 2000.0]])
    targets = torch.tensor([0])
    assert perplexity(negative_log_likelihood(logits, targets).numpy()) == math.inf
    curve = from_mean(sweep(logits, targets))
    assert curve[0] == math.inf
    assert math.isnan(best_temperature(np.full(200, np.inf))[1])
    assert best_temperature(np.full(200, np.inf))[0] == math.inf


def test_best_ignores_non_finite_values_and_takes_the_first_of_equals():
    curve = np.full(200, np.inf)
    curve[[3, 150]], curve[7] = 5.0, np.nan
    assert best_temperature(curve) == (5.0, 0.04)


def test_nan_logits_give_nan_and_impossible_targets_infinity():
    logits, targets = random_items(4, 6)
    logits[2, 3] = math.nan
    assert math.isnan(perplexity(negative_log_likelihood(logits, targets).numpy()))
    value, temperature = best_temperature(from_mean(sweep(logits, targets)))
    assert math.isnan(value)
    assert math.isnan(temperature)
    minus = torch.tensor([[-math.inf, 0.0]])
    assert negative_log_likelihood(minus, torch.tensor([0])).item() == math.inf
    assert math.isnan(perplexity(np.array([])))
