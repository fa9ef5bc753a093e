"""Greedy continuations of prefixes of the test text (agg, tables 5 and 15)."""

import numpy as np
import torch


def prefixes(tokens: np.ndarray, number: int, length: int) -> np.ndarray:
    """`number` prefixes of `length` tokens (number x length, int64), evenly spaced over `tokens`.

    `tokens` must hold at least number + length - 1.
    """
    starts = np.linspace(0, len(tokens) - length, number).round().astype(np.int64)
    return np.asarray(tokens[starts[:, None] + np.arange(length)], dtype=np.int64)


def greedy(model: torch.nn.Module, begun: torch.Tensor, length: int, context: int) -> torch.Tensor:
    """`length` greedy tokens after each of the texts `begun` (B x P); returns B x length.

    The model sees at most the last `context` tokens. There is no key-value cache, so every new token costs a pass over
    the whole text (about 9,950 tokens per prefix for P = 50 and length 100). Logits are computed only at the last
    position.
    """
    text = begun
    with torch.inference_mode():
        for _ in range(length):
            hidden = model(text[:, -context:])[:, -1]
            text = torch.cat([text, model.logits(hidden).argmax(1, keepdim=True)], dim=1)
    return text[:, begun.shape[1] :]
