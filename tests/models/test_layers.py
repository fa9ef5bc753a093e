"""Attention and dropout in bfloat16 on a CPU, compared with torch's in float32."""

import pytest
import torch
from torch.nn import functional as F

from rarepapers.models import layers
from rarepapers.models.layers import attention, dropout

# Relative precision of bfloat16, whose numbers have 8 bits.
BITS = 2**-8


def in_bfloat16():
    return torch.autocast("cpu", torch.bfloat16)


def queries_keys_values(queries, keys):
    """B x H x T x d/H, values that bfloat16 represents exactly."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(3, 2, length, 8) for length in (queries, keys, keys)]
    drawn = [torch.randn(shape, generator=generator).bfloat16().float() for shape in shapes]
    return [tensor.requires_grad_() for tensor in drawn]


@pytest.mark.parametrize("most_keys", [layers.MOST_KEYS, 0])
@pytest.mark.parametrize("kind", ["plain", "causal", "masked"])
def test_attention_in_bfloat16_is_torchs(kind, most_keys, monkeypatch):
    """Values and all three gradients, with few keys and with many, which use torch's kernel."""
    monkeypatch.setattr(layers, "MOST_KEYS", most_keys)
    parts = queries_keys_values(7, 7 if kind == "causal" else 5)
    mask = torch.arange(5)[None] < torch.tensor([[5], [2], [1]]) if kind == "masked" else None
    options = {"mask": None if mask is None else mask[:, None, None], "causal": kind == "causal"}
    push = torch.randn(3, 2, 7, 8, generator=torch.Generator().manual_seed(2))
    expected = attention(*parts, **options)
    gradients = torch.autograd.grad(expected, parts, push)
    with in_bfloat16():
        found = attention(*parts, **options)
    assert found.dtype == torch.bfloat16
    for ours, theirs in zip(
        [found, *torch.autograd.grad(found, parts, push.bfloat16())], [expected, *gradients], strict=True
    ):
        assert (ours.float() - theirs).norm() < 2 * BITS * theirs.norm()


def test_attention_dropout_in_bfloat16_is_unbiased():
    """The mean over many draws equals the value without dropout; a single draw does not."""
    parts = [tensor.detach() for tensor in queries_keys_values(4, 6)]
    torch.manual_seed(1)
    with in_bfloat16():
        whole = attention(*parts).float()
        drawn = torch.stack([attention(*parts, dropout_p=0.3).float() for _ in range(2000)])
    assert not torch.equal(drawn[0], drawn[1])
    assert (drawn.mean(0) - whole).abs().max() < 6 * (drawn.std(0) / 2000**0.5).max()


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_dropout_in_bfloat16_drops_the_share_and_keeps_the_sum(p):
    """Also for a number of entries that is no multiple of four; only kept values have a gradient."""
    torch.manual_seed(1)
    x = torch.ones(401, 503, requires_grad=True)
    with in_bfloat16():
        y = dropout(x, p, True)
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert y.eq(0).float().mean().item() == pytest.approx(p, abs=5 * deviation)
    # Neighbours share a random word, but are dropped independently.
    pairs = (y[:, 1:].eq(0) & y[:, :-1].eq(0)).float().mean().item()
    assert pairs == pytest.approx(p * p, abs=10 * deviation)
    assert torch.equal(y, y.ne(0) * torch.tensor(1 / (1 - p)))
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_dropout_elsewhere_is_torchs_bit_for_bit():
    x = torch.randn(5, 7)
    for p, training in ((0.1, True), (0.0, True), (0.5, False)):
        torch.manual_seed(3)
        expected = F.dropout(x, p, training) if p else x
        torch.manual_seed(3)
        assert torch.equal(dropout(x, p, training), expected)
    with in_bfloat16():
        assert torch.equal(dropout(x, 0.5, False), x)
