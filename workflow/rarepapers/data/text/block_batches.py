"""Training batches as pure functions of (seed, step): blocks of two character languages, and blocks of a language.

The order of data depends on no other random number. All methods with one seed thus see the same batches, and an
interrupted run needs no data position to continue.
"""

from functools import lru_cache

import numpy as np

from rarepapers.core.errors import UserError

# Streams of random numbers for training and validation.
TRAIN, VALID = 0, 1


def draw_blocks(
    tokens: np.ndarray,
    types: int,
    size: int,
    context: int,
    low_resource_probability: float,
    key: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets (size x context each, int64) of `size` random blocks.

    tokens: one text as ids below `types`. Each block is shifted by `types`, into the second language, with probability
    low_resource_probability (stop_jostling, section 4.1; drawn per block). key: numbers that seed the draw, (seed,
    stream, step, ...).
    """
    generator = np.random.default_rng(key)
    starts = generator.integers(0, len(tokens) - context, size)
    low_resource = generator.random(size) < low_resource_probability
    blocks = tokens[starts[:, None] + np.arange(context + 1)].astype(np.int64)
    blocks += types * low_resource[:, None]
    return blocks[:, :-1], blocks[:, 1:]


class Blocks:
    """Consecutive blocks of a corpus, in a new permutation every epoch.

    Block i has the inputs tokens[i * context : (i + 1) * context], and the tokens shifted by one as targets. The
    permutation of an epoch is a function of (seed, epoch).
    """

    def __init__(self, tokens: np.ndarray, context: int, sequences: int, seed: int):
        """tokens: ids, (n,), may be a memory map. sequences: blocks per step.

        Raises UserError if the text is shorter than one block or has fewer blocks than a step needs.
        """
        self.tokens, self.context, self.sequences, self.seed = tokens, context, sequences, seed
        self.blocks = (len(tokens) - 1) // context
        # Blocks that do not fill a step at the end of an epoch are left out, different ones in every epoch.
        self.steps_per_epoch = self.blocks // sequences
        if self.blocks < 1:
            raise UserError(
                f"the training split has {len(tokens):,} tokens, fewer than one block of model.context "
                f"{context:,} and its last target; take a smaller model.context or a longer text"
            )
        if self.steps_per_epoch < 1:
            raise UserError(
                f"the training split has {self.blocks:,} blocks of {context:,} tokens, but one step takes "
                f"{sequences:,}; take a smaller training.batch_size, accumulation or model.context, or a longer text"
            )
        # AGG's memory asks for targets one epoch back, so two permutations are in use.
        self._order = lru_cache(maxsize=2)(self._permutation)

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of step `step` (from 0), sequences x context each, int64."""
        epoch, place = divmod(step, self.steps_per_epoch)
        chosen = self._order(epoch)[place * self.sequences : (place + 1) * self.sequences]
        starts = chosen * self.context
        # One slice per block is cheaper on a memory map than an index for every token.
        blocks = np.stack([self.tokens[start : start + self.context + 1] for start in starts]).astype(np.int64)
        return blocks[:, :-1], blocks[:, 1:]

    def _permutation(self, epoch: int) -> np.ndarray:
        return np.random.default_rng((self.seed, TRAIN, epoch)).permutation(self.blocks)
