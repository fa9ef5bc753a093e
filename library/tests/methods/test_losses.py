"""Fast form of each method, compared with its literal reference: value and every gradient, float64, odd sizes."""

import math

import pytest
import torch
from methods_by_name import build_method

from raretok.methods import (
    TrainingFacts,
    adaptive_training,
    adversarial,
    contrastive,
    cosreg,
    cross_entropy,
    logit_adjustment,
    mu_centering,
    mu_loss,
    power_law,
    softminus,
    threshold,
    unigram,
    unlikelihood,
    z_loss,
)
from raretok.methods.unigram import log_unigram
from raretok.output import output_layer
from raretok.output.output_layer import output_loss
from raretok.output.outputs import Outputs

TOLERANCE = {"rtol": 0, "atol": 1e-12}


def random_inputs(seed, positions, types, width, spread=2.0):
    """h, W (both with gradient) and y."""
    generator = torch.Generator().manual_seed(seed)
    h = (spread * torch.randn(positions, width, generator=generator, dtype=torch.float64)).requires_grad_()
    w = torch.randn(types, width, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randint(types, (positions,), generator=generator)
    return h, w, y


def value_and_gradients(loss, h, w):
    gradients = torch.autograd.grad(loss, (h, w))
    return [loss.detach(), *gradients]


def counts_of(w):
    """Training counts of the types, V, for losses that need them; decreasing to 1."""
    return [k**3 for k in range(len(w), 0, -1)]


def fast(settings_, h, w, y, special=()):
    method = build_method(settings_).started(TrainingFacts(counts_of(w), special))
    return output_loss(method, None, h, w, y).loss


# name: (config of the method, literal loss per position from h, W, y)
LOSSES = {
    "cross_entropy": ({}, lambda h, w, y: cross_entropy.reference(h @ w.T, y)),
    "label_smoothing": (
        {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
        lambda h, w, y: cross_entropy.reference(h @ w.T, y, 0.1),
    ),
    "cross_entropy_temperature": (
        {"training_temperature": 2.1},
        lambda h, w, y: cross_entropy.reference(2.1 * (h @ w.T), y),
    ),
    "threshold": (
        {"loss": {"name": "threshold", "margin": 1}},
        lambda h, w, y: threshold.reference(h @ w.T, y, 1.0),
    ),
    "threshold_0": (
        {"loss": {"name": "threshold", "margin": 0}},
        lambda h, w, y: threshold.reference(h @ w.T, y, 0.0),
    ),
    "detached_under": (
        {"loss": {"name": "threshold", "margin": 0.5, "detach_under": True}},
        lambda h, w, y: threshold.reference(h @ w.T, y, 0.5, detach_under=True),
    ),
    "norm_margin": (
        {"loss": {"name": "threshold", "alpha": 0.25}},
        lambda h, w, y: threshold.reference(h @ w.T, y, 0.25 * h.norm(dim=1) * w[y].norm(dim=1)),
    ),
    "temperature": (
        {"loss": {"name": "threshold", "margin": 1}, "training_temperature": 0.46},
        lambda h, w, y: threshold.reference(0.46 * (h @ w.T), y, 1.0),
    ),
    "softminus": (
        {"loss": {"name": "softminus", "margin": 1}},
        lambda h, w, y: softminus.reference(h @ w.T, y, 1.0),
    ),
    "softminus_c5": (
        {"loss": {"name": "softminus", "margin": 2, "c": 5}},
        lambda h, w, y: softminus.reference(h @ w.T, y, 2.0, 5.0),
    ),
    "softminus_dt": (
        {"loss": {"name": "softminus", "margin": 2, "detach_threshold": True}},
        lambda h, w, y: softminus.reference(h @ w.T, y, 2.0, detach_threshold=True),
    ),
    "contrastive": ({"loss": {"name": "contrastive"}}, contrastive.reference),
    "adaptive_training": (
        {"loss": {"name": "adaptive_training", "t": 0.4}},
        lambda h, w, y: adaptive_training.reference(h @ w.T, y, counts_of(w), 0.4),
    ),
    "adaptive_chi_square": (
        {"loss": {"name": "adaptive_training", "chi_square": True}},
        lambda h, w, y: adaptive_training.reference(h @ w.T, y, counts_of(w), chi_square=True),
    ),
    "logit_adjustment": (
        {"loss": {"name": "logit_adjustment", "tau": 0.8}},
        lambda h, w, y: logit_adjustment.reference(h @ w.T, y, counts_of(w), 0.8),
    ),
    "power_law": (
        {"loss": {"name": "power_law", "alpha": 0.7}},
        lambda h, w, y: power_law.reference(h @ w.T, y, counts_of(w), 0.7),
    ),
    "adversarial": (
        {"perturbation": {"name": "adversarial", "alpha": 0.05}},
        lambda h, w, y: cross_entropy.reference(adversarial.reference(h, w, y, 0.05), y),
    ),
    "adversarial_threshold": (
        {"perturbation": {"name": "adversarial", "alpha": 0.05}, "loss": {"name": "threshold", "margin": 1}},
        lambda h, w, y: threshold.reference(adversarial.reference(h, w, y, 0.05), y, 1.0),
    ),
    "cosreg": (
        {"penalty": {"name": "cosreg", "gamma": 0.7}},
        lambda h, w, y: cross_entropy.reference(h @ w.T, y) + cosreg.reference(w, 0.7),
    ),
    "mu_loss": (
        {"penalty": {"name": "mu_loss", "strength": 0.7}},
        lambda h, w, y: cross_entropy.reference(h @ w.T, y) + mu_loss.reference(w, 0.7),
    ),
    "z_loss": (
        {"penalty": {"name": "z_loss", "strength": 0.03}},
        lambda h, w, y: cross_entropy.reference(h @ w.T, y) + z_loss.reference(h @ w.T, 0.03),
    ),
    "cosreg_threshold": (
        {"penalty": {"name": "cosreg"}, "loss": {"name": "threshold", "margin": 2}},
        lambda h, w, y: threshold.reference(h @ w.T, y, 2.0) + cosreg.reference(w),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("at_once", [3, 1000])
@pytest.mark.parametrize(("positions", "types", "width"), [(1, 2, 1), (7, 13, 5), (33, 9, 3)])
def test_loss_equals_literal_reference(monkeypatch, name, at_once, positions, types, width):
    """For any number of positions per chunk."""
    monkeypatch.setattr(output_layer, "chunk_positions", lambda *_: at_once)
    config, reference = LOSSES[name]
    h, w, y = random_inputs(positions, positions, types, width)
    ours = value_and_gradients(fast(config, h, w, y), h, w)
    literal = value_and_gradients(reference(h, w, y).mean(), h, w)
    for a, b in zip(ours, literal, strict=True):
        torch.testing.assert_close(a, b, **TOLERANCE)


def test_thresholded_rows_get_exactly_no_gradient():
    h, w, y = random_inputs(8, 2, 50, 4, spread=5.0)
    z = h @ w.T
    under = (z < z.gather(1, y[:, None]) - 1).all(dim=0)
    gradient = torch.autograd.grad(fast({"loss": {"name": "threshold", "margin": 1}}, h, w, y), w)[0]
    assert under.any()
    assert (gradient[under] == 0).all()
    assert (gradient[~under] != 0).any(dim=1).all()


def test_softminus_with_c_1_subtracts_the_threshold_probability():
    """S13: with C = 1 the unnormalised probabilities become max(0, exp z - exp theta)."""
    h, w, y = random_inputs(9, 4, 11, 3)
    z = (h @ w.T).detach()
    z_y = z.gather(1, y[:, None])
    mass = (z.exp() - (z_y - 1.0).exp()).clamp_min(0)
    expected = -(mass.gather(1, y[:, None]) / mass.sum(1, keepdim=True)).log().squeeze(1)
    loss = softminus.Softminus(margin=1.0)(Outputs(z, h, w, y))
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-9)


def test_large_logits_stay_finite():
    """The contrastive sum and the thresholds are computed in logarithms."""
    h, w, y = random_inputs(10, 6, 9, 4, spread=1e3)
    for name, (config, _) in LOSSES.items():
        values = value_and_gradients(fast(config, h, w, y), h, w)
        assert all(value.isfinite().all() for value in values), name


@pytest.mark.parametrize("c", [0.5, 1.0, 5.0])
def test_softminus_in_float32_equals_float64(c):
    """Value and gradients for gaps (z - theta) / C from 1e-3 to 1e4, whose exp overflows from 89 on."""
    gaps = torch.logspace(-3, 4, 29, dtype=torch.float64)
    below = torch.tensor([-1e-3, -1e4], dtype=torch.float64)
    found = {}
    for dtype in (torch.float64, torch.float32):
        # Each gap as the largest of a row, and all of them in one.
        rows = [torch.stack([gaps.new_zeros(()), gap * c - 1.0]) for gap in gaps]
        rows.append(torch.cat([gaps.new_zeros(1), torch.cat([gaps, below]) * c - 1.0]))
        results = []
        for row in rows:
            z = row.float().to(dtype)[None].requires_grad_()
            loss = softminus.Softminus(margin=1.0, c=c)(Outputs(z, None, None, torch.tensor([0]))).sum()
            results += [loss.detach(), *torch.autograd.grad(loss, z)]
        found[dtype] = results
    for single, double in zip(found[torch.float32], found[torch.float64], strict=True):
        assert double.isfinite().all()
        torch.testing.assert_close(single.double(), double, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("margin", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("detach", [False, True])
def test_a_narrow_softminus_keeps_its_digits_in_float32(margin, detach):
    """Of the same logits, whose target is often the most probable type; the threshold is a difference of logits."""
    h, w, _ = random_inputs(16, 40, 30, 4)
    logits = (h @ w.T).detach().float()
    y = logits.argmax(dim=1)
    y[20:] = torch.arange(20)
    config = {"loss": {"name": "softminus", "margin": margin, "detach_threshold": detach}}
    found = []
    for dtype in (torch.float32, torch.float64):
        z, w = logits.to(dtype).requires_grad_(), torch.eye(30, dtype=dtype, requires_grad=True)
        found.append(value_and_gradients(fast(config, z, w, y), z, w))
    for single, double in zip(*found, strict=True):
        torch.testing.assert_close(single.double(), double, rtol=0, atol=2e-6 * double.abs().max().clamp_min(1).item())


@pytest.mark.parametrize(
    ("name", "options", "counts", "expected"),
    [
        ("adaptive_training", {"t": 3e4}, [400, 300, 2, 1], [1, 1, 1, math.e]),
        ("adaptive_training", {"t": 1000.0}, [5, 5, 5], [math.e] * 3),
        ("adaptive_training", {"t": 1e4, "chi_square": True}, [400, 300, 2, 1], [1, 1, 1, math.e]),
        ("power_law", {"alpha": 400.0}, [40000, 30000, 200, 100], [0, 0, 0, 703]),
    ],
)
def test_weights_of_large_parameters_are_finite(name, options, counts, expected):
    method = build_method({"loss": {"name": name, **options}}).started(TrainingFacts(counts, ()))
    torch.testing.assert_close(method.loss.function.args[0], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (threshold.Threshold, ("margin", "alpha")),
        (softminus.Softminus, ("margin",)),
        (lambda c: softminus.Softminus(1.0, c), ("c",)),
        (adaptive_training.AdaptiveTraining, ("t",)),
        (power_law.PowerLawDecay, ("alpha",)),
        (logit_adjustment.LogitAdjustment, ("tau",)),
        (adversarial.Adversarial, ("alpha",)),
        (cosreg.CosReg, ("gamma",)),
        (mu_loss.MuLoss, ("strength",)),
        (z_loss.ZLoss, ("strength",)),
        (unlikelihood.Unlikelihood, ("alpha",)),
        (unigram.UnigramDivergence, ("strength",)),
    ],
)
@pytest.mark.parametrize("value", [math.nan, -1.0])
def test_a_number_that_is_nan_or_negative_is_refused(part, names, value):
    for name in names:
        with pytest.raises(ValueError, match=f"{name}.* must be (at least|above) 0"):
            part(**{name: value})


def test_cosreg_leaves_rows_of_zeros_alone():
    h, w, y = random_inputs(9, 4, 11, 3)
    with torch.no_grad():
        w[[0, 7]] = 0
    loss = cosreg.CosReg(0.7)(Outputs(None, h, w, y))
    gradient = torch.autograd.grad(loss, w)[0]
    torch.testing.assert_close(loss, cosreg.reference(w, 0.7), **TOLERANCE)
    kept = [row for row in range(11) if row not in (0, 7)]
    others = w.detach()[kept].requires_grad_()
    smaller = cosreg.CosReg(0.7 * 9**2 / 11**2)(Outputs(None, h, others, y))
    torch.testing.assert_close(gradient[kept], torch.autograd.grad(smaller, others)[0], **TOLERANCE)
    assert (gradient[[0, 7]] == 0).all()


def test_margin_infinite_is_cross_entropy():
    h, w, y = random_inputs(11, 6, 9, 4)
    plain = fast({}, h, w, y)
    assert math.isclose(fast({"loss": {"name": "threshold", "margin": 1e9}}, h, w, y).item(), plain.item())


@pytest.mark.parametrize("name", ["adaptive_training", "power_law"])
def test_special_types_have_weight_1_and_do_not_change_other_weights(name):
    h, w, y = random_inputs(12, 40, 9, 4)
    plain = cross_entropy.reference(h @ w.T, y)
    weighted = torch.stack([fast({"loss": {"name": name}}, h[t : t + 1], w, y[t : t + 1], (0, 3)) for t in range(40)])
    weights = (weighted / plain).detach()
    assert (weights[(y == 0) | (y == 3)] - 1).abs().max() < 1e-12
    others = [k for k in range(9) if k not in (0, 3)]
    module = {"adaptive_training": adaptive_training, "power_law": power_law}[name]
    z = torch.zeros(7, 7, dtype=torch.float64)
    expected = module.reference(z, torch.arange(7), [counts_of(w)[k] for k in others]) / math.log(7)
    for k, weight in zip(others, expected, strict=True):
        torch.testing.assert_close(weights[y == k], weight.expand((y == k).sum()), **TOLERANCE)


@pytest.mark.parametrize(
    ("name", "options"),
    [("adaptive_training", {"t": 0.4}), ("adaptive_training", {"chi_square": True}), ("power_law", {})],
)
def test_types_that_never_occur_have_the_weight_of_the_rarest(name, options):
    """They may occur in a text that the model is trained on later; 1 is the lowest weight, or one of many."""
    method = build_method({"loss": {"name": name, **options}})
    weights = method.started(TrainingFacts([0, 90, 0, 40, 7, 0], (0,))).loss.function.args[0]
    alone = method.started(TrainingFacts([90, 40, 7], ())).loss.function.args[0]
    assert torch.equal(weights[[1, 3, 4]], alone)
    assert weights[2] == weights[5] == weights[4] != 1
    assert weights[0] == 1


def test_power_law_of_exponent_0_is_cross_entropy():
    h, w, y = random_inputs(13, 6, 9, 4)
    torch.testing.assert_close(fast({"loss": {"name": "power_law", "alpha": 0}}, h, w, y), fast({}, h, w, y))


def test_logit_adjustment_equals_a_unigram_bias_subtracted_after_training():
    """Its gradients with a bias b are those of maximum likelihood with b + tau log pi, so both end with the same b."""
    h, w, y = random_inputs(14, 20, 9, 4)
    b = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    facts = TrainingFacts(counts_of(w), ())
    found = []
    for loss, shift in (({"name": "logit_adjustment", "tau": 0.5}, 0), ({"name": "cross_entropy"}, 0.5)):
        bias = (b + shift * log_unigram(facts.counts)).requires_grad_()
        value = output_loss(build_method({"loss": loss}).started(facts), None, h, w, y, bias=bias).loss
        found.append([value.detach(), *torch.autograd.grad(value, (h, w, bias))])
    for ours, likelihood in zip(*found, strict=True):
        torch.testing.assert_close(ours, likelihood, **TOLERANCE)


# Losses that centring the output matrix changes: they use norms or log Z, or detach a gradient.
SEE_THE_MEAN = ("norm_margin", "adversarial", "cosreg", "mu_loss", "z_loss", "detached_under", "softminus_dt")
# Losses of probabilities only.
DO_NOT = ("cross_entropy", "label_smoothing", "temperature", "softminus", "power_law", "logit_adjustment")


@pytest.mark.parametrize("name", [*SEE_THE_MEAN, *DO_NOT])
def test_mu_centering_does_not_change_a_loss_of_probabilities(name):
    """It shifts all logits of a position equally; value and every gradient stay the same."""
    h, w, y = random_inputs(15, 20, 9, 4)
    centred = mu_centering.reference(w.detach()).requires_grad_()
    before = value_and_gradients(fast(LOSSES[name][0], h, w, y), h, w)
    after = value_and_gradients(fast(LOSSES[name][0], h, centred, y), h, centred)
    is_same = all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(before, after, strict=True))
    assert is_same == (name in DO_NOT)
