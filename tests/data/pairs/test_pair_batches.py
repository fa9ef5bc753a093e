"""Batches of pairs: every pair once per epoch, similar lengths together, determined by (seed, step)."""

from types import SimpleNamespace

import numpy as np
import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.pairs.pair_batches import PairBatches, collate, cut


@pytest.fixture
def lengths():
    generator = np.random.default_rng(0)
    source = generator.integers(3, 30, 500)
    return source, np.maximum(2, source + generator.integers(-2, 4, 500))


def epoch_of(batches, epoch):
    first = epoch * batches.steps_per_epoch
    return [batches.draw(step) for step in range(first, first + batches.steps_per_epoch)]


def test_an_epoch_has_every_pair_once(lengths):
    batches = PairBatches(*lengths, batch_tokens=200, longest=100, seed=1)
    for epoch in (0, 1, 5):
        drawn = np.concatenate([np.concatenate(update) for update in epoch_of(batches, epoch)])
        assert sorted(drawn) == list(range(500))
        assert batches.dropped == 0


def test_batches_keep_to_the_budget_and_waste_little(lengths):
    source, target = lengths
    batches = PairBatches(source, target, batch_tokens=200, longest=100, seed=1)
    used = padded = 0
    for (chosen,) in epoch_of(batches, 0):
        positions = len(chosen) * target[chosen].max()
        assert positions <= 200
        # Well filled, except the last by length, which has the remaining pairs.
        assert positions > 150 or np.maximum(source, target)[chosen].max() >= 30
        used += target[chosen].sum() + source[chosen].sum()
        padded += positions + len(chosen) * source[chosen].max()
    assert used / padded > 0.85


def test_epochs_and_seeds_differ_and_steps_do_not(lengths):
    first, again, other = (PairBatches(*lengths, batch_tokens=200, longest=100, seed=seed) for seed in (1, 1, 2))
    steps = first.steps_per_epoch
    # In any order, as after an interruption or for a gate that looks back.
    wanted = (0, steps - 1, 3 * steps + 2, 1, steps, 2 * steps)
    drawn = {step: first.draw(step) for step in wanted}
    for step in reversed(wanted):
        for one, same in zip(drawn[step], again.draw(step), strict=True):
            assert np.array_equal(one, same)
    for there in (first.draw(steps), other.draw(0)):
        assert not np.array_equal(first.draw(0)[0], there[0])

    # Epochs also regroup pairs of equal lengths, beyond reordering the batches.
    def companies(epoch):
        return {frozenset(chosen) for (chosen,) in epoch_of(first, epoch)}

    assert companies(0) != companies(1)


def test_a_step_has_several_batches_and_counts_its_targets(lengths):
    _, target = lengths
    single = PairBatches(*lengths, batch_tokens=200, longest=100, seed=1)
    triple = PairBatches(*lengths, batch_tokens=200, longest=100, seed=1, accumulation=3)
    assert triple.steps_per_epoch == single.steps_per_epoch // 3
    update = triple.draw(1)
    assert [list(part) for part in update] == [list(single.draw(step)[0]) for step in (3, 4, 5)]
    assert triple.target_tokens(1) == sum(target[part].sum() for part in update)
    assert single.tokens_per_step == pytest.approx(target.sum() / single.steps_per_epoch)
    assert triple.tokens_per_step == pytest.approx(3 * single.tokens_per_step)


def test_long_pairs_are_left_out_and_counted(lengths):
    source, target = lengths
    batches = PairBatches(source, target, batch_tokens=200, longest=20, seed=1)
    drawn = np.concatenate([np.concatenate(update) for update in epoch_of(batches, 0)])
    assert set(drawn) == set(np.flatnonzero((source <= 20) & (target <= 20)))
    assert batches.dropped == 500 - len(drawn) > 0
    assert batches.tokens_per_step * batches.steps_per_epoch == pytest.approx(target[drawn].sum())


def test_impossible_sizes_are_refused(lengths):
    with pytest.raises(UserError, match=r"no pair of the training split is at most model\.context 1 tokens long"):
        PairBatches(*lengths, batch_tokens=200, longest=1, seed=1)
    with pytest.raises(UserError, match=r"training\.batch_tokens is 20, but a sentence has 3\d tokens"):
        PairBatches(*lengths, batch_tokens=20, longest=100, seed=1)
    with pytest.raises(UserError, match=r"makes \d+ batches of 200 tokens, but one step takes 1,000"):
        PairBatches(*lengths, batch_tokens=200, longest=100, seed=1, accumulation=1000)


def test_cut_is_greedy():
    assert cut(np.array([3, 3, 3, 4, 9, 1]), 9).tolist() == [0, 3, 4, 5, 6]
    assert cut(np.array([2, 2, 5, 1]), 10).tolist() == [0, 2, 4]


def test_collate_pads_and_shifts():
    pairs = SimpleNamespace(
        source=np.array([5, 2, 6, 7, 2], dtype=np.uint16),
        source_offsets=np.array([0, 2, 5]),
        target=np.array([8, 9, 2, 4, 2], dtype=np.uint16),
        target_offsets=np.array([0, 3, 5]),
    )
    source, inputs, targets = collate(pairs, [1, 0])
    assert source.tolist() == [[6, 7, 2], [5, 2, 1]]
    assert targets.tolist() == [[4, 2, 1], [8, 9, 2]]
    assert inputs.tolist() == [[0, 4, 1], [0, 8, 9]]
    assert source.dtype == inputs.dtype == targets.dtype == np.int64
