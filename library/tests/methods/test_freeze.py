"""Freezing: which types, which parts of their gradient, and until when."""

import numpy as np
import pytest
import torch
from methods_by_name import build_method

from raretok.methods import TrainingFacts, agps, freeze
from raretok.output.output_layer import output_loss

COUNTS = np.array([0, 0, 90, 80, 70, 60, 50, 5, 5, 5, 1, 0])


def start(gate, counts=COUNTS, special=(0, 1)):
    return gate.start(TrainingFacts(counts, special, tokens_per_step=10, steps_per_epoch=5))


@pytest.mark.parametrize("part", ["b", "c", "bc"])
def test_gradient_of_rows_equals_the_printed_parts(part):
    generator = torch.Generator().manual_seed(1)
    h = torch.randn(31, 5, generator=generator, dtype=torch.float64)
    w = torch.randn(12, 5, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randint(12, (31,), generator=generator)
    method = build_method({"gate": {"name": "freeze", "part": part, "share": 0.4}})
    state = start(method.gate)
    state.begin_step(y)
    loss = output_loss(method, state, h, w, y, normaliser=1).loss
    expected = freeze.reference(h, w, y, state.rare(), part)
    torch.testing.assert_close(torch.autograd.grad(loss, w)[0], expected.detach(), rtol=0, atol=1e-12)


def test_the_rarest_share_of_types_is_rare_and_special_types_never_are():
    """A share of the 9 types that occur, as in the papers, or of all 12. Type 11 never occurs and is always rare."""
    assert start(freeze.Freeze(share=0.25)).rare().nonzero().flatten().tolist() == [9, 10, 11]
    assert start(freeze.Freeze(share=0.25, share_of="all")).rare().nonzero().flatten().tolist() == [9, 10, 11]
    assert start(freeze.Freeze(share=0.45)).rare().nonzero().flatten().tolist() == [7, 8, 9, 10, 11]
    assert start(freeze.Freeze(share=0.5, share_of="all")).rare().nonzero().flatten().tolist() == [6, 7, 8, 9, 10, 11]
    # Ids out of frequency order: the counts decide, ties by id.
    shuffled = np.array([0, 0, 5, 80, 0, 5, 90, 5])
    assert start(freeze.Freeze(share=0.4), shuffled).rare().nonzero().flatten().tolist() == [4, 5, 7]


def test_the_share_is_of_the_types_that_occur():
    """A short text has 1,000 of 50,257 types."""
    counts = np.zeros(50_257, dtype=np.int64)
    counts[::50] = np.arange(1, 1007)
    rare = start(freeze.Freeze(share=0.2), counts, special=()).rare().numpy()
    assert (rare & (counts > 0)).sum() == 201
    of_all = start(freeze.Freeze(share=0.2, share_of="all"), counts, special=()).rare().numpy()
    assert (of_all & (counts > 0)).sum() == 0


def test_all_excludes_rows_from_the_step_and_gates_nothing():
    state = start(freeze.Freeze())
    state.begin_step(torch.tensor([1]))
    assert state.gates(torch.tensor([1])) is None
    assert torch.equal(state.frozen(), state.rare())


def test_frequent_words_of_the_source_side_are_not_frozen():
    """Rare types are targets at most 5 times; those that are more frequent in the source are not frozen."""
    source = np.array([0, 0, 9, 9, 9, 9, 9, 6, 5, 0, 400, 3])
    facts = TrainingFacts(COUNTS, (0, 1), tokens_per_step=10, steps_per_epoch=5, source_counts=source)
    state = freeze.Freeze(share=0.45).start(facts)
    assert state.rare().nonzero().flatten().tolist() == [7, 8, 9, 10, 11]
    assert state.frozen().nonzero().flatten().tolist() == [8, 9, 11]
    assert state.derived() == {"rare_types": 5, "frozen_types": 3}
    assert freeze.Freeze(part="bc", share=0.45).start(facts).derived() == {"rare_types": 5}
    with pytest.raises(ValueError, match="freezes nothing: the source side has every one of the 2 rare types"):
        freeze.Freeze(share=0.12).start(facts)


@pytest.mark.parametrize("part", ["all", "bc"])
def test_until_counts_steps(part):
    """until 3: steps 0, 1 and 2 are frozen, also after an interruption."""
    gate = freeze.Freeze(part=part, until=3)
    state, seen = start(gate), []
    for _ in range(5):
        state.begin_step(torch.tensor([1]))
        restored = start(gate)
        restored.load({name: tensor.clone() for name, tensor in state.state().items()})
        for one in (state, restored):
            seen.append(one.frozen() is not None or one.gates(torch.tensor([1])) is not None)
    assert seen == [True] * 6 + [False] * 4


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_that_makes_no_or_all_types_rare_is_refused(share):
    with pytest.raises(ValueError, match=f"Freeze's share is {share}, which makes"):
        start(freeze.Freeze(share=share))


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"part": "d"}, "part must be one of all, b, c, bc"),
        ({"share": 1.0}, "share must be above 0 and below 1"),
        ({"share_of": "some"}, "share_of must be one of occurring, all"),
        ({"until": 0}, "until must be at least 1 step"),
    ],
)
def test_wrong_values_are_refused(part, sentence):
    with pytest.raises(ValueError, match=sentence):
        build_method({"gate": {"name": "freeze"} | part})


def test_rare_from_is_the_low_group_of_agps():
    """Also if a scaled run derives it from its own counts."""
    counts = np.array([500, 300, 100, 50, 30, 12, 5, 2, 1])
    for rare in (None, {"alpha": 0.03, "share": 0.2, "mass": 0.048, "tokens": 2000}):
        facts = TrainingFacts(counts, (), tokens_per_step=10, steps_per_epoch=5, rare=rare)
        frozen = freeze.Freeze(rare_from=6).start(facts).rare()
        assert torch.equal(frozen, agps.AGPS(rare_from=6, mu_1=9.0, mu_2=9.0).start(facts).rare())
    assert frozen.tolist() == [False] * 5 + [True] * 4  # 12 + 5 + 2 + 1 of 1000 is at most 4.8%, with 30 it is more


def test_share_and_rare_from_are_equivalent():
    with pytest.raises(ValueError, match="not both"):
        freeze.Freeze(share=0.2, rare_from=3)
