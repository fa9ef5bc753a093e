"""Data order: a pure function of (seed, stream, step)."""

import numpy as np
import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.text.block_batches import TRAIN, VALID, Blocks, draw_blocks

TOKENS = np.arange(1000, dtype=np.uint16) % 50


def draw(probability=0.5, key=(1, TRAIN, 7), size=200, context=9):
    return draw_blocks(TOKENS, 50, size, context, probability, key)


def test_targets_are_the_next_tokens_of_one_language():
    inputs, targets = draw()
    assert inputs.shape == targets.shape == (200, 9)
    assert inputs.dtype == np.int64
    low = inputs[:, :1] >= 50
    assert np.array_equal(low, targets[:, :1] >= 50)
    text = np.where(low, inputs - 50, inputs)
    assert ((text >= 0) & (text < 50)).all()
    assert np.array_equal((text + 1) % 50, np.where(low, targets - 50, targets))


def test_equal_keys_give_equal_batches_and_others_do_not():
    assert np.array_equal(draw()[0], draw()[0])
    for other in ((2, TRAIN, 7), (1, VALID, 7), (1, TRAIN, 8)):
        assert not np.array_equal(draw()[0], draw(key=other)[0])


def test_language_does_not_change_which_text_is_drawn():
    assert np.array_equal(draw(0.0)[0], draw(1.0)[0] - 50)


def test_share_of_low_resource_blocks():
    drawn = draw(0.02, size=50_000, context=2)[0][:, 0] >= 50
    assert abs(drawn.mean() - 0.02) < 4 * np.sqrt(0.02 * 0.98 / 50_000)


def test_every_position_of_the_text_can_be_drawn():
    inputs, targets = draw(0.0, size=200_000, context=1)
    starts = np.unique(inputs[:, 0])
    assert len(starts) == 50
    tokens = np.arange(4)
    inputs, targets = draw_blocks(tokens, 4, 500, 2, 0.0, (0,))
    assert {tuple(row) for row in inputs} == {(0, 1), (1, 2)}
    assert targets.max() == 3


# 103 tokens: 14 blocks of 7 and the target of the last; 4 steps of 3 blocks, 2 blocks of an epoch are left out.
TEXT = np.arange(103, dtype=np.uint16)


def epoch(blocks, number):
    steps = range(number * blocks.steps_per_epoch, (number + 1) * blocks.steps_per_epoch)
    return np.concatenate([blocks.draw(step)[0] for step in steps])


def test_blocks_are_consecutive_and_targets_shifted_by_one():
    blocks = Blocks(TEXT, context=7, sequences=3, seed=1)
    inputs, targets = blocks.draw(5)
    assert inputs.shape == targets.shape == (3, 7)
    assert inputs.dtype == targets.dtype == np.int64
    assert (inputs[:, 0] % 7 == 0).all()
    assert np.array_equal(inputs, inputs[:, :1] + np.arange(7))
    assert np.array_equal(targets, inputs + 1)


def test_an_epoch_has_every_block_once_if_they_fill_its_steps():
    blocks = Blocks(TEXT, context=7, sequences=3, seed=1)
    assert (blocks.blocks, blocks.steps_per_epoch) == (14, 4)
    for number in range(3):
        starts = epoch(blocks, number)[:, 0]
        assert len(set(starts)) == len(starts) == 12
    whole = Blocks(TEXT, context=7, sequences=2, seed=1)
    assert sorted(epoch(whole, 2)[:, 0]) == list(range(0, 98, 7))
    # The last token of the text is a target, never an input.
    assert Blocks(TEXT[:99], context=7, sequences=2, seed=1).blocks == 14
    assert Blocks(TEXT[:98], context=7, sequences=2, seed=1).blocks == 13


def test_epochs_and_seeds_differ_in_order():
    blocks, other = (Blocks(TEXT, context=7, sequences=2, seed=seed) for seed in (1, 2))
    orders = [tuple(epoch(one, number)[:, 0]) for one in (blocks, other) for number in range(2)]
    assert len(set(orders)) == 4


def test_a_block_is_a_function_of_seed_and_step(tmp_path):
    np.save(tmp_path / "text.npy", TEXT)
    first = Blocks(TEXT, context=7, sequences=3, seed=3)
    forwards = [first.draw(step)[0] for step in range(12)]
    mapped = Blocks(np.load(tmp_path / "text.npy", mmap_mode="r"), context=7, sequences=3, seed=3)
    for step in (11, 0, 7, 3, 4, 10):  # three epochs, in any order
        np.random.seed(step)  # noqa: NPY002
        inputs, targets = mapped.draw(step)
        assert np.array_equal(inputs, forwards[step])
        assert np.array_equal(targets, forwards[step] + 1)


def test_a_text_that_is_too_short_is_refused():
    with pytest.raises(UserError, match=r"has 7 tokens, fewer than one block of model.context 7 and its last target"):
        Blocks(TEXT[:7], context=7, sequences=1, seed=1)
    with pytest.raises(UserError, match=r"has 14 blocks of 7 tokens, but one step takes 15"):
        Blocks(TEXT, context=7, sequences=15, seed=1)
    assert Blocks(TEXT[:8], context=7, sequences=1, seed=1).draw(0)[1].tolist() == [list(range(1, 8))]
