"""Spectrum control: the factors equal the matrix they came from, and the penalty its formula."""

import pytest
import torch
from methods_by_name import build_method
from torch import nn

from raretok.methods import spectrum
from raretok.output.output_layer import output_loss


class Model(nn.Module):
    """A model with a tied or an untied output matrix."""

    def __init__(self, tied):
        super().__init__()
        self.tied = tied
        self.embedding = nn.Embedding(13, 5, dtype=torch.float64)
        if not tied:
            self.output = nn.Parameter(torch.randn(13, 5, dtype=torch.float64))

    @property
    def output_weight(self):
        return self.embedding.weight if self.tied else self.output


@pytest.mark.parametrize("tied", [True, False])
def test_factors_start_at_the_matrix_and_are_trained(tied):
    torch.manual_seed(1)
    model = Model(tied)
    before = model.output_weight.detach().clone()
    spectrum.Spectrum().parametrise(model)
    torch.testing.assert_close(model.output_weight, before)
    shapes = [tuple(parameter.shape) for name, parameter in model.named_parameters() if "parametrizations" in name]
    assert shapes == [(13, 5), (5,), (5, 5)]


@pytest.mark.parametrize("prior", ["exponential", "polynomial"])
def test_penalty_and_gradients_equal_the_formula(prior):
    torch.manual_seed(2)
    config = {"name": "spectrum", "prior": prior, "g": 0.5, "c2": 0.3, "orthogonality": 0.7, "decay": 2.0}
    method = build_method({"penalty": config})
    model = Model(tied=True)
    method.penalty.parametrise(model)
    factors = list(model.parameters())
    with torch.no_grad():
        for factor in factors:
            factor += 0.1 * torch.randn_like(factor)
    h, y = torch.randn(9, 5, dtype=torch.float64), torch.randint(13, (9,))
    loss = output_loss(method, None, h, model.output_weight, y).loss
    u, sigma, v = factors
    z = h @ (u @ torch.diag(sigma) @ v.T).T
    expected = nn.functional.cross_entropy(z, y) + spectrum.reference(u, sigma, v, 0.7, 2.0, prior, 0.5, 0.3)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    for a, b in zip(torch.autograd.grad(loss, factors), torch.autograd.grad(expected, factors), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_a_plain_matrix_is_refused():
    method = build_method({"penalty": {"name": "spectrum"}})
    with pytest.raises(ValueError, match="parametrise"):
        output_loss(method, None, torch.randn(2, 3), torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1]))


@pytest.mark.parametrize(
    "part", [{"gate": {"name": "freeze"}}, {"embedding_update": {"name": "separated", "reading": "skip"}}]
)
def test_freezing_and_separated_embeddings_are_refused(part):
    with pytest.raises(ValueError, match="no rows to leave alone"):
        build_method({"penalty": {"name": "spectrum"}} | part)
