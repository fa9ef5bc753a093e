"""Share of the gradient of the logits that reaches the hidden vectors (arXiv 2603.10145).

The gradient of a position's hidden vector is W^T D, D its gradient of the logits: only the part of D in the column
space of W is passed on. The rest, most of it where the width is far below the vocabulary size, changes W alone.
"""

import torch


def inverse_gram(weights: torch.Tensor) -> torch.Tensor:
    """(W^T W)^+ of W (V x d), d x d, float64."""
    weights = weights.float()
    return torch.linalg.pinv((weights.T @ weights).double(), hermitian=True)


def gradient_energies(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, inverse: torch.Tensor
) -> torch.Tensor:
    """The squared norm of each position's D = softmax - one-hot, and of its projection on the columns of W; 2 x N.

    logits: N x V. targets: N ids. weights: W, V x d. inverse: of `inverse_gram`. The projection's norm is
    dh (W^T W)^+ dh with dh = D W.
    """
    differences = logits.float().softmax(dim=1)
    differences[torch.arange(len(targets), device=targets.device), targets] -= 1
    passed_on = (differences @ weights.float()).double()
    return torch.stack([differences.double().square().sum(1), ((passed_on @ inverse) * passed_on).sum(1)])
