"""AGPS: both readings, compared with Algorithm 1 and Eq. 15, and the parameters that scaled runs derive."""

import numpy as np
import pytest
import torch
from methods_by_name import build_method

from raretok.methods import TrainingFacts, agps
from raretok.output.output_layer import output_loss

COUNTS = np.array([900, 400, 300, 200, 100, 60, 30, 12, 6, 3, 1])


def start(reading="eq15", counts=COUNTS, special=(), rare=None, **values):
    gate = agps.AGPS(**{"rare_from": 5, "mu_1": 50.0, "mu_2": 10.0, "reading": reading} | values)
    return gate.start(TrainingFacts(counts, special, tokens_per_step=10, steps_per_epoch=5, rare=rare))


def example(seed):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(9, 4, generator=generator, dtype=torch.float64).requires_grad_()
    w = torch.randn(11, 4, generator=generator, dtype=torch.float64).requires_grad_()
    return h, w, (torch.rand(9, generator=generator) ** 1.5 * 11).long()


def ours(reading, h, w, y):
    state = start(reading)
    state.begin_step(y)
    loss = output_loss(build_method({}), state, h, w, y, normaliser=1).loss
    return torch.autograd.grad(loss, (h, w))


@pytest.mark.parametrize("seed", range(6))
def test_alg1_equals_the_printed_algorithm(seed):
    h, w, y = example(seed)
    f1, f2 = (torch.from_numpy(COUNTS / mu).clamp_max(1) for mu in (50.0, 10.0))
    printed = torch.autograd.grad(agps.reference(h, w, y, f1, f2, 5), (h, w))
    for a, b in zip(ours("alg1", h, w, y), printed, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_eq15_equals_the_printed_equation(seed):
    h, w, y = example(seed)
    f1, f2 = (torch.from_numpy(COUNTS / mu).clamp_max(1) for mu in (50.0, 10.0))
    expected = agps.reference_eq15(h, w, y, f1, f2, 5).detach()
    torch.testing.assert_close(ours("eq15", h, w, y)[1], expected, rtol=0, atol=1e-12)


def test_the_readings_differ():
    """G1: f1 + f2 or f2, for rare words that are no target."""
    h, w, y = example(1)
    assert (y >= 5).any()
    assert not torch.allclose(ours("alg1", h, w, y)[1], ours("eq15", h, w, y)[1])


def test_a_target_of_the_last_step_is_forgotten():
    state, y = start(), torch.tensor([10, 0])
    state.begin_step(y)
    assert state.gates(y)[0][:, 10].tolist() == [1, 1]
    state.begin_step(y[1:])
    assert state.gates(y)[0][:, 10].tolist() == [1 / 50, 1 / 10]
    assert state.gates(y)[1].tolist() == [1, 0]


def test_a_scaled_run_derives_the_rank_and_the_counts():
    """Words from i_r on have at most the mass; mu_2 affects the share of them, and mu_1 keeps its ratio."""
    rare = {"mass": 0.026, "tokens": 20120}
    state = start(rare=rare, touches=0.6)
    assert COUNTS[6:].sum() / COUNTS.sum() <= 0.026 < COUNTS[5:].sum() / COUNTS.sum()
    assert state.derived() == {"i_r": 6, "mu_1": 45.0, "mu_2": 9.0, "rare_types": 5}
    assert (COUNTS[6:] < 9).mean() == 0.6
    # Without a share, both are proportional to the number of tokens, here a tenth of the paper's.
    assert start(rare=rare, mu_1=500.0, mu_2=100.0).derived() == state.derived() | {"mu_1": 50.0, "mu_2": 10.0}


def test_a_constant_gate_is_refused():
    """For example, mu scaled to a short text is below the count of its rarest word, so that f2 is 1 everywhere."""
    with pytest.raises(ValueError, match=r"AGPS's mu_2 is 1 and rare words occur 1 to 30 times, so its gate is 1"):
        start(rare={"mass": 0.05, "tokens": 20120})
    once = np.array([900, 400, 1, 1, 1, 0])
    with pytest.raises(ValueError, match=r"mu_1 is 50 and rare words occur 1 to 1 times, so its gate is 0.02 for all"):
        start(counts=once, rare_from=2)
    with pytest.raises(ValueError, match="rare_from is beyond the words that occur"):
        start(counts=once, rare_from=5)
    # Words that never occur do not count as rare words here.
    assert start(counts=np.array([900, 400, 3, 2, 0]), rare_from=2, mu_1=5.0, mu_2=3.0).derived()["rare_types"] == 3


def test_special_types_are_never_rare_and_counts_decide_the_order():
    counts = np.array([0, 5, 900, 7, 300])
    state = start(counts=counts, special=(0,), rare_from=3)
    assert state.rare().tolist() == [False, True, False, True, False]


@pytest.mark.parametrize(("rare_from", "special"), [(11, ()), (400, ()), (2, (0, 1))])
def test_a_rank_that_makes_no_or_all_types_rare_is_refused(rare_from, special):
    with pytest.raises(ValueError, match=f"rare_from is {rare_from} in a vocabulary of 11 types"):
        start(rare_from=rare_from, special=special)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"rare_from": 0}, "rare_from must be at least 1"),
        ({"mu_1": 0.0}, "mu_1 and mu_2 must be above 0"),
        ({"mu_2": -1.0}, "mu_1 and mu_2 must be above 0"),
        ({"touches": 1.0}, "touches must be above 0 and below 1"),
        ({"reading": "eq16"}, "reading must be one of eq15, alg1"),
    ],
)
def test_wrong_values_are_refused(part, sentence):
    with pytest.raises(ValueError, match=sentence):
        build_method({"gate": {"name": "agps", "rare_from": 5, "mu_1": 5.0, "mu_2": 2.0} | part})
