"""`token_log_probs` and `token_statistics`: values and gradients against logits held whole."""

import pytest
import torch
from torch.nn import functional as F

import raretok
from raretok import token_log_probs, token_statistics

OPTIONS = [{}, {"logit_scale": 0.5}, {"soft_cap": 2.0}, {"logit_scale": 3.0, "soft_cap": 1.0}]


def sample(types=11, dtype=torch.float64, bias=True, shape=(3, 5)):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(*shape, 4, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.randn(types, 4, generator=generator, dtype=dtype, requires_grad=True)
    added = torch.randn(types, generator=generator, dtype=dtype, requires_grad=True) if bias else None
    targets = torch.randint(types, shape, generator=generator)
    targets[0, :2] = -100
    return hidden, weight, targets, added


def whole(hidden, weight, targets, bias, logit_scale=1.0, soft_cap=None):
    """The same from all logits."""
    z = F.linear(hidden, weight, bias) * logit_scale
    z = z if soft_cap is None else soft_cap * (z / soft_cap).tanh()
    log_p = z.log_softmax(-1)
    real = targets != -100
    log_probs = log_p.gather(-1, targets.clamp_min(0)[..., None])[..., 0] * real
    return log_probs, z.logsumexp(-1) * real, -(log_p.exp() * log_p).sum(-1) * real, z.argmax(-1)


def gradients(value, leaves):
    return torch.autograd.grad(value, [leaf for leaf in leaves if leaf is not None])


def weighted(tensors):
    """A scalar in which every position has a weight of its own."""
    return sum(
        (tensor * torch.linspace(-1, 2 + k, tensor.numel()).view_as(tensor)).sum() for k, tensor in enumerate(tensors)
    )


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_log_probabilities_and_their_gradients(options, bias):
    hidden, weight, targets, added = sample(bias=bias)
    expected = whole(hidden, weight, targets, added, **options)[0]
    found = token_log_probs(hidden, weight, targets, bias=added, **options)
    assert found.shape == targets.shape
    torch.testing.assert_close(found, expected)
    leaves = hidden, weight, added
    for ours, theirs in zip(gradients(weighted([found]), leaves), gradients(weighted([expected]), leaves), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_statistics_and_their_gradients(options, rows, monkeypatch):
    """In chunks of some rows."""
    hidden, weight, targets, bias = sample()
    monkeypatch.setattr(raretok.log_probs, "CELLS", rows * len(weight))
    expected = whole(hidden, weight, targets, bias, **options)
    found = token_statistics(hidden, weight, targets, bias=bias, **options)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    leaves = hidden, weight, bias
    for ours, theirs in zip(
        gradients(weighted(found[:3]), leaves), gradients(weighted(expected[:3]), leaves), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    assert not found.argmax.requires_grad


def test_both_agree_in_low_precision():
    hidden, weight, targets, bias = sample(dtype=torch.bfloat16)
    log_probs = token_log_probs(hidden, weight, targets, bias=bias)
    statistics = token_statistics(hidden, weight, targets, bias=bias)
    assert log_probs.dtype == statistics.log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs, statistics.log_probs, rtol=1e-2, atol=2e-2)
    (log_probs.sum() + statistics.entropy.sum()).backward()
    assert weight.grad.dtype == torch.bfloat16


def test_the_loss_of_dpo():
    """Sums of log-probabilities of sequences in a loss that is not linear in them."""
    hidden, weight, targets, bias = sample(shape=(4, 6))
    reference = torch.tensor([-3.0, -4.0, -2.0, -5.0], dtype=torch.float64)
    losses = []
    for log_probs in (token_log_probs(hidden, weight, targets, bias=bias), whole(hidden, weight, targets, bias)[0]):
        chosen, rejected = (log_probs.sum(-1) - reference).chunk(2)
        losses.append(-F.logsigmoid(0.1 * (chosen - rejected)).mean())
    torch.testing.assert_close(*losses)
    leaves = hidden, weight, bias
    for ours, theirs in zip(*(gradients(loss, leaves) for loss in losses), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_all_positions_ignored():
    hidden, weight, targets, bias = sample()
    nothing = torch.full_like(targets, -100)
    assert token_log_probs(hidden, weight, nothing, bias=bias).abs().sum() == 0
    found = token_statistics(hidden, weight, nothing, bias=bias)
    found.entropy.sum().backward()
    assert weight.grad.abs().sum() == 0


@pytest.mark.parametrize("function", [token_log_probs, token_statistics])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"targets": torch.full((3, 5), 11)}, "a target is 11; it must be below 11"),
        ({"targets": torch.zeros(3, 4, dtype=torch.int64)}, "hidden is 3 x 5 x 4, but targets are 3 x 4"),
        ({"weight": torch.nn.Linear(4, 11)}, "weight is of type Linear; give a tensor, such as its weight"),
        ({"bias": torch.zeros(4)}, "bias is 4; it must be 11, one per row of weight"),
    ],
)
def test_wrong_arguments_are_refused(function, change, words):
    names = dict(zip(("hidden", "weight", "targets", "bias"), sample(dtype=torch.float32), strict=True)) | change
    with pytest.raises(ValueError, match=words):
        function(names.pop("hidden"), names.pop("weight"), names.pop("targets"), **names)
