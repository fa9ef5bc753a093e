"""Rank of the target among all types: accuracy, recall@k, mean reciprocal rank (stop_jostling, section 4.3).

The statistic of an item is its rank, 1 is the best. Ties go to the lower token id, as in a stable sort by decreasing
logit, so that accuracy is that of arg max and the ranks of all tokens are a permutation. A NaN logit counts against the
target: a broken model must not look good.
"""

import numpy as np
import torch


def target_ranks(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Rank of each target, int64 (N), from 1 to V; logits N x V, targets N."""
    own = logits.gather(1, targets[:, None])
    ids = torch.arange(logits.shape[1], device=logits.device)
    below = (logits < own) | ((logits == own) & (ids > targets[:, None]))
    # The target is not below itself, which makes the best rank 1.
    return (~below).sum(1)


def accuracy(ranks: np.ndarray) -> float:
    """Share of items whose target ranks first."""
    return recall(ranks, 1)


def recall(ranks: np.ndarray, k: int) -> float:
    """Share of items whose target is among the first k; NaN for no items."""
    return float(np.mean(ranks <= k)) if len(ranks) else float("nan")


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """Mean of 1 / rank; NaN for no items."""
    return float(np.mean(1 / ranks)) if len(ranks) else float("nan")


def mean_rank(ranks: np.ndarray) -> float:
    """Mean rank; NaN for no items."""
    return float(np.mean(ranks)) if len(ranks) else float("nan")
