"""Scores of a text under a language model: negative log-likelihood and arg max prediction per token.

A text of N tokens has N targets. The first one is predicted from the end of a sentence, as at the start of fairseq's
blocks, so a split's group masses are those of its perplexity for any block size.

A span of tokens is scored with up to `window` tokens of context before it: `block` tokens are read to score
block - window, as with fairseq's `--tokens-per-sample` and `--context-window` (512 and 400 in agg). Near the beginning
there is less context. A plain pass has window 0: a block's first token has one token of context.

Cost for N targets: block / (block - window) x N tokens through the model's blocks (4.6 x N for 512 and 400, or for 128
and 100), and N through the output layer, because context needs no logits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

# Tokens and logits at a time. On a CPU the logits stay in the cache: twice as fast as with 16 times as many.
TOKENS = {"cpu": 2048, "cuda": 65536}
LOGITS = {"cpu": 2**20, "cuda": 2**28}


@dataclass(frozen=True)
class Scores:
    """Statistics of N targets: negative log-likelihood in nats (float64) and, if requested, arg max and groups.

    predicted: int64. groups: log-probability of each of G groups of types at every position, N x G. best, best_logits:
    the type with the largest logit of each group, and that logit, N x G. tempered: scores of the same text with logits
    divided by a temperature.
    """

    nll: np.ndarray
    predicted: np.ndarray | None
    groups: np.ndarray | None = None
    best: np.ndarray | None = None
    best_logits: np.ndarray | None = None
    tempered: "Scores | None" = None


def score(
    model: torch.nn.Module,
    tokens: np.ndarray,
    block: int,
    window: int,
    end: int,
    device: str = "cpu",
    predict: bool = True,
    bounds: tuple[int, ...] = (),
    temperature: float | None = None,
) -> Scores:
    """Score all N `tokens` (ids, integers) in spans of block - window.

    model: ids (B x T) to hidden vectors, with a method `logits`. end: id of the end of a sentence. predict: also find
    the arg max predictions, a fifth of the output layer's time.
    bounds: first ids of all groups of types but the first; with them, also find the groups' log-probabilities and, with
    `predict`, their best types. temperature: also score the text at it, from the same logits; groups are then found at
    it alone, not at 1.
    Forward pass in float32 on a CPU; the caller sums. 0 <= window < block.
    """
    temperatures = (1.0,) if temperature in (None, 1.0) else (1.0, temperature)
    nll = np.empty((len(temperatures), len(tokens)))
    predicted = np.empty(len(tokens), dtype=np.int64) if predict else None
    groups, best, best_logits = None, None, None
    if bounds:
        groups = np.empty((len(tokens), len(bounds) + 1))
    if bounds and predict:
        best, best_logits = np.empty(groups.shape, dtype=np.int64), np.empty(groups.shape)
    with torch.inference_mode():
        for here, hidden, targets in hidden_vectors(model, tokens, block, window, end, device):
            nll[:, here], *others = score_positions(
                model, hidden, targets, limits_of(device), predict, bounds=bounds, temperatures=temperatures
            )
            for all_of_them, part in zip((predicted, groups, best, best_logits), others, strict=True):
                if all_of_them is not None:
                    all_of_them[here] = part
    if temperature is None:
        return Scores(nll[0], predicted, groups, best, best_logits)
    tempered = Scores(nll[-1], None, groups=groups, best=best, best_logits=best_logits)
    return Scores(nll[0], predicted, tempered=tempered)


def hidden_vectors(
    model: torch.nn.Module, tokens: np.ndarray, block: int, window: int, end: int, device: str
) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
    """Positions (n), hidden vectors (n x d) and targets (n) of `tokens`, at most `TOKENS` read tokens at a time.

    Arguments are those of `score`. The caller turns gradients off.
    """
    size = max(1, TOKENS[limits_of(device)] // block)
    for starts, context, length in _batches(len(tokens), block, window, size):
        inputs, targets = _read(tokens, starts, context, length, end, device)
        here = (starts[:, None] + np.arange(length)).ravel()
        yield here, model(inputs)[:, context:].flatten(0, 1), targets.flatten()


def _batches(length: int, block: int, window: int, size: int):
    """(first scored positions, context, span) of batches of spans of one shape, which cover `length` once.

    At most `size` spans per batch. The first spans have less context than `window`, the last one may be shorter.
    """
    step = block - window
    spans = [(start, min(start, window), min(step, length - start)) for start in range(0, length, step)]
    first = 0
    while first < len(spans):
        shape = spans[first][1:]
        stop = first + 1
        while stop < len(spans) and stop - first < size and spans[stop][1:] == shape:
            stop += 1
        yield np.array([start for start, _, _ in spans[first:stop]]), *shape
        first = stop


def _read(
    tokens: np.ndarray, starts: np.ndarray, context: int, length: int, end: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (B x (context + length)) and targets (B x length) of spans that start at `starts`."""
    places = starts[:, None] + np.arange(-context, length)
    # The input of a position is the previous token; that of the first one is the end of a sentence.
    inputs = np.where(places > 0, tokens[np.maximum(places - 1, 0)], end).astype(np.int64)
    targets = tokens[places[:, context:]].astype(np.int64)
    return torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)


def score_positions(
    model: torch.nn.Module,
    hidden: torch.Tensor,
    targets: torch.Tensor,
    kind: str,
    predict: bool = False,
    bias: torch.Tensor | None = None,
    bounds: tuple[int, ...] = (),
    temperatures: tuple[float, ...] = (1.0,),
) -> tuple[np.ndarray | None, ...]:
    """Statistics of N x d hidden vectors without N x V logits in memory.

    Likelihoods, arg maxima, log-probabilities of groups, best type of each group and its logit (`Scores`).
    Negative log-likelihoods are float64, one row of N per temperature and, with an output bias, a last one without it.
    Groups and best logits are those at the last temperature. Of N x V, three chunks of `LOGITS` are in memory at most.
    """
    size = max(1, LOGITS[kind] // len(model.output_weight))
    losses, predicted, groups, best, best_logits = [], [], [], [], []
    for part, goal in zip(hidden.split(size), targets.split(size), strict=True):
        logits = model.logits(part).float()
        rows = []
        for temperature in temperatures:
            tempered = logits if temperature == 1 else logits / temperature
            rows.append(F.cross_entropy(tempered, goal, reduction="none"))
        if bias is not None:
            rows.append(F.cross_entropy(logits - bias.float(), goal, reduction="none"))
        losses.append(torch.stack(rows))
        if predict:
            predicted.append(logits.argmax(1))
        if bounds:
            parts = tempered.tensor_split(bounds, dim=1)
            sums = [types.logsumexp(dim=1) for types in parts]
            groups.append(torch.stack(sums, dim=1).log_softmax(dim=1))
        if bounds and predict:
            found = [types.max(dim=1) for types in parts]
            best.append(torch.stack([first + one.indices for first, one in zip((0, *bounds), found, strict=True)], 1))
            best_logits.append(torch.stack([one.values for one in found], dim=1))
    lists = (predicted, groups, best, best_logits)
    others = (torch.cat(each).cpu().numpy() if each else None for each in lists)
    return torch.cat(losses, dim=1).double().cpu().numpy(), *others


def limits_of(device: str) -> str:
    """The key of a device's limits above: `cpu` or `cuda`."""
    return "cpu" if torch.device(device).type == "cpu" else "cuda"
