"""Options of `OutputLoss`: weights, reductions, scale, soft cap, statistics, frozen heads.

Each is compared with plain autograd over all logits, in float64.
"""

import math
import pickle
import subprocess
import sys

import pytest
import torch
from test_output_loss import COUNTS, EXACT, assert_same, batch, gradients
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from raretok import (
    AGG,
    AdaptiveTraining,
    Adversarial,
    CosReg,
    CrossEntropy,
    Freeze,
    LogitAdjustment,
    MuLoss,
    OutputLoss,
    PowerLawDecay,
    Softminus,
    Threshold,
    UnigramDivergence,
    Unlikelihood,
    ZLoss,
)
from raretok.methods import softminus, threshold, unlikelihood, z_loss
from raretok.output import chunk_loss, fused_gradient, output_layer

# Parts, and the loss of each position from z (n x V), y (n) and the positions in 2 x 7 sequences x.
LOSSES = {
    "plain": ({}, lambda z, y, at, x: F.cross_entropy(z, y, reduction="none")),
    "smoothed": (
        {"loss": CrossEntropy(label_smoothing=0.1)},
        lambda z, y, at, x: F.cross_entropy(z, y, reduction="none", label_smoothing=0.1),
    ),
    "threshold": ({"loss": Threshold(margin=1.0)}, lambda z, y, at, x: threshold.reference(z, y, 1.0)),
    "under": (
        {"loss": Threshold(margin=1.0, detach_under=True)},
        lambda z, y, at, x: threshold.reference(z, y, 1.0, detach_under=True),
    ),
    "softminus": ({"loss": Softminus(margin=1.0)}, lambda z, y, at, x: softminus.reference(z, y, 1.0)),
    "z_loss": (
        {"penalty": ZLoss(0.3)},
        lambda z, y, at, x: F.cross_entropy(z, y, reduction="none") + z_loss.reference(z, 0.3),
    ),
    "unlikelihood": (
        {"loss": Threshold(margin=2.0), "penalty": Unlikelihood(0.7)},
        lambda z, y, at, x: threshold.reference(z, y, 2.0) + of_sequences(z, y, at, x),
    ),
}
GATES = {"none": None, "freeze": Freeze(part="bc", share=0.5), "agg": AGG(alpha=0.3, memory=2)}


def of_sequences(z, y, at, x):
    """Unlikelihood at the positions `at`."""
    whole = z.new_zeros(x.numel(), z.shape[1]).index_copy(0, at, z)
    y = torch.full((x.numel(),), -100).index_copy(0, at, y)
    return unlikelihood.reference(whole.view(*x.shape, -1), y.view(x.shape), x, 0.7, padding=-100).flatten()[at]


def literal(hidden, weight, bias, targets, position_loss, gate=None, scale=1.0, cap=None, inputs=None):
    """The loss of every target, n, by plain autograd; the gate acts on a copy of the logits, entry by entry."""
    at = (targets.flatten() != -100).nonzero().flatten()
    h, y = hidden.flatten(0, -2)[at], targets.flatten()[at]
    gating = None if gate is None else gate.gates(y)
    factor = torch.ones(len(y), len(weight), dtype=torch.float64)
    if gating is not None:
        factor = gating[0].double()[gating[1]].scatter(1, y[:, None], 1.0)
    of_w = factor * (h.detach() @ weight.T)
    z = h @ weight.detach().T + of_w - of_w.detach()
    z = scale * (z + bias)
    z = z if cap is None else cap * torch.tanh(z / cap)
    return position_loss(z, y, at, inputs)


def setting(seed=1):
    hidden, weight, bias, targets = batch(seed)
    generator = torch.Generator().manual_seed(seed)
    token_weights = torch.randn(targets.shape, generator=generator, dtype=torch.float64)
    inputs = torch.randint(len(weight), targets.shape, generator=generator)
    return hidden, weight, bias, targets, token_weights, inputs


def allowed(name, gate):
    """Whether the literal form can express this combination: it cannot leave a penalty ungated."""
    return gate == "none" or "penalty" not in LOSSES[name][0]


CASES = [(name, gate) for name in LOSSES for gate in GATES if allowed(name, gate)]
LOGITS = {"raw": (1.0, None), "scaled": (0.3, None), "capped": (1.0, 1.5), "both": (1.7, 2.5)}


@pytest.mark.parametrize(("name", "gate"), CASES)
@pytest.mark.parametrize("logits", LOGITS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_scale_cap_and_reduction_equal_autograd(monkeypatch, name, gate, logits, reduction):
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 4)
    monkeypatch.setattr(chunk_loss, "ROWS", 3)
    (parts, position_loss), (scale, cap) = LOSSES[name], LOGITS[logits]
    hidden, weight, bias, targets, token_weights, inputs = setting()
    criterion = OutputLoss(
        **parts, gate=GATES[gate], counts=COUNTS, reduction=reduction, logit_scale=scale, soft_cap=cap
    )
    leaves = hidden, weight, bias
    incoming = torch.randn(targets.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for weights in (None, token_weights):
        ours = criterion(hidden, weight, targets, bias=bias, inputs=inputs, token_weights=weights)
        theirs = literal(hidden, weight, bias, targets, position_loss, criterion._gate, scale, cap, inputs)
        real = targets != -100
        theirs = theirs if weights is None else theirs * weights[real]
        if reduction == "none":
            assert ours.shape == targets.shape
            assert (ours[~real] == 0).all()
            torch.testing.assert_close(ours[real], theirs, **EXACT)
            ours, theirs = (ours * incoming).sum(), (theirs * incoming[real]).sum()
        else:
            theirs = theirs.mean() if reduction == "mean" else theirs.sum()
        assert_same(gradients(ours, *leaves), gradients(theirs, *leaves))


def on_a_gpu(monkeypatch, compiles=True):
    """Use the code that a GPU compiles, uncompiled, or its fallback without a compiler."""
    fusion = fused_gradient.Fusion()
    fusion.works = compiles
    monkeypatch.setattr(output_layer, "FUSED_DEVICES", ("cpu",))
    monkeypatch.setattr(fused_gradient, "fusion", fusion)
    monkeypatch.setattr(torch, "compile", lambda function: function)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("cap", [None, 1.5])
@pytest.mark.parametrize("compiles", [True, False])
def test_weights_and_cap_in_the_form_for_the_compiler(monkeypatch, name, cap, compiles):
    """The code that a GPU compiles, run uncompiled, and its fallback without a compiler."""
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 4)
    on_a_gpu(monkeypatch, compiles)
    hidden, weight, bias, targets, token_weights, inputs = setting()
    parts, position_loss = LOSSES[name]
    for weights in (None, token_weights):
        ours = OutputLoss(**parts, soft_cap=cap)(
            hidden, weight, targets, bias=bias, inputs=inputs, token_weights=weights
        )
        theirs = literal(hidden, weight, bias, targets, position_loss, cap=cap, inputs=inputs)
        theirs = theirs if weights is None else theirs * weights[targets != -100]
        assert_same(gradients(ours, hidden, weight, bias), gradients(theirs.mean(), hidden, weight, bias))


@pytest.mark.parametrize("name", ["plain", "threshold"])
def test_weighted_micro_batches_add_up(name):
    """The mean divides by the targets of the step, not by their weights."""
    hidden, weight, bias, targets, token_weights, _ = setting()
    parts, position_loss = LOSSES[name]
    criterion = OutputLoss(**parts, soft_cap=2.0)
    criterion.begin_step([targets[:1], targets[1:]])
    ours = sum(
        criterion(hidden[rows], weight, targets[rows], bias=bias, token_weights=token_weights[rows])
        for rows in (slice(0, 1), slice(1, 2))
    )
    theirs = literal(hidden, weight, bias, targets, position_loss, cap=2.0) * token_weights[targets != -100]
    assert_same(gradients(ours, hidden, weight, bias), gradients(theirs.mean(), hidden, weight, bias))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_scale_and_cap_act_in_evaluation_too(reduction):
    hidden, weight, bias, targets, token_weights, _ = setting()
    criterion = OutputLoss(Threshold(margin=0.5), logit_scale=0.5, soft_cap=2.0, reduction=reduction).eval()
    theirs = literal(hidden, weight, bias, targets, LOSSES["plain"][1], scale=0.5, cap=2.0)
    nll = theirs.detach().mean()
    theirs = theirs * token_weights[targets != -100]
    ours = criterion(hidden, weight, targets, bias=bias, token_weights=token_weights)
    if reduction == "none":
        torch.testing.assert_close(ours[targets != -100], theirs, **EXACT)
    else:
        assert_same(
            gradients(ours, hidden, weight, bias),
            gradients(theirs.mean() if reduction == "mean" else theirs.sum(), hidden, weight, bias),
        )
    torch.testing.assert_close(criterion.nll, nll, **EXACT)


def test_a_given_number_divides_the_sum():
    """Like num_items_in_batch of transformers, in training and evaluation."""
    hidden, weight, bias, targets, *_ = setting()
    criterion = OutputLoss()
    total = 12 * criterion(hidden, weight, targets, bias=bias).item()
    for part in (criterion, criterion.eval()):
        assert part(hidden, weight, targets, bias=bias, number=40).item() == pytest.approx(total / 40, rel=1e-12)
        assert part.nll.item() == pytest.approx(total / 12, rel=1e-12)


@pytest.mark.parametrize("number", [0, torch.tensor(0)])
@pytest.mark.parametrize("parts", [{}, {"penalty": MuLoss(0.1)}])
def test_a_given_number_of_0_gives_gradients_of_0(parts, number):
    """transformers' Trainer passes it for a step whose labels are all ignored."""
    hidden, weight, bias, targets, *_ = setting()
    loss = OutputLoss(**parts)(hidden, weight, torch.full_like(targets, -100), bias=bias, number=number)
    assert [value.abs().max().item() for value in gradients(loss, hidden, weight, bias)] == [0, 0, 0, 0]


@pytest.mark.parametrize("parts", [{}, {"loss": Threshold(margin=1.0)}, {"penalty": ZLoss(0.1)}])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_observed_statistics_are_of_the_models_own_logits(monkeypatch, form, parts, reduction):
    if form == "gpu":
        on_a_gpu(monkeypatch)
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 5)
    monkeypatch.setattr(chunk_loss, "ROWS", 3)
    hidden, weight, bias, targets, token_weights, _ = setting()
    options = parts | {"logit_scale": 1.3, "soft_cap": 3.0, "reduction": reduction}
    criterion, blind = OutputLoss(**options, observe=True), OutputLoss(**options)
    ours = criterion(hidden, weight, targets, bias=bias, token_weights=token_weights)
    others = blind(hidden, weight, targets, bias=bias, token_weights=token_weights)
    assert_same(gradients(ours.sum(), hidden, weight), gradients(others.sum(), hidden, weight))
    assert blind.observed is None
    z = 3.0 * torch.tanh(1.3 * (hidden @ weight.T + bias).detach() / 3.0)
    real, log_p = targets != -100, z.log_softmax(-1)
    seen = criterion.observed
    expected = log_p.gather(-1, targets.clamp_min(0)[..., None]).squeeze(-1)
    torch.testing.assert_close(seen.log_probability, expected.where(real, 0), **EXACT)
    torch.testing.assert_close(seen.entropy, (-(log_p.exp() * log_p).sum(-1)).where(real, 0), **EXACT)
    assert torch.equal(seen.is_best, (z.argmax(-1) == targets) & real)
    assert seen.is_best.any()
    with torch.no_grad():
        criterion(hidden, weight, targets.where(targets == 3, -100), bias=bias)
    assert (criterion.observed.log_probability != 0).sum() == (targets == 3).sum()


@pytest.mark.parametrize("parts", [{}, {"loss": Threshold(margin=1.0)}, {"perturbation": Adversarial(alpha=0.1)}])
@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_types_that_a_bias_excludes_do_not_change_the_entropy(monkeypatch, form, parts):
    """Such as padding rows: their logits are -inf."""
    if form == "gpu":
        on_a_gpu(monkeypatch)
    hidden, weight, bias, _, *_ = setting()
    targets = torch.arange(14).view(2, 7) % 9
    with torch.no_grad():
        bias[10:] = -torch.inf
    criterion = OutputLoss(**parts, observe=True)
    criterion(hidden, weight, targets, bias=bias)
    expected = torch.distributions.Categorical(logits=hidden @ weight[:10].T + bias[:10]).entropy()
    torch.testing.assert_close(criterion.observed.entropy, expected.detach(), **EXACT)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_inputs_may_be_padded_with_the_ignored_index(monkeypatch, form, gated):
    """As labels are. 0 stays a candidate after padding, which is read as row 0."""
    if form == "gpu":
        on_a_gpu(monkeypatch)
    hidden, weight, bias, targets, _, inputs = setting()
    inputs[0, :3], inputs[0, 3], inputs[1, -2:] = -100, 0, -100
    criterion = OutputLoss(Threshold(margin=2.0), penalty=Unlikelihood(0.7, gated=gated))
    plain = OutputLoss(penalty=Unlikelihood(0.7, gated=gated))
    for ours, position_loss in (
        (criterion, LOSSES["unlikelihood"][1]),
        (plain, lambda z, y, at, x: F.cross_entropy(z, y, reduction="none") + of_sequences(z, y, at, x)),
    ):
        theirs = literal(hidden, weight, bias, targets, position_loss, inputs=inputs).mean()
        ours = ours(hidden, weight, targets, bias=bias, inputs=inputs)
        assert_same(gradients(ours, hidden, weight, bias), gradients(theirs, hidden, weight, bias))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_tensors_without_requires_grad_get_no_gradient(monkeypatch, reduction):
    """Their matrix product is not computed."""
    hidden, weight, bias, targets, *_ = setting()
    expected = gradients(
        OutputLoss(reduction=reduction)(hidden, weight, targets, bias=bias).sum(), hidden, weight, bias
    )
    monkeypatch.setattr(output_layer, "accumulate", None)
    frozen = weight.detach(), bias.detach()
    ours = OutputLoss(reduction=reduction)(hidden, frozen[0], targets, bias=frozen[1]).sum()
    assert_same(gradients(ours, hidden), expected[:2])
    monkeypatch.undo()
    of_head = OutputLoss(reduction=reduction)(hidden.detach(), weight, targets, bias=bias).sum()
    assert_same(gradients(of_head, weight, bias), [expected[0], *expected[2:]])


def test_losses_of_positions_can_be_backpropagated_twice():
    """Their gradient is computed in each backward pass."""
    hidden, weight, bias, targets, *_ = setting()
    losses = OutputLoss(Threshold(margin=1.0), reduction="none")(hidden, weight, targets, bias=bias)
    first = torch.autograd.grad(losses.sum(), weight, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(losses.sum(), weight)[0], first, **EXACT)


@pytest.mark.parametrize(
    "parts",
    [
        {"loss": Softminus(margin=1.0, c=2.0)},
        {"loss": Threshold(margin=1.0), "penalty": ZLoss(0.1)},
        {"perturbation": Adversarial(alpha=0.1)},
    ],
)
def test_checkpointing_does_not_compute_the_loss_again(parts):
    """Its hooks see none of the tensors that the loss saves for its own autograd."""
    hidden, weight, bias, targets, *_ = setting()
    criterion, layer = OutputLoss(**parts), torch.eye(hidden.shape[-1], dtype=hidden.dtype, requires_grad=True)
    loss = checkpoint(lambda x: criterion(x @ layer, weight, targets, bias=bias), hidden, use_reentrant=False)
    found = gradients(loss, hidden, weight, bias)
    assert criterion.steps == 1
    assert_same(found, gradients(OutputLoss(**parts)(hidden, weight, targets, bias=bias), hidden, weight, bias))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_are_refused(reduction):
    hidden, weight, _, targets, *_ = setting()
    loss = OutputLoss(reduction=reduction)(hidden, weight, targets).square().sum()
    (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
    # Also of what comes before the hidden vectors, where the gradient would count as a constant.
    x, layer = torch.randn(6, 4, requires_grad=True), torch.randn(4, 16, requires_grad=True)
    hidden, targets = torch.tanh(x @ layer), targets.flatten()[:6]
    loss = OutputLoss(reduction=reduction)(hidden, torch.randn(13, 16, requires_grad=True), targets).sum()
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


SENTENCES = [
    (lambda: OutputLoss(reduction="max"), "reduction is 'max'; it must be one of mean, sum, none"),
    (lambda: OutputLoss(penalty=CosReg(), reduction="sum"), "^CosReg is a penalty on parameters"),
    (lambda: OutputLoss(penalty=MuLoss(), reduction="none"), "^MuLoss is a penalty on parameters"),
    (lambda: OutputLoss(perturbation=Adversarial(alpha=0.1), soft_cap=2.0), "a perturbation is of logits without"),
    (lambda: OutputLoss(Threshold(alpha=0.1), soft_cap=2.0), r"^Threshold\(alpha\) is of logits without a soft cap"),
    *(
        (
            lambda name=name, value=value: OutputLoss(**{name: value}),
            f"^{name} is {value}; it must be above 0 and finite$",
        )
        for name in ("training_temperature", "logit_scale", "soft_cap")
        for value in (0.0, math.nan, math.inf)
    ),
]


@pytest.mark.parametrize(("make", "words"), SENTENCES)
def test_incompatible_options_are_refused(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_penalty_by_counts_is_one_of_positions():
    hidden, weight, _, targets, *_ = setting()
    for loss in (None, LogitAdjustment()):
        criterion = OutputLoss(loss, penalty=UnigramDivergence(0.3), counts=COUNTS, reduction="none")
        losses = criterion(hidden, weight, targets)
        whole = OutputLoss(loss, penalty=UnigramDivergence(0.3), counts=COUNTS)(hidden, weight, targets)
        torch.testing.assert_close(losses.sum() / 12, whole, **EXACT)


COMPILED = """
import torch
from raretok import OutputLoss, Threshold

hidden, weight = (torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in ((2, 7, 5), (13, 5)))
targets = torch.randint(13, (2, 7))

def step(hidden, weight):
    return OutputLoss(Threshold(margin=1.0))(torch.tanh(hidden), weight, targets)

def gradients(form):
    return torch.autograd.grad(form(hidden, weight), (hidden, weight))

for ours, theirs in zip(gradients(torch.compile(step, backend="aot_eager")), gradients(step)):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
torch._dynamo.reset()
try:
    torch.compile(step, fullgraph=True, backend="aot_eager")(hidden, weight)
except torch._dynamo.exc.Unsupported:
    print("refused")
"""


def test_torch_compile_does_not_compile_the_loss():
    """The loss computes its own gradients, so a compiled function has a graph break there and `fullgraph` is refused.

    In its own process, because torch's compiler starts processes and later tests fork.
    """
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.parametrize("gate", GATES)
def test_preparing_targets_changes_nothing(gate):
    found = []
    for prepares in (False, True):
        criterion = OutputLoss(gate=GATES[gate], counts=COUNTS)
        for seed in range(3):
            hidden, weight, _, targets = batch(seed)
            if prepares:
                criterion.prepare(targets)
            criterion(hidden, weight, targets).backward()
            found.append(weight.grad)
    assert_same(found[:3], found[3:])


@pytest.mark.parametrize("loss", [LogitAdjustment(), PowerLawDecay(), AdaptiveTraining()])
def test_a_started_loss_can_be_pickled(loss):
    hidden, weight, _, targets = batch(1)
    criterion = OutputLoss(loss, counts=COUNTS)
    copied = pickle.loads(pickle.dumps(criterion))
    assert copied(hidden, weight, targets) == criterion(hidden, weight, targets)


@pytest.mark.parametrize("penalty", [CosReg(1e3), MuLoss(1e3)])
def test_penalties_on_parameters_are_finite_in_half_precision(penalty):
    """300 rows of one direction: the sum of directions has a squared norm above float16's largest number."""
    weight = (torch.randn(300, 16, generator=torch.Generator().manual_seed(1)) * 0.1 + 1).half()
    hidden, targets = torch.zeros(4, 16).half(), torch.arange(4)
    loss = OutputLoss(penalty=penalty)(hidden, weight, targets)
    torch.testing.assert_close(loss, OutputLoss(penalty=penalty)(hidden.float(), weight.float(), targets))
