"""The share of the logits' gradient that reaches hidden vectors, against dense projections and cases by hand."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rarepapers.metrics.kept_gradient import gradient_energies, inverse_gram


def test_energies_are_those_of_a_dense_projection():
    generator = torch.Generator().manual_seed(0)
    logits, weights = (torch.randn(shape, generator=generator) for shape in ((5, 11), (11, 3)))
    targets = torch.tensor([0, 3, 10, 3, 7])
    differences = (logits.softmax(1) - F.one_hot(targets, 11)).double().numpy()
    columns, _ = np.linalg.qr(weights.double().numpy())
    whole, kept = gradient_energies(logits, targets, weights, inverse_gram(weights)).numpy()
    assert whole == pytest.approx((differences**2).sum(1), rel=1e-6)
    assert kept == pytest.approx(((differences @ columns) ** 2).sum(1), rel=1e-5)
    # The gradient by autograd: dh = D W.
    hidden = torch.randn(5, 3, generator=generator, requires_grad=True)
    loss = F.cross_entropy(hidden @ weights.T, targets, reduction="sum")
    loss.backward()
    _, kept = gradient_energies((hidden @ weights.T).detach(), targets, weights, inverse_gram(weights))
    inverse = torch.linalg.inv((weights.T @ weights).double())
    assert kept.numpy() == pytest.approx(((hidden.grad.double() @ inverse) * hidden.grad.double()).sum(1), rel=1e-4)


def test_a_full_matrix_keeps_all_and_a_column_its_own_part():
    logits, targets = torch.zeros(1, 4), torch.tensor([2])
    whole, kept = gradient_energies(logits, targets, torch.eye(4), inverse_gram(torch.eye(4)))
    assert kept.item() == pytest.approx(whole.item())
    # D is (1/4, 1/4, -3/4, 1/4); the column of the target alone keeps 9/16 of 12/16. A repeated column adds nothing.
    column = torch.tensor([0.0, 0.0, 1.0, 0.0])[:, None]
    repeated = torch.cat([column, column], dim=1)
    whole, kept = gradient_energies(logits, targets, repeated, inverse_gram(repeated))
    assert (whole.item(), kept.item()) == pytest.approx((0.75, 0.5625))
