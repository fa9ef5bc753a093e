"""Probability of the unreliable tail (stop_jostling, section 4.4 and figure 4)."""

import torch

LIKELIEST = 5


def tail_mass(logits: torch.Tensor, likeliest: int = LIKELIEST) -> torch.Tensor:
    """Probability outside the `likeliest` tokens for each item, float64 (N); logits N x V.

    0 if V <= `likeliest`. The tail itself is summed, because 1 minus the head would lose small tails to rounding.
    """
    if logits.shape[1] <= likeliest:
        return torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    total = logits.double().logsumexp(1)
    # Ties at the border have equal probability, so it does not matter which is masked.
    head = logits.topk(likeliest, dim=1).indices
    tail = logits.double().scatter(1, head, float("-inf")).logsumexp(1)
    return torch.exp(tail - total)
