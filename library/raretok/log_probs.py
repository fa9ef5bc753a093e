"""Log-probabilities of targets with gradients, for losses made of them (DPO, KTO, GRPO), and more statistics."""

from typing import NamedTuple

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from raretok.checks import check_layer, check_targets, whole_numbers
from raretok.losses import OutputLoss

__all__ = ["TokenStatistics", "token_log_probs", "token_statistics"]

# Number of logits in memory at a time.
CELLS = 2**24


class TokenStatistics(NamedTuple):
    """What `token_statistics` returns, each shaped like the targets; of softmax(z), in nats.

    Args:
        log_probs: ln softmax(z)[y].
        log_normaliser: ln sum exp z.
        entropy: of softmax(z).
        argmax: the most probable type, an id, also where a target is ignored.
    """

    log_probs: torch.Tensor
    log_normaliser: torch.Tensor
    entropy: torch.Tensor
    argmax: torch.Tensor


def token_log_probs(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    ignore_index: int | None = -100,
    logit_scale: float = 1.0,
    soft_cap: float | None = None,
) -> torch.Tensor:
    """ln softmax(h W^T + b)[y] of each position, with gradients; the N x V logits are never allocated.

    The backward pass computes the logits again, because the gradient of each position is known only then.

    Args:
        hidden: input of the output layer, B x T x d or N x d.
        weight: the output embedding, V x d.
        targets: ids, B x T or N, already shifted.
        bias: of the output layer, V, or None.
        ignore_index: target of positions that do not count; their value is 0.
        logit_scale, soft_cap: of the model, as in `OutputLoss`; `patch` finds them.

    Returns at least float32, shaped like targets. Raises ValueError as `OutputLoss` does.
    """
    criterion = OutputLoss(reduction="none", ignore_index=ignore_index, logit_scale=logit_scale, soft_cap=soft_cap)
    return -criterion(hidden, weight, targets, bias=bias)


def token_statistics(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    ignore_index: int | None = -100,
    logit_scale: float = 1.0,
    soft_cap: float | None = None,
) -> TokenStatistics:
    """Log-probabilities, log normaliser and entropy of each position, with gradients, and the most probable type.

    Computed in chunks, again in the backward pass. `token_log_probs` is faster if you need nothing else, and
    `OutputLoss(observe=True)` if you need no gradients.

    Args:
        hidden: input of the output layer, B x T x d or N x d.
        weight: the output embedding, V x d.
        targets: ids, B x T or N, already shifted.
        bias: of the output layer, V, or None.
        ignore_index: target of positions that do not count; their values are 0.
        logit_scale, soft_cap: of the model, as in `OutputLoss`; `patch` finds them.

    Returns at least float32. Raises ValueError as `OutputLoss` does.
    """
    targets = whole_numbers(targets)
    check_layer(hidden, weight, targets, bias)
    check_targets(targets, len(weight), ignore_index)
    goals = targets.flatten().to(weight.device)
    is_real = torch.ones_like(goals, dtype=torch.bool) if ignore_index is None else goals != ignore_index
    goals = goals.masked_fill(~is_real, 0)

    def of_chunk(h, y, real):
        z = F.linear(h, weight, bias)
        z = z.to(torch.promote_types(z.dtype, torch.float32)) * logit_scale
        z = z if soft_cap is None else soft_cap * (z / soft_cap).tanh()
        log_p = z.log_softmax(dim=1)
        target = log_p.gather(1, y[:, None]).squeeze(1)
        entropy = -(log_p.exp() * log_p).sum(dim=1)
        return target * real, z.logsumexp(dim=1) * real, entropy * real, z.argmax(dim=1)

    rows = max(1, CELLS // len(weight))
    chunks = zip(hidden.flatten(0, -2).split(rows), goals.split(rows), is_real.split(rows), strict=True)
    found = [checkpoint(of_chunk, *chunk, use_reentrant=False) for chunk in chunks]
    return TokenStatistics(*(torch.cat(parts).view_as(targets) for parts in zip(*found, strict=True)))
