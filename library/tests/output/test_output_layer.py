"""The output layer, compared with plain autograd over all logits: every combination, float64, odd sizes."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from methods_by_name import build_method
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from waits import name_of, waits

from raretok.methods import (
    TrainingFacts,
    agg,
    contrastive,
    cosreg,
    cross_entropy,
    softminus,
    threshold,
    unlikelihood,
    z_loss,
)
from raretok.output import chunk_loss, fused_gradient, gated_gradient, output_layer, softmax_gradient, target_places
from raretok.output.output_layer import output_loss

TOLERANCE = {"rtol": 0, "atol": 1e-12}
TYPES = 23
GATES = {
    "none": None,
    "agg": {"name": "agg", "alpha": 0.9, "memory": 3},
    "no_g1": {"name": "agg", "alpha": 0.9, "memory": 3, "g1": False},
    "no_g2": {"name": "agg", "alpha": 0.9, "memory": 3, "g2": False},
    "static": {"name": "agg", "alpha": 0.9, "static": True},
    "printed_divisor": {"name": "agg", "alpha": 0.9, "memory": 3, "divisor": "memory"},
    "freeze": {"name": "freeze", "share": 0.4},
    "freeze_b": {"name": "freeze", "part": "b", "share": 0.4},
    "freeze_c": {"name": "freeze", "part": "c", "share": 0.4},
    "freeze_bc": {"name": "freeze", "part": "bc", "share": 0.4},
    "freeze_until": {"name": "freeze", "part": "bc", "share": 0.4, "until": 1},
    "eq15": {"name": "agps", "rare_from": 9, "mu_1": 40.0, "mu_2": 9.0},
    "alg1": {"name": "agps", "rare_from": 9, "mu_1": 40.0, "mu_2": 9.0, "reading": "alg1"},
}
# The loss of every position, from z, y, h and W.
LOSSES = {
    "cross_entropy": ({}, lambda z, y, h, w: cross_entropy.reference(z, y)),
    "smoothing": (
        {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
        lambda z, y, h, w: cross_entropy.reference(z, y, 0.1),
    ),
    "temperature": ({"training_temperature": 0.7}, lambda z, y, h, w: cross_entropy.reference(0.7 * z, y)),
    "threshold": ({"loss": {"name": "threshold", "margin": 1}}, lambda z, y, h, w: threshold.reference(z, y, 1.0)),
    "detached_under": (
        {"loss": {"name": "threshold", "margin": 1, "detach_under": True}},
        lambda z, y, h, w: threshold.reference(z, y, 1.0, detach_under=True),
    ),
    "threshold_temperature": (
        {"loss": {"name": "threshold", "margin": 1}, "training_temperature": 0.5},
        lambda z, y, h, w: threshold.reference(0.5 * z, y, 1.0),
    ),
    "adversarial": (
        {"perturbation": {"name": "adversarial", "alpha": 0.05}, "training_temperature": 0.9},
        lambda z, y, h, w: cross_entropy.reference(0.9 * worst_case(z, y, h, w, 0.05), y),
    ),
    "softminus": (
        {"loss": {"name": "softminus", "margin": 1}},
        lambda z, y, h, w: softminus.reference(z, y, 1.0),
    ),
    "softminus_c": (
        {"loss": {"name": "softminus", "margin": 0.5, "c": 2.0}},
        lambda z, y, h, w: softminus.reference(z, y, 0.5, 2.0),
    ),
    "softminus_detached": (
        {"loss": {"name": "softminus", "margin": 2.0, "detach_threshold": True}},
        lambda z, y, h, w: softminus.reference(z, y, 2.0, detach_threshold=True),
    ),
    "smoothing_temperature": (
        {"loss": {"name": "cross_entropy", "label_smoothing": 0.2}, "training_temperature": 0.6},
        lambda z, y, h, w: cross_entropy.reference(0.6 * z, y, 0.2),
    ),
}
PENALTIES = {
    "none": None,
    "unlikelihood": {"name": "unlikelihood", "alpha": 0.8},
    "gated_unlikelihood": {"name": "unlikelihood", "alpha": 0.8, "gated": True},
    "z_loss": {"name": "z_loss", "strength": 0.3},
    "cosreg": {"name": "cosreg", "gamma": 0.6},
}


def worst_case(z, y, h, w, alpha):
    """Logits whose target's embedding is perturbed against h; its norm has no gradient."""
    radius = alpha * w.detach()[y].norm(dim=1) * h.norm(dim=1)
    return z.scatter_add(1, y[:, None], -radius[:, None])


@dataclass
class Case:
    """Inputs of the layer: B x T positions, some of them padding."""

    h: torch.Tensor
    w: torch.Tensor
    b: torch.Tensor | None
    x: torch.Tensor
    y: torch.Tensor
    padding: int | None
    leaves: list = field(init=False)

    def __post_init__(self):
        self.leaves = [tensor for tensor in (self.h, self.w, self.b) if tensor is not None]


def random_case(seed, sequences=3, context=7, width=5, bias=True, padding=True, types=TYPES) -> Case:
    generator = torch.Generator().manual_seed(seed)
    double = {"generator": generator, "dtype": torch.float64}
    # Few distinct tokens, so that sequences repeat some and some are rare.
    x = (torch.rand(sequences, context + 1, generator=generator) ** 2 * types).long()
    y = x[:, 1:].clone()
    if padding:
        y[0, context // 2 :] = 1
    return Case(
        torch.randn(sequences, context, width, **double).requires_grad_(),
        torch.randn(types, width, **double).requires_grad_(),
        torch.randn(types, **double).requires_grad_() if bias else None,
        x[:, :-1],
        y,
        1 if padding else None,
    )


def started_gate(method, case, steps=2):
    """The gate's state after counting other targets and then the case's; None without a gate."""
    if method.gate is None:
        return None
    counts = np.maximum(0, 60 - 3 * np.arange(TYPES))
    state = method.gate.start(TrainingFacts(counts, (0, 1), tokens_per_step=21, steps_per_epoch=4))
    for step in range(steps):
        state.begin_step(torch.arange(step, 5))
    targets = case.y.flatten()
    state.begin_step(targets if case.padding is None else targets[targets != case.padding])
    return state


def literal(case, gate, position_loss, penalty):
    """The loss by plain autograd over all logits: a copy of them whose W is gated entry by entry, as in Eq. 9."""
    kept = torch.ones_like(case.y, dtype=torch.bool) if case.padding is None else case.y != case.padding
    h, y = case.h[kept], case.y[kept]
    factor = torch.ones(len(y), TYPES, dtype=torch.float64)
    gating = gate.gates(y) if gate is not None else None
    if gating is not None:
        gates, classes = gating
        for t in range(len(y)):
            factor[t] = gates[classes[t]]
            factor[t, y[t]] = 1
    of_w = factor * (h.detach() @ case.w.T)
    z = h @ case.w.detach().T + of_w - of_w.detach()
    if case.b is not None:
        z = z + case.b
    loss = position_loss(z, y, h, case.w).mean()
    if penalty is not None and penalty["name"] == "unlikelihood":
        plain = case.h @ case.w.T + (0 if case.b is None else case.b)
        logits = plain.index_put((kept,), z) if penalty.get("gated") else plain
        term = unlikelihood.reference(logits, case.y, case.x, penalty["alpha"], case.padding)
        loss = loss + term[kept].mean()
    elif penalty is not None and penalty["name"] == "z_loss":
        plain = h @ case.w.T + (0 if case.b is None else case.b)
        loss = loss + z_loss.reference(plain, penalty["strength"]).mean()
    elif penalty is not None:
        loss = loss + cosreg.reference(case.w, penalty["gamma"])
    return loss


def assert_same(ours, theirs, leaves):
    """Equal values, and equal gradients of all leaves."""
    torch.testing.assert_close(ours.detach(), theirs.detach(), **TOLERANCE)
    expected = torch.autograd.grad(theirs, leaves)
    for mine, other in zip(torch.autograd.grad(ours, leaves), expected, strict=True):
        torch.testing.assert_close(mine, other, **TOLERANCE)


def run(case, config, gate_name="none", penalty_name="none", **options):
    """The fast form's result, and its gate's state."""
    parts = dict(config)
    if GATES[gate_name]:
        parts["gate"] = GATES[gate_name]
    if PENALTIES[penalty_name]:
        parts["penalty"] = PENALTIES[penalty_name]
    method = build_method(parts)
    gate = started_gate(method, case)
    result = output_loss(
        method, gate, case.h, case.w, case.y, inputs=case.x, bias=case.b, padding=case.padding, **options
    )
    return result, gate


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """The code that a GPU compiles, run uncompiled."""
    monkeypatch.setitem(gated_gradient.HELD, "cpu", 60)
    monkeypatch.setattr(output_layer, "FUSED_DEVICES", ("cpu",))
    monkeypatch.setattr(fused_gradient, "fusion", fused_gradient.Fusion())
    monkeypatch.setattr(torch, "compile", lambda function: function)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gate", GATES)
def test_every_combination_equals_plain_autograd(monkeypatch, gate, loss, penalty):
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 4)
    monkeypatch.setattr(chunk_loss, "ROWS", 3)
    config, position_loss = LOSSES[loss]
    for seed, (bias, padding) in enumerate([(True, True), (False, False), (False, True)]):
        case = random_case(seed, bias=bias, padding=padding)
        result, state = run(case, config, gate, penalty)
        assert_same(result.loss, literal(case, state, position_loss, PENALTIES[penalty]), case.leaves)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    "loss", ["cross_entropy", "smoothing", "threshold", "detached_under", "softminus", "softminus_detached"]
)
@pytest.mark.parametrize("gate", ["none", "agg", "freeze_bc"])
def test_closed_forms_on_a_gpu_equal_plain_autograd(monkeypatch, as_on_a_gpu, gate, loss, penalty):
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 4)
    config, position_loss = LOSSES[loss]
    case = random_case(3)
    result, state = run(case, config, gate, penalty)
    assert_same(result.loss, literal(case, state, position_loss, PENALTIES[penalty]), case.leaves)


def test_contrastive_negatives_are_the_whole_micro_batch_without_padding(monkeypatch):
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 2)
    case = random_case(14, bias=False)
    result, _ = run(case, {"loss": {"name": "contrastive"}})
    kept = case.y != case.padding
    assert_same(result.loss, contrastive.reference(case.h[kept], case.w, case.y[kept]).mean(), case.leaves)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sequences=st.integers(1, 4),
    context=st.integers(1, 9),
    width=st.integers(1, 6),
    at_once=st.integers(1, 40),
    bias=st.booleans(),
    padding=st.booleans(),
    gate=st.sampled_from(sorted(GATES)),
    loss=st.sampled_from(sorted(LOSSES)),
    penalty=st.sampled_from(sorted(PENALTIES)),
)
def test_any_sizes(seed, sequences, context, width, at_once, bias, padding, gate, loss, penalty):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_layer, "chunk_positions", lambda *_: at_once)
        patch.setattr(chunk_loss, "ROWS", 5)
        case = random_case(seed, sequences, context, width, bias, padding)
        if padding and (case.y == 1).all():
            case.y[0, 0] = 2
        config, position_loss = LOSSES[loss]
        result, state = run(case, config, gate, penalty)
        assert_same(result.loss, literal(case, state, position_loss, PENALTIES[penalty]), case.leaves)


class FixedGate:
    """A gate state that counts nothing and returns fixed gates."""

    def __init__(self, g1, g2, rare):
        self.stacked, self.is_rare = torch.stack([g1, g2]), rare

    def gates(self, targets):
        return self.stacked, self.is_rare[targets].long()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    positions=st.integers(1, 20),
    types=st.integers(2, 17),
    width=st.integers(1, 6),
    gates_everywhere=st.booleans(),
)
def test_gated_gradients_equal_the_three_logits_of_the_paper(seed, positions, types, width, gates_everywhere):
    """Also with gates on a position's own target, which no paper has."""
    case = random_case(seed, 1, positions, width, bias=False, padding=False, types=types)
    h, y = case.h[0], case.y[0]
    generator = torch.Generator().manual_seed(seed)
    rare = torch.rand(types, generator=generator) < 0.5
    gated = rare | gates_everywhere
    one = torch.ones(types, dtype=torch.float64)
    g1, g2 = (torch.where(gated, torch.rand(types, generator=generator, dtype=torch.float64), one) for _ in range(2))
    ours = torch.autograd.grad(
        output_loss(build_method({}), FixedGate(g1, g2, rare), h, case.w, y).loss, (case.h, case.w)
    )
    printed = agg.reference(h, case.w, y, g1, g2, rare)
    for mine, other in zip(ours, torch.autograd.grad(printed, (case.h, case.w)), strict=True):
        torch.testing.assert_close(mine, other, **TOLERANCE)
    result = output_loss(build_method({}), FixedGate(g1, g2, rare), h, case.w, y)
    torch.testing.assert_close(2 * result.loss.detach(), printed.detach(), **TOLERANCE)


@pytest.mark.parametrize("gate", ["none", "agg", "eq15"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_micro_batches_add_up_to_their_step(gate, penalty):
    """`normaliser` counts the targets of the step; `share` divides what is not a sum over targets."""
    case = random_case(4, sequences=4)
    whole, state = run(case, {}, gate, penalty)
    parts = {"gate": GATES[gate], "penalty": PENALTIES[penalty]}
    method = build_method({kind: part for kind, part in parts.items() if part})
    number = int((case.y != case.padding).sum())
    total, nll = 0, 0
    for rows in (slice(0, 1), slice(1, 4)):
        share = int((case.y[rows] != case.padding).sum()) / number
        result = output_loss(
            method, state, case.h[rows], case.w, case.y[rows], inputs=case.x[rows], bias=case.b,
            padding=case.padding, normaliser=number, share=share,
        )  # fmt: skip
        total, nll = total + result.loss, nll + result.nll
    assert_same(total, whole.loss, case.leaves)
    torch.testing.assert_close(nll, whole.nll, **TOLERANCE)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gate", ["none", "agg"])
def test_nll_is_of_the_plain_logits(gate, loss):
    case = random_case(5)
    result, _ = run(case, LOSSES[loss][0], gate)
    kept = case.y != case.padding
    z = (case.h @ case.w.T + case.b)[kept]
    torch.testing.assert_close(result.nll, F.cross_entropy(z, case.y[kept], reduction="sum").detach(), **TOLERANCE)
    assert not result.nll.requires_grad


@pytest.mark.parametrize("loss", ["cross_entropy", "threshold"])
@pytest.mark.parametrize("gate", ["none", "agg"])
def test_observed_logits_change_nothing_and_have_their_gradient(monkeypatch, gate, loss):
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 5)
    config, position_loss = LOSSES[loss]
    case = random_case(6)
    kept = case.y.flatten() != case.padding
    plain, _ = run(case, config, gate)
    expected = torch.autograd.grad(plain.loss, case.leaves)
    result, _ = run(case, config, gate, need_logits=True)
    result.loss.backward()
    for leaf, other in zip(case.leaves, expected, strict=True):
        assert torch.equal(leaf.grad, other)
    z = (case.h @ case.w.T + case.b).flatten(0, 1)[kept].detach().requires_grad_()
    torch.testing.assert_close(result.logits.detach()[kept], z.detach(), **TOLERANCE)
    d = torch.autograd.grad(position_loss(z, case.y.flatten()[kept], None, None).mean(), z)[0]
    torch.testing.assert_close(result.logits.grad[kept], d, **TOLERANCE)
    assert (result.logits.grad[~kept] == 0).all()


def test_tied_matrix_gets_both_gradients():
    case = random_case(7, bias=False, padding=False)
    h = F.embedding(case.x, case.w)
    ours = torch.autograd.grad(output_loss(build_method({}), None, h, case.w, case.y).loss, case.w)[0]
    h = F.embedding(case.x, case.w)
    plain = F.cross_entropy((h @ case.w.T).flatten(0, 1), case.y.flatten())
    torch.testing.assert_close(ours, torch.autograd.grad(plain, case.w)[0], **TOLERANCE)


def test_scaling_the_loss_scales_its_gradients():
    case = random_case(8)
    once, _ = run(case, {}, "agg")
    thrice, _ = run(case, {}, "agg")
    expected = torch.autograd.grad(once.loss, case.leaves)
    for a, b in zip(expected, torch.autograd.grad(3 * thrice.loss, case.leaves), strict=True):
        torch.testing.assert_close(3 * a, b, **TOLERANCE)


def test_a_frozen_matrix_gets_no_gradient():
    case = random_case(17)
    expected, _ = run(case, {}, "agg")
    case.w.requires_grad_(False)
    result, _ = run(case, {}, "agg")
    assert_same(result.loss, literal(case, None, LOSSES["cross_entropy"][1], None), [case.h, case.b])
    assert torch.equal(result.loss, expected.loss)


def test_chunks_are_few_nearly_equal_and_multiples_of_a_tile():
    assert output_layer.chunk_positions(44_256, 2, "cuda") == 4864
    assert [output_layer.chunk_size(n, 4864) for n in (0, 1, 4864, 4865, 32_768, 33_000)] == [
        128,
        128,
        4864,
        2560,
        4736,
        4736,
    ]
    assert output_layer.chunk_size(9, 4) == 4


def test_the_backward_pass_runs_once():
    case = random_case(9)
    result, _ = run(case, {})
    result.loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="can run only once"):
        result.loss.backward()


def test_without_gradient_the_value_is_the_same():
    case = random_case(10)
    for loss in LOSSES:
        expected, _ = run(case, LOSSES[loss][0], "agg", "unlikelihood")
        with torch.no_grad():
            result, _ = run(case, LOSSES[loss][0], "agg", "unlikelihood")
        assert not result.loss.requires_grad
        torch.testing.assert_close(result.loss, expected.loss.detach(), **TOLERANCE)


def test_a_batch_of_padding_alone_has_no_loss():
    case = random_case(11)
    case.y[:] = 1
    for gate in ("none", "agg"):
        result, _ = run(case, {}, gate)
        assert result.loss.item() == 0
        assert all((gradient == 0).all() for gradient in torch.autograd.grad(result.loss, case.leaves))


def test_the_padding_id_may_lie_outside_the_vocabulary():
    case = random_case(12)
    expected, _ = run(case, {}, "agg")
    case.y[case.y == 1], case.padding = -100, -100
    result, _ = run(case, {}, "agg")
    assert_same(result.loss, expected.loss, case.leaves)


def test_tiny_probabilities_keep_their_gradient():
    """Also, the NLL of a target beyond the range of exp is exact."""
    h = torch.tensor([[1.0]], dtype=torch.float32, requires_grad=True)
    w = torch.tensor([[0.0], [-80.0], [-200.0]], dtype=torch.float32, requires_grad=True)
    result = output_loss(build_method({}), None, h, w, torch.tensor([2]))
    assert result.loss.item() == 200.0
    gradient = torch.autograd.grad(result.loss, w)[0]
    assert math.isclose(gradient[1].item(), math.exp(-80.0), rel_tol=1e-5)


def test_a_penalty_on_tokens_needs_sequences():
    case = random_case(13, bias=False, padding=False)
    method = build_method({"penalty": {"name": "unlikelihood"}})
    with pytest.raises(ValueError, match="needs `inputs`"):
        output_loss(method, None, case.h, case.w, case.y)


@pytest.mark.parametrize("gate", ["none", "agg", "alg1"])
@pytest.mark.parametrize("types", [TYPES])
def test_bf16_is_as_close_to_float64_as_plain_cross_entropy(gate, types):
    """Relative error of every gradient under autocast over several batches, compared with plain autograd's."""
    mine, plain = torch.zeros(3), torch.zeros(3)
    for seed in range(12):
        case = random_case(seed, sequences=8, context=16, width=32, padding=False)
        result, _ = run(case, {}, gate)
        exact = torch.autograd.grad(result.loss, case.leaves)
        reference = F.cross_entropy((case.h @ case.w.T + case.b).flatten(0, 1), case.y.flatten())
        exact_plain = torch.autograd.grad(reference, case.leaves)
        for name in ("h", "w", "b"):
            setattr(case, name, getattr(case, name).detach().float().requires_grad_())
        case.__post_init__()
        with torch.autocast("cpu", torch.bfloat16):
            low, _ = run(case, {}, gate)
            low_plain = F.cross_entropy(F.linear(case.h, case.w, case.b).flatten(0, 1), case.y.flatten())
        assert low.loss.dtype == torch.float32
        for total, value, target in ((mine, low.loss, exact), (plain, low_plain, exact_plain)):
            gradients = torch.autograd.grad(value, case.leaves)
            assert all(gradient.dtype == torch.float32 for gradient in gradients)
            total += torch.stack([(a - b).norm() / b.norm() for a, b in zip(gradients, target, strict=True)]).float()
    assert (mine <= 1.05 * plain).all(), mine / plain


@pytest.mark.parametrize("autocast", [True, False])
def test_in_float16_small_gradients_of_hidden_vectors_survive(autocast):
    """Of well predicted targets, before the factor of a GradScaler reaches them; one of the positions is padding."""
    w = torch.zeros(3, 4)
    w[0, 0], w[1:, 1] = 24.0, 1.0
    w, h = w if autocast else w.half(), torch.eye(4)[[0, 0]].half().requires_grad_()
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        loss = output_loss(build_method({}), None, h, w, torch.tensor([0, -100]), padding=-100).loss
    (gradient,) = torch.autograd.grad(65536 * loss, h)
    expected = torch.zeros(2, 4)
    expected[0, 1] = 65536 * 2 * math.exp(-24.0)
    torch.testing.assert_close(gradient, expected.half(), rtol=1e-2, atol=0)


@pytest.mark.parametrize("autocast", [True, False])
def test_in_float16_the_tail_has_a_gradient(autocast):
    """Each of 999 types has a probability of 2e-10, which float16 rounds to 0."""
    w = torch.zeros(1000, 4)
    w[0, 0] = 22.0
    w = (w if autocast else w.half()).requires_grad_()
    h = torch.eye(4, dtype=w.dtype)[:1]
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        loss = output_loss(build_method({}), None, h, w, torch.tensor([0])).loss
    (gradient,) = torch.autograd.grad(65536 * loss, w)
    expected = torch.full((999,), 65536 * math.exp(-22.0)).to(w.dtype)
    torch.testing.assert_close(gradient[1:, 0], expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_form_for_the_compiler_works_in_place(as_on_a_gpu, smoothing):
    z, targets = torch.randn(5, 9, dtype=torch.bfloat16), torch.arange(5)
    expected = softmax_gradient.cross_entropy_gradient(z.float(), targets, smoothing)
    nll, _ = fused_gradient.softmax_gradient(z, z.gather(1, targets[:, None]), targets, smoothing)
    torch.testing.assert_close(nll, expected[1])
    torch.testing.assert_close(z.float(), expected[2], rtol=2**-8, atol=0)


@pytest.mark.parametrize("config", [{}, {"loss": {"name": "threshold", "margin": 1}}])
def test_without_a_compiler_the_loss_still_works(monkeypatch, config):
    def broken(*_):
        raise RuntimeError("no compiler here\nat all")

    fusion = fused_gradient.Fusion()
    monkeypatch.setattr(output_layer, "FUSED_DEVICES", ("cpu",))
    monkeypatch.setattr(fused_gradient, "fusion", fusion)
    monkeypatch.setattr(torch, "compile", lambda form: broken)
    case = random_case(16)
    with pytest.warns(UserWarning, match=r"torch.compile does not work here \(no compiler here\)"):
        result, state = run(case, config, "agg")
    reference = LOSSES["threshold" if config else "cross_entropy"][1]
    assert_same(result.loss, literal(case, state, reference, None), case.leaves)
    assert not fusion.works


@pytest.mark.parametrize("penalty", [None, {"name": "unlikelihood"}])
@pytest.mark.parametrize("loss", ["smoothing", "threshold"])
def test_the_compiled_passes_equal_the_uncompiled_ones(monkeypatch, loss, penalty):
    """With a real compiler, for the CPU."""
    monkeypatch.setattr(fused_gradient, "fusion", fused_gradient.Fusion())
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 16)
    case = random_case(19)
    method = build_method(LOSSES[loss][0] | ({"penalty": penalty} if penalty else {}))

    def found():
        result = output_loss(
            method, None, case.h, case.w, case.y, inputs=case.x, bias=case.b, padding=case.padding, observe=True
        )
        return [result.loss, result.observed.entropy, *torch.autograd.grad(result.loss, case.leaves)]

    expected = found()
    monkeypatch.setattr(output_layer, "FUSED_DEVICES", ("cpu",))
    compiled = found()
    assert fused_gradient.fusion.works
    torch.testing.assert_close(compiled, expected, **TOLERANCE)


class Waits(TorchDispatchMode):
    """Records operations that would make the host wait for a GPU."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if waits(func, args):
            self.seen.append(name_of(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("gate", GATES)
def test_only_places_wait_for_the_device(monkeypatch, gate, penalty):
    """Loss and gradients of every kind of method; `Places` fetches all that the host needs at once."""
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: 4)
    asked = []
    monkeypatch.setattr(target_places.ToHost, "wait", lambda self: asked.append(1) or self.copy)
    for config in [*(config for config, _ in LOSSES.values()), {"loss": {"name": "contrastive"}}]:
        if gate != "none" and config.get("loss", {}).get("name") == "contrastive":
            continue
        case, asked[:] = random_case(18), []
        parts = {"gate": GATES[gate], "penalty": PENALTIES[penalty]}
        method = build_method(config | {kind: part for kind, part in parts.items() if part})
        state = started_gate(method, case)
        known = target_places.Places(state, case.y, case.padding)
        assert not asked
        _ = known.targets, known.number
        if known.has_gates:
            _ = known.gates, known.classes, known.columns, known.chosen(slice(0, 1))
        assert len(asked) == 1
        with Waits() as waits:
            result = output_loss(
                method, state, case.h, case.w, case.y, inputs=case.x, bias=case.b, padding=case.padding, places=known
            )
            result.loss.backward()
        assert waits.seen == []
