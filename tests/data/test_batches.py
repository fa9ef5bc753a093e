"""Data order: a pure function of (seed, stream, step)."""

import numpy as np

from raretok.data.batches import TRAIN, VALID, draw_blocks

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


def test_the_global_generators_play_no_part():
    first = draw()[0]
    np.random.seed(0)  # noqa: NPY002
    np.random.rand(5)  # noqa: NPY002
    assert np.array_equal(first, draw()[0])


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
