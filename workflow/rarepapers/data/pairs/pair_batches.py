"""Batches of sentence pairs with similar lengths, a pure function of (seed, step) as in `data.text.block_batches`."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import PAD, START
from rarepapers.data.text.block_batches import TRAIN


class PairBatches:
    """Batches of at most `batch_tokens` target tokens, including padding; a step has `accumulation` of them.

    Pairs are sorted by their longer side and cut into batches. In every epoch, pairs of equal lengths are redistributed
    and the batches are shuffled, as functions of (seed, epoch). The lengths at each place never change, so all epochs
    have the same number of batches and steps. Batches that do not fill a step at an epoch's end are left out, different
    ones in every epoch.

    `steps_per_epoch`; `tokens_per_step`: mean number of target tokens per step, without padding; `dropped`: number of
    pairs left out because a side is longer than `longest`.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        batch_tokens: int,
        longest: int,
        seed: int,
        accumulation: int = 1,
    ):
        """source_lengths, target_lengths: tokens of each pair's sides, (n,), including </s>.

        Raises UserError if a pair does not fit into a batch, no pair is short enough, or an epoch has no whole step.
        """
        self.source_lengths, self.target_lengths = source_lengths, target_lengths
        self.accumulation, self.seed = accumulation, seed
        longer = np.maximum(source_lengths, target_lengths)
        self.kept = np.flatnonzero(longer <= longest)
        self.dropped = len(longer) - len(self.kept)
        if not len(self.kept):
            raise UserError(
                f"no pair of the training split is at most model.context {longest:,} tokens long; take a larger one"
            )
        self.bounds = cut(target_lengths[self._sorted(self.kept)], batch_tokens)
        self.batches = len(self.bounds) - 1
        self.steps_per_epoch = self.batches // accumulation
        if self.steps_per_epoch < 1:
            raise UserError(
                f"the training split makes {self.batches:,} batches of {batch_tokens:,} tokens, but one step takes "
                f"{accumulation:,}; take a smaller training.batch_tokens or training.accumulation"
            )
        self.tokens_per_step = int(target_lengths[self.kept].sum()) * accumulation / self.batches
        # AGG's memory asks for targets one epoch back, so two orders are in use.
        self._epoch = lru_cache(maxsize=2)(self._orders)

    def draw(self, step: int) -> list[np.ndarray]:
        """The micro-batches of step `step` (from 0): indices of their pairs."""
        epoch, place = divmod(step, self.steps_per_epoch)
        pairs, batches = self._epoch(epoch)
        chosen = batches[place * self.accumulation : (place + 1) * self.accumulation]
        return [pairs[self.bounds[k] : self.bounds[k + 1]] for k in chosen]

    def target_tokens(self, step: int) -> int:
        """Target tokens of step `step`, without padding."""
        return int(sum(self.target_lengths[chosen].sum() for chosen in self.draw(step)))

    def _orders(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of an epoch by length, pairs of equal lengths in random order; and the order of its batches."""
        generator = np.random.default_rng((self.seed, TRAIN, epoch))
        return self._sorted(generator.permutation(self.kept)), generator.permutation(self.batches)

    def _sorted(self, pairs: np.ndarray) -> np.ndarray:
        return pairs[by_length(self.source_lengths[pairs], self.target_lengths[pairs])]


def lengths(pairs) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of each pair's source and target, (n,) each, including </s>."""
    return np.diff(pairs.source_offsets), np.diff(pairs.target_offsets)


def in_batches(pairs, chosen: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """The pairs `chosen`, sorted by length, in batches of at most `batch_tokens` target tokens including padding.

    If a single pair is longer, batches have up to that many tokens.
    """
    if not len(chosen):
        return
    source, target = (side[chosen] for side in lengths(pairs))
    order = by_length(source, target)
    for first, last in pairwise(cut(target[order], max(batch_tokens, int(target.max())))):
        yield chosen[order[first:last]]


def by_length(source_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """The stable order (n,) that sorts pairs by the longer side, then by the other lengths.

    Sorting by the longer side wastes least: 6 % of the positions of Multi30k's batches of 4,096 tokens are padding, and
    10 % when sorting by target length.
    """
    return np.lexsort((target_lengths, source_lengths, np.maximum(source_lengths, target_lengths)))


def cut(lengths: np.ndarray, batch_tokens: int) -> np.ndarray:
    """Bounds of the largest batches of successive sequences within `batch_tokens`, including padding: (batches + 1,).

    lengths: tokens of each sequence (n,). Raises UserError if a sequence is longer than a batch.
    """
    if lengths.max() > batch_tokens:
        raise UserError(
            f"training.batch_tokens is {batch_tokens:,}, but a sentence has {lengths.max():,} tokens; take more"
        )
    bounds = [0]
    while bounds[-1] < len(lengths):
        first = bounds[-1]
        width = np.maximum.accumulate(lengths[first : first + batch_tokens // lengths[first]])
        fits = width * np.arange(1, len(width) + 1) <= batch_tokens
        bounds.append(first + int(fits.sum()))
    return np.array(bounds)


def collate(pairs, chosen: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source (B x S), decoder inputs and targets (B x T each) of some pairs, int64, padded with PAD at the end.

    pairs: from `load_pairs`; lines end with </s>. Inputs are START followed by the targets without the last one.
    """
    source = padded(pairs.source, pairs.source_offsets, chosen)
    targets = padded(pairs.target, pairs.target_offsets, chosen)
    inputs = np.full_like(targets, PAD)
    inputs[:, 0] = START
    last = targets[:, 1:] == PAD
    inputs[:, 1:] = np.where(last, PAD, targets[:, :-1])
    return source, inputs, targets


def padded(ids: np.ndarray, offsets: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
    """Lines `chosen` of flat ids, (lines, longest) int64; line i is ids[offsets[i] : offsets[i + 1]]."""
    chosen = np.asarray(chosen)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    places = np.arange(lengths.max())
    inside = places < lengths[:, None]
    array = np.full(inside.shape, PAD, dtype=np.int64)
    array[inside] = ids[(starts[:, None] + places)[inside]]
    return array
