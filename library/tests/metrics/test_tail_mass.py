"""Probability of the tail."""

import math

import pytest
import torch

from raretok.metrics.tail_mass import tail_mass


@pytest.mark.parametrize("vocabulary", [6, 7, 130])
def test_tail_is_what_the_five_likeliest_leave(vocabulary):
    logits = 3 * torch.randn(9, vocabulary, generator=torch.Generator().manual_seed(0))
    for row, mass in zip(logits.tolist(), tail_mass(logits).tolist(), strict=True):
        powers = sorted((math.exp(z) for z in row), reverse=True)
        assert mass == pytest.approx(sum(powers[5:]) / sum(powers), rel=1e-12)


def test_tiny_tails_ties_and_small_vocabularies():
    far = torch.tensor([[0.0, 0, 0, 0, 0, -60.0]])
    assert tail_mass(far).item() == pytest.approx(math.exp(-60) / 5, rel=1e-12)
    assert tail_mass(torch.zeros(2, 8)).tolist() == pytest.approx([3 / 8, 3 / 8])
    assert tail_mass(torch.randn(3, 5)).tolist() == [0.0, 0.0, 0.0]
    assert math.isnan(tail_mass(torch.tensor([[0.0, 1, 2, 3, 4, math.nan, 5]])).item())
