"""AGG's counter memory against counting from scratch."""

import pytest
import torch

from raretok.methods import agg


def literal_gates(history, alpha, memory, types):
    """Gates from the whole list of past targets, straight from Eqs. 5 to 8."""
    window = history[-memory:]
    counts = [sum(int((targets == k).sum()) for targets in window) for k in range(types)]
    steps = min(len(history), memory)
    rare = [count / steps < alpha for count in counts]
    rare_counts = [count for count, is_rare in zip(counts, rare, strict=True) if is_rare]
    mean = sum(rare_counts) / len(rare_counts) if rare_counts else 0
    g1 = [count / steps if r else 1.0 for count, r in zip(counts, rare, strict=True)]
    g2 = [min(count / (mean + 1e-7), 1.0) if r else 1.0 for count, r in zip(counts, rare, strict=True)]
    return torch.tensor([g1, g2], dtype=torch.float64), torch.tensor(rare)


@pytest.mark.parametrize("memory", [1, 3, 50])
@pytest.mark.parametrize("alpha", [0.01, 0.7, 100.0])
def test_gates_equal_literal_counting(memory, alpha):
    generator = torch.Generator().manual_seed(1)
    counters = agg.Gate(alpha=alpha, memory=memory).start(7)
    history = []
    for _ in range(12):
        targets = (torch.rand(5, generator=generator) ** 3 * 7).long()
        history.append(targets)
        counters.begin_update()
        counters.count(targets)
        gates, classes = counters.gates(targets)
        expected, rare = literal_gates(history, alpha, memory, 7)
        torch.testing.assert_close(gates, expected)
        assert torch.equal(classes, rare[targets].long())


def test_micro_batches_share_a_slot():
    whole, parts = agg.Gate(alpha=1.0, memory=2).start(5), agg.Gate(alpha=1.0, memory=2).start(5)
    for update in range(4):
        targets = torch.arange(6) % (update + 1)
        whole.begin_update()
        whole.count(targets)
        parts.begin_update()
        parts.count(targets[:2])
        parts.count(targets[2:])
        for name, tensor in whole.state().items():
            assert torch.equal(tensor, parts.state()[name]), name


def test_state_round_trip():
    one, other = agg.Gate(alpha=1.0, memory=3).start(5), agg.Gate(alpha=1.0, memory=3).start(5)
    one.begin_update()
    one.count(torch.tensor([0, 0, 4]))
    other.load({name: tensor.clone() for name, tensor in one.state().items()})
    for counters in (one, other):
        counters.begin_update()
        counters.count(torch.tensor([2]))
    assert torch.equal(one.gates(torch.tensor([2]))[0], other.gates(torch.tensor([2]))[0])
