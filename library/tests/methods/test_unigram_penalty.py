"""Penalty on closeness to the unigram distribution, compared with its reference, alone and with other parts."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from methods_by_name import build_method

from raretok.methods import TrainingFacts, cross_entropy, unigram
from raretok.methods.unigram import log_unigram
from raretok.output import output_layer
from raretok.output.output_layer import output_loss
from raretok.output.outputs import Outputs


def started(counts, **options):
    """A method whose penalty was started with the counts, as in training."""
    method = build_method({"penalty": {"name": "unigram", **options}, "loss": {"name": "cross_entropy"}})
    facts = TrainingFacts(counts=counts, special=(), tokens_per_step=1, steps_per_epoch=1)
    return dataclasses.replace(method, penalty=method.penalty.start(facts))


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(0)
    h = (2 * torch.randn(33, 5, generator=generator, dtype=torch.float64)).requires_grad_()
    w = torch.randn(13, 5, generator=generator, dtype=torch.float64).requires_grad_()
    b = torch.randn(13, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randint(13, (33,), generator=generator)
    return h, w, b, y, np.array([0, 0, 7, 1, 50, 3, 3, 1000, 2, 9, 0, 4, 20])


@pytest.mark.parametrize("maximum", [100.0, 3.0])
@pytest.mark.parametrize("at_once", [4, 1000])
def test_equals_the_literal_reference(monkeypatch, inputs, at_once, maximum):
    """Value and every gradient, with and without positions beyond the maximum."""
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: at_once)
    h, w, b, y, counts = inputs
    z = h @ w.T + b
    penalty = unigram.reference(z, counts, 0.3, maximum)
    clipped = (penalty == -0.3 * maximum).sum()
    assert (0 < clipped < len(y)) if maximum == 3.0 else clipped == 0
    literal = (cross_entropy.reference(z, y) + penalty).mean()
    method = started(counts, strength=0.3, maximum=maximum)
    ours = output_loss(method, None, h[None], w, y[None], inputs=y[None], bias=b).loss
    expected = [literal.detach(), *torch.autograd.grad(literal, (h, w, b))]
    for a, e in zip([ours.detach(), *torch.autograd.grad(ours, (h, w, b))], expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=1e-12)


def test_is_the_divergence_from_the_smoothed_counts():
    """0 where the model predicts the unigram distribution itself; log V - H(q) against the uniform one."""
    counts = np.array([3, 0, 1])
    q = torch.tensor([4, 1, 2], dtype=torch.float64) / 7
    assert torch.allclose(log_unigram(counts), q.log(), rtol=0, atol=1e-15)
    penalty = started(counts, strength=2.0).penalty
    z = torch.stack([q.log() + 5, torch.zeros(3, dtype=torch.float64)])
    divergence = -penalty.token_loss(Outputs(z, None, None, None)) / 2
    assert divergence[0].item() == pytest.approx(0, abs=1e-14)
    assert divergence[1].item() == pytest.approx(math.log(3) + (q * q.log()).sum().item(), abs=1e-14)


def test_padding_does_not_count(inputs):
    h, w, b, y, counts = inputs
    method = started(counts, strength=0.3)
    plain = output_loss(method, None, h[None], w, y[None], inputs=y[None], bias=b).loss
    longer = torch.cat([h, torch.full((4, 5), 7.0, dtype=torch.float64)])[None]
    padded = torch.cat([y, torch.full((4,), 99)])[None]
    with_padding = output_loss(method, None, longer, w, padded, inputs=padded, bias=b, padding=99).loss
    assert with_padding.item() == pytest.approx(plain.item(), rel=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": -1.0}, "strength must be at least 0"),
        ({"strength": 1.0, "until": 0}, "until must be at least 1 step"),
        ({"strength": 1.0, "maximum": 0.0}, "maximum must be above 0"),
    ],
)
def test_wrong_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build_method({"penalty": {"name": "unigram", **options}})


def test_until_scales_with_the_number_of_steps():
    fields = {field.name: field.metadata for field in dataclasses.fields(unigram.UnigramDivergence)}
    assert fields["until"] == {"scales_with": "steps"}
