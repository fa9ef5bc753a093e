"""Probability of the target, and of the unreliable tail (stop_jostling, section 4.4 and figure 4)."""

import torch

LIKELIEST = 5


def target_probability(nll: torch.Tensor) -> torch.Tensor:
    """softmax(z)[y] per item, of its negative log likelihood in nats."""
    return torch.exp(-nll)


def tail_mass(logits: torch.Tensor, likeliest: int = LIKELIEST) -> torch.Tensor:
    """Probability outside the `likeliest` tokens per item, float64 (N), of logits N x V.

    0 when V is no larger. The tail is summed itself, not taken as 1 minus the head, which would lose a small
    tail to rounding.
    """
    if logits.shape[1] <= likeliest:
        return torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    total = logits.double().logsumexp(1)
    # Which of equal tokens at the border is masked does not matter: they have equal probability.
    head = logits.topk(likeliest, dim=1).indices
    tail = logits.double().scatter(1, head, float("-inf")).logsumexp(1)
    return torch.exp(tail - total)
