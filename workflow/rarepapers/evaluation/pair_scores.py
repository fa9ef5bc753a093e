"""Scores of the target side of pairs under a translation model, given the true prefix (teacher forcing).

One negative log-likelihood per target token, including </s>, and a second one without the output bias if the model has
one. Cost: one pass over every pair, with one output layer and up to two softmaxes.
"""

from dataclasses import dataclass

import numpy as np
import torch

from rarepapers.core.special_types import PAD
from rarepapers.data.pairs.pair_batches import collate, in_batches, lengths
from rarepapers.evaluation.text_scores import TOKENS, limits_of, score_positions


@dataclass(frozen=True)
class PairScores:
    """Scores of n target tokens, in the order of the split.

    targets: ids, (n,) int64. nll, nll_without_bias: negative log-likelihoods in nats, (n,) float64; the second is None
    for a model without an output bias. skipped: number of pairs with a side longer than the model's context.
    """

    targets: np.ndarray
    nll: np.ndarray
    nll_without_bias: np.ndarray | None
    skipped: int


def score_pairs(
    model: torch.nn.Module, pairs, context: int, device: str = "cpu", temperature: float = 1.0
) -> PairScores:
    """Score all target tokens of `pairs` (`data.pairs.prepared_pairs.Pairs`) with at most `context` tokens per side.

    model: `EncoderDecoder`'s interface. temperature: divides the logits; at another one than 1, scores without the bias
    are not computed. The forward pass is in float32; the caller sums in float64.
    """
    source, target = lengths(pairs)
    kept = np.flatnonzero(np.maximum(source, target) <= context)
    bias = model.output_bias if temperature == 1 else None
    kind = limits_of(device)
    # Offset of each kept pair's tokens among all scored tokens.
    starts = np.zeros(len(target) + 1, dtype=np.int64)
    starts[kept + 1] = target[kept]
    starts = np.cumsum(starts)
    rows = 1 if bias is None else 2
    nll, targets = np.empty((rows, starts[-1])), np.empty(starts[-1], dtype=np.int64)
    with torch.inference_mode():
        for chosen in in_batches(pairs, kept, TOKENS[kind]):
            source_ids, inputs, wanted = collate(pairs, chosen)
            inside = wanted != PAD
            hidden = model(torch.from_numpy(source_ids).to(device), torch.from_numpy(inputs).to(device))
            hidden = hidden[torch.from_numpy(inside).to(device)]
            here = (starts[chosen][:, None] + np.arange(wanted.shape[1]))[inside]
            targets[here] = wanted[inside]
            goal = torch.from_numpy(wanted[inside]).to(device)
            nll[:, here], *_ = score_positions(model, hidden, goal, kind, bias=bias, temperatures=(temperature,))
    without_bias = None if bias is None else nll[1]
    return PairScores(targets, nll[0], without_bias, len(target) - len(kept))
