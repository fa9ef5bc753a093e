"""Batches of two-language character blocks, a pure function of (seed, step).

The order of data does not depend on any other random number, so all methods of one seed see the same batches,
and an interrupted training needs no position to continue at.
"""

import numpy as np

# Keeps training and validation draws of one (seed, step) apart.
TRAIN, VALID = 0, 1


def draw_blocks(
    tokens: np.ndarray,
    types: int,
    size: int,
    context: int,
    low_resource_probability: float,
    key: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets (size x context each, 64-bit) of `size` random blocks.

    tokens: one text as ids below `types`. Each block is shifted by `types`, into the second language, with
    probability low_resource_probability (stop_jostling, section 4.1; drawn per block, inventory 4.5).
    key: numbers that seed the draw, (seed, stream, step, ...).
    """
    generator = np.random.default_rng(key)
    starts = generator.integers(0, len(tokens) - context, size)
    low_resource = generator.random(size) < low_resource_probability
    blocks = tokens[starts[:, None] + np.arange(context + 1)].astype(np.int64)
    blocks += types * low_resource[:, None]
    return blocks[:, :-1], blocks[:, 1:]
