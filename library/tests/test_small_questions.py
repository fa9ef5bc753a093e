"""Values at the edge that users of other losses pass: whole smoothing, small integers, torch.func."""

import pytest
import torch
from torch.nn import functional as F

from raretok import AGG, CrossEntropy, OutputLoss, Unlikelihood

TYPES = 11
COUNTS = torch.arange(TYPES, 0, -1)


def sample(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 6, 4, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.randn(TYPES, 4, generator=generator, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(TYPES, (2, 6), generator=generator)


def test_whole_label_smoothing_equals_torchs():
    hidden, weight, targets = sample()
    ours = OutputLoss(CrossEntropy(label_smoothing=1.0))(hidden, weight, targets)
    theirs = F.cross_entropy((hidden @ weight.T).flatten(0, 1), targets.flatten(), label_smoothing=1.0)
    torch.testing.assert_close(ours, theirs)
    for found, expected in zip(
        torch.autograd.grad(ours, [hidden, weight]), torch.autograd.grad(theirs, [hidden, weight]), strict=True
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32])
@pytest.mark.parametrize("announced", [False, True])
def test_small_integers_are_targets_and_inputs(dtype, announced):
    """An id of 156 is none of -100 in eight bits without sign."""
    hidden, weight, targets = sample()
    losses = []
    for kind in (torch.int64, dtype):
        criterion = OutputLoss(gate=AGG(alpha=1.0, memory=2), penalty=Unlikelihood(), counts=COUNTS)
        if announced:
            criterion.begin_step([targets.to(kind)])
        criterion.prepare(targets.to(kind))
        loss = criterion(hidden, weight, targets.to(kind), inputs=targets.to(kind))
        losses.append((loss, *torch.autograd.grad(loss, [hidden, weight])))
        assert criterion.rare().any()
    for found, expected in zip(*losses, strict=True):
        assert torch.equal(found, expected)


def test_a_small_id_is_no_padding():
    types = 200
    hidden, weight = torch.randn(1, 2, 4), torch.randn(types, 4)
    targets = torch.tensor([[156, 3]])
    found = [OutputLoss()(hidden, weight, targets.to(kind)) for kind in (torch.uint8, torch.int64)]
    assert torch.equal(*found)
    padded = torch.tensor([[-100, 3]])
    found = [OutputLoss()(hidden, weight, padded.to(kind)) for kind in (torch.int8, torch.int64)]
    assert torch.equal(*found)


def test_transforms_of_torch_func_are_refused_in_one_sentence():
    hidden, weight, targets = sample()
    criterion = OutputLoss()
    for transform in (torch.func.grad, torch.func.grad_and_value):
        with pytest.raises(ValueError, match=r"^OutputLoss does not work under torch.func; use backward\(\) or"):
            transform(lambda w: criterion(hidden.detach(), w, targets))(weight)
    with pytest.raises(ValueError, match=r"does not work under torch\.func"):
        torch.func.vmap(lambda h: criterion(h[None], weight, targets[:1]))(hidden)
    # What the sentence says instead.
    (found,) = torch.autograd.grad(criterion(hidden, weight, targets), [weight])
    expected = torch.func.grad(lambda w: F.cross_entropy((hidden @ w.T).flatten(0, 1), targets.flatten()))(weight)
    torch.testing.assert_close(found, expected)
