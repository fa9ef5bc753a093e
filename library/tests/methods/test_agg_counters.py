"""AGG's counters, compared with counting from scratch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from methods_by_name import build_method

from raretok.methods import TrainingFacts, agg

# Training counts with which any alpha between 0.1 and 10 makes some types rare and others not.
COUNTS = np.array([500, 300, 200, 100, 20, 2, 0])


def facts(counts=COUNTS, special=(), tokens_per_step=5, steps_per_epoch=4, rare=None):
    return TrainingFacts(counts, special, tokens_per_step, steps_per_epoch, rare)


class Steps:
    """Feeds a gate with targets. redrawn: whether the gate asks for those of K steps ago or stores them."""

    def __init__(self, gate, redrawn=False, **options):
        self.history = []
        earlier = {"earlier_targets": self.history.__getitem__} if redrawn else {}
        self.state = gate.start(replace(facts(**options), **earlier))

    def step(self, targets):
        self.state.begin_step(targets)
        self.history.append(targets)


def literal_gates(history, alpha, memory, types, special=(), divisor="elapsed"):
    """Gates from the whole list of past targets, by Eqs. 5 to 8."""
    window = history[-memory:]
    counts = [sum(int((targets == k).sum()) for targets in window) for k in range(types)]
    steps = min(len(history), memory) if divisor == "elapsed" else memory
    rare = [count / steps < alpha and k not in special for k, count in enumerate(counts)]
    rare_counts = [count for count, is_rare in zip(counts, rare, strict=True) if is_rare]
    mean = sum(rare_counts) / len(rare_counts) if rare_counts else 0
    g1 = [count / steps if r else 1.0 for count, r in zip(counts, rare, strict=True)]
    g2 = [min(count / (mean + 1e-7), 1.0) if r else 1.0 for count, r in zip(counts, rare, strict=True)]
    return torch.tensor([g1, g2], dtype=torch.float64), torch.tensor(rare)


def random_targets(generator, size=5):
    return (torch.rand(size, generator=generator) ** 3 * 7).long()


@pytest.mark.parametrize("redrawn", [False, True])
@pytest.mark.parametrize("divisor", ["elapsed", "memory"])
@pytest.mark.parametrize("special", [(), (0, 5)])
@pytest.mark.parametrize("memory", [1, 3, 50])
@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.2])
def test_gates_equal_literal_counting(memory, alpha, special, divisor, redrawn):
    generator = torch.Generator().manual_seed(1)
    training = Steps(agg.AGG(alpha=alpha, memory=memory, divisor=divisor), redrawn=redrawn, special=special)
    for _ in range(12):
        targets = random_targets(generator)
        training.step(targets)
        gates, classes = training.state.gates(targets)
        expected, rare = literal_gates(training.history, alpha, memory, 7, special, divisor)
        torch.testing.assert_close(gates, expected)
        assert torch.equal(classes, rare[targets].long())
        assert torch.equal(training.state.rare(), rare)


def test_switched_off_gates_are_one():
    targets = torch.tensor([0, 0, 0, 1, 5])
    for name, row in (("g1", 0), ("g2", 1)):
        training = Steps(agg.AGG(alpha=0.7, memory=3, **{name: False}))
        both = Steps(agg.AGG(alpha=0.7, memory=3))
        for _ in range(2):
            training.step(targets)
            both.step(targets)
        gates, expected = training.state.gates(targets)[0], both.state.gates(targets)[0]
        assert (gates[row] == 1).all()
        assert torch.equal(gates[1 - row], expected[1 - row])
        assert not (expected[row] == 1).all()


def test_static_keeps_the_counts_of_the_first_epoch():
    generator = torch.Generator().manual_seed(2)
    training, dynamic = (Steps(agg.AGG(alpha=0.7, static=static)) for static in (True, False))
    for step in range(9):
        targets = random_targets(generator)
        training.step(targets)
        dynamic.step(targets)
        expected, rare = literal_gates(training.history[:4], 0.7, 4, 7)
        if step >= 3:
            assert torch.equal(training.state.gates(targets)[0], expected)
            assert torch.equal(training.state.rare(), rare)
        if step <= 3:
            assert torch.equal(training.state.gates(targets)[0], dynamic.state.gates(targets)[0])
    assert not torch.equal(training.state.gates(targets)[0], dynamic.state.gates(targets)[0])


def test_memory_is_one_epoch_by_default():
    assert agg.AGG(alpha=0.7).start(facts(steps_per_epoch=11)).memory == 11
    assert agg.AGG(alpha=0.7, memory=3).start(facts(steps_per_epoch=11)).memory == 3


def test_reading_the_gates_does_not_change_the_state():
    """Evaluation and every micro-batch read the gates; only steps count."""
    training = Steps(agg.AGG(alpha=0.7, memory=2))
    training.step(torch.tensor([0, 1, 1, 3, 6]))
    before = {name: tensor.clone() for name, tensor in training.state.state().items()}
    first = training.state.gates(torch.tensor([4, 6]))[0].clone()
    training.state.rare(), training.state.derived()
    assert torch.equal(training.state.gates(torch.tensor([2]))[0], first)
    for name, tensor in training.state.state().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("redrawn", [False, True])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("interrupted_at", [0, 1, 3, 4, 6])
def test_a_loaded_state_continues_exactly(static, interrupted_at, redrawn):
    """After saving and loading, gates are those of an unbroken training."""
    generator = torch.Generator().manual_seed(3)
    gate = agg.AGG(alpha=0.7, memory=3, static=static)
    one = Steps(gate, redrawn=redrawn)
    for _ in range(interrupted_at):
        one.step(random_targets(generator))
    other = Steps(gate, redrawn=redrawn)
    other.state.gates(torch.tensor([1]))
    other.state.load({name: tensor.clone() for name, tensor in one.state.state().items()})
    other.history += one.history
    for _ in range(5):
        targets = random_targets(generator)
        one.step(targets)
        other.step(targets)
        assert torch.equal(one.state.gates(targets)[0], other.state.gates(targets)[0])


def test_a_scaled_run_makes_the_share_of_the_paper_rare():
    """alpha 0.03 makes a fifth of the paper's types rare; other values of alpha keep their ratio to it."""
    counts = np.concatenate([[0, 0], np.arange(98, 0, -1) ** 2])
    rare = {"alpha": 0.03, "share": 0.2, "mass": 0.05, "tokens": 10**8}
    options = {"counts": counts, "special": (0, 1), "tokens_per_step": 700, "rare": rare}
    state = agg.AGG(alpha=0.03).start(facts(**options))
    per_step = counts * 700 / counts.sum()
    assert (per_step[2:] < state.alpha).sum() == 20
    assert per_step[80] < state.alpha < per_step[79]
    larger = agg.AGG(alpha=0.05).start(facts(**options))
    assert np.isclose(larger.alpha, state.alpha * 5 / 3)
    assert state.derived()["alpha"] == state.alpha
    assert state.derived()["memory"] == 4


def test_a_scaled_run_takes_the_nearest_bound_if_counts_are_equal():
    """A quarter of the types cannot be rare when seven of ten have one count."""
    counts = np.array([50, 40, 30, 2, 2, 2, 2, 2, 2, 2])
    rare = {"alpha": 0.03, "share": 0.25}
    alpha = agg.AGG(alpha=0.03).start(facts(counts=counts, tokens_per_step=134, rare=rare)).alpha
    assert 2 < alpha < 30


@pytest.mark.parametrize(
    ("alpha", "sentence"),
    [(0.0001, "makes no type rare.*raise alpha"), (100.0, "makes every type rare.*lower alpha")],
)
def test_alpha_that_makes_no_or_all_types_rare_is_refused(alpha, sentence):
    counts = COUNTS[:6]
    with pytest.raises(ValueError, match=sentence):
        agg.AGG(alpha=alpha).start(facts(counts=counts))


def test_types_that_never_occur_do_not_count_as_rare_for_alpha():
    """A vocabulary is filled up to a multiple of eight."""
    counts = np.array([900, 90, 9, 0, 0])
    with pytest.raises(ValueError, match="no type rare"):
        agg.AGG(alpha=0.02).start(facts(counts=counts, tokens_per_step=10))


def test_special_types_do_not_count_as_rare_for_alpha():
    counts = np.array([0, 900, 90, 9])
    with pytest.raises(ValueError, match="no type rare"):
        agg.AGG(alpha=0.02).start(facts(counts=counts, special=(0,), tokens_per_step=10))


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must be above 0"),
        ({"alpha": 0.02, "memory": 0}, "memory must be at least 1 step"),
        ({"alpha": 0.02, "divisor": "steps"}, "divisor must be one of elapsed, memory"),
    ],
)
def test_wrong_values_are_refused(part, sentence):
    with pytest.raises(ValueError, match=sentence):
        build_method({"gate": {"name": "agg"} | part})


def test_counts_stay_on_the_cpu_whatever_the_device():
    gate = agg.AGG(alpha=0.7, memory=3)
    saved = Steps(gate)
    saved.step(torch.tensor([0, 0, 1]))
    restored = gate.start(replace(facts(), device="meta"))
    restored.load(saved.state.state())
    restored.begin_step(torch.zeros(3, dtype=torch.int64))
    state = restored.state()
    assert state["recent"].tolist() == [0, 0, 1, 0, 0, 0]
    assert state["total"].tolist()[:2] == [5, 1]
