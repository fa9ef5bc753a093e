"""The public metrics, for tensors of any precision, compared with plain formulas."""

import math

import numpy as np
import pytest
import torch

import raretok


@pytest.fixture
def text():
    """hidden 3 x 5 x 4, W 11 x 4, bias 11, targets 3 x 5."""
    generator = torch.Generator().manual_seed(1)
    hidden, weight = torch.randn(3, 5, 4, generator=generator), torch.randn(11, 4, generator=generator)
    return hidden, weight, torch.randn(11, generator=generator), torch.randint(11, (3, 5), generator=generator)


@pytest.mark.parametrize("at_once", [1, 30, 10**9])
def test_token_nll(monkeypatch, text, at_once):
    monkeypatch.setattr("raretok.public_metrics.CELLS", at_once)
    hidden, weight, bias, targets = text
    nll = raretok.token_nll(hidden.requires_grad_(), weight, targets, bias)
    expected = -(hidden @ weight.T + bias).double().log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    torch.testing.assert_close(nll, expected.detach())
    assert not nll.requires_grad
    assert raretok.perplexity(nll) == pytest.approx(expected.mean().exp().item())


def test_token_nll_takes_what_the_loss_takes(text):
    """A bias of another precision, and no layer in place of its weight."""
    hidden, weight, bias, targets = text
    nll = raretok.token_nll(hidden.bfloat16(), weight.bfloat16(), targets, bias)
    torch.testing.assert_close(nll, raretok.token_nll(hidden, weight, targets, bias), rtol=0.05, atol=0.05)
    with pytest.raises(ValueError, match="weight is of type Linear; give a tensor, such as its weight"):
        raretok.token_nll(hidden, torch.nn.Linear(4, 11), targets)


@pytest.mark.parametrize("soft_cap", [None, 1.5])
def test_token_nll_scales_and_caps_logits_as_the_loss(text, soft_cap):
    hidden, weight, bias, targets = text
    hidden, weight, bias = hidden.double(), weight.double(), bias.double()
    options = {"logit_scale": 0.3, "soft_cap": soft_cap}
    expected = raretok.OutputLoss(reduction="none", **options).eval()(hidden, weight, targets, bias=bias)
    torch.testing.assert_close(raretok.token_nll(hidden, weight, targets, bias, **options), expected)


def test_shifted_targets_need_shifted_vectors(text):
    hidden, weight, _, targets = text
    with pytest.raises(ValueError, match=r"hidden has shape \(3, 5, 4\) and targets \(3, 4\)"):
        raretok.token_nll(hidden, weight, targets[:, 1:])
    with pytest.raises(ValueError, match=r"hidden has shape \(4,\) and targets \(\)"):
        raretok.token_nll(hidden[0, 0], weight, targets[0, 0])


def test_weights_of_another_width_and_biases_of_another_length_are_refused(text):
    hidden, weight, bias, targets = text
    with pytest.raises(ValueError, match=r"weight has shape \(11, 3\); they must be V x 4"):
        raretok.token_nll(hidden, weight[:, 1:], targets)
    for wrong in (bias[:1], bias[1:]):
        with pytest.raises(ValueError, match=r"weight has shape \(11, 4\) and bias \(10?,\); they must be V x 4"):
            raretok.token_nll(hidden, weight, targets, wrong)


def test_ids_that_are_no_targets_are_refused(text):
    hidden, weight, _, targets = text
    hidden, goals = hidden.flatten(0, 1), targets.flatten()
    logits = hidden @ weight.T
    for metric, args in (
        (raretok.token_nll, (hidden, weight)),
        (raretok.target_ranks, (logits,)),
        (raretok.best_temperature, (logits,)),
    ):
        for wrong in (-100, -1, 11):
            with pytest.raises(ValueError, match=f"a target is {wrong}, but there are 11 types; leave out positions"):
                metric(*args, goals.index_fill(0, torch.tensor([3]), wrong))
        with pytest.raises(ValueError, match=r"targets are of type torch\.float32; give token ids"):
            metric(*args, goals.float())
        assert np.array_equal(metric(*args, goals.short()), metric(*args, goals))


def test_ranks(text):
    hidden, weight, _, targets = text
    logits, goals = (hidden @ weight.T).flatten(0, 1), targets.flatten()
    ranks = raretok.target_ranks(logits, goals)
    expected = [1 + (row > row[y]).sum().item() for row, y in zip(logits, goals, strict=True)]
    assert ranks.tolist() == expected
    assert raretok.accuracy(ranks) == np.mean(np.array(expected) == 1)
    assert raretok.recall(ranks, 3) == np.mean(np.array(expected) <= 3)
    assert raretok.mean_reciprocal_rank(ranks) == pytest.approx(np.mean([1 / rank for rank in expected]))


@pytest.mark.parametrize("metric", [raretok.accuracy, lambda r: raretok.recall(r, 2), raretok.mean_reciprocal_rank])
def test_ranks_are_whole_numbers_from_1_on(metric):
    for wrong in (torch.randn(3, 5), [1.0, 2.0], [0, 1], np.array([-100, 1])):
        with pytest.raises(ValueError, match="ranks must be whole numbers from 1 on, as target_ranks returns them"):
            metric(wrong)
    assert math.isnan(metric([]))
    for k in (0, math.nan):
        with pytest.raises(ValueError, match=f"k is {k}; it must be at least 1"):
            raretok.recall([1], k)


def test_the_best_temperature_adds_up_over_parts(text):
    hidden, weight, _, targets = text
    # Too sharp by 1.6: a temperature above 1 is best.
    logits, goals = 1.6 * (hidden @ weight.T).flatten(0, 1), targets.flatten()
    whole = raretok.best_temperature(logits, goals)
    parts = raretok.best_temperature([logits[:4], logits[4:]], [goals[:4], goals[4:]])
    assert parts == pytest.approx(whole)
    assert (whole.perplexity, whole.temperature) == whole
    grid = [k / 100 for k in range(1, 201)]
    losses = [torch.nn.functional.cross_entropy(logits.double() / t, goals).item() for t in grid]
    assert whole[1] == grid[int(np.argmin(losses))]
    assert whole[0] == pytest.approx(math.exp(min(losses)), rel=1e-5)


def test_metrics_of_logits_take_arrays_and_refuse_other_shapes(text):
    hidden, weight, _, targets = text
    logits, goals = (hidden @ weight.T).flatten(0, 1), targets.flatten()
    assert raretok.best_temperature(logits.numpy(), goals.numpy()) == raretok.best_temperature(logits, goals)
    assert raretok.target_ranks(logits.numpy(), goals.tolist()).tolist() == raretok.target_ranks(logits, goals).tolist()
    assert raretok.tail_mass(logits.numpy()).tolist() == raretok.tail_mass(logits).tolist()
    # B x T x V logits would silently confuse targets and positions.
    shaped = (hidden @ weight.T)[:, :, :5], targets % 5
    for metric in (raretok.best_temperature, raretok.target_ranks):
        with pytest.raises(ValueError, match=r"logits have shape \(3, 5, 5\) and targets \(3, 5\); they must be N x V"):
            metric(*shaped)
    assert all(math.isnan(value) for value in raretok.best_temperature(logits[:0], goals[:0]))


def test_tail_mass():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert raretok.tail_mass(logits, 2).item() == pytest.approx(0.3)
    assert raretok.tail_mass(logits).item() == 0
    assert raretok.tail_mass(logits, 0).item() == pytest.approx(1)
    # B x T x V logits would silently sum over positions.
    with pytest.raises(ValueError, match=r"logits have shape \(2, 3, 4\); they must be N x V"):
        raretok.tail_mass(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="likeliest is -1; it must be at least 0"):
        raretok.tail_mass(logits, -1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_metrics_of_a_matrix_take_parameters(dtype):
    narrow = torch.nn.Parameter((torch.randn(50, 6, generator=torch.Generator().manual_seed(2)) + 3).to(dtype))
    wide = (torch.eye(6) * 2).repeat(2, 1).to(dtype)
    wide[6:] *= -1
    assert raretok.isotropy(wide) == pytest.approx(1)
    # Both signs of every eigenvector count, so W and -W are equal.
    assert raretok.isotropy(-narrow) == pytest.approx(raretok.isotropy(narrow))
    assert raretok.isotropy(narrow) < 0.2
    rows = torch.nn.functional.normalize(narrow.detach().double(), dim=1)
    cosines = rows @ rows.T
    assert raretok.mean_cosine(narrow) == pytest.approx((cosines.sum() - 50).item() / 2500, abs=1e-9)


def test_align_similarity_is_the_dense_formula():
    generator = np.random.default_rng(3)
    matrix = generator.normal(size=(7, 3))
    first, second, counts = np.array([0, 4, 1, 2, 2]), np.array([4, 0, 5, 2, 6]), np.array([2, 1, 3, 4, 1])
    links = np.zeros((7, 7))
    np.add.at(links, (first, second), counts)
    links += links.T
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    model = np.exp(10 * unit @ unit.T)
    lengths = np.linalg.norm(links, axis=1) * np.linalg.norm(model, axis=1)
    with np.errstate(invalid="ignore"):
        expected = (links * model).sum(1) / lengths
    found = raretok.align_similarity(matrix, first, second, counts)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.isnan(found[3])
    for wrong, words in (
        (([0, 7], [1, 1], [1, 1]), "an id is 7, but embeddings has 7 rows"),
        (([0], [1], [0.5]), "counts must be"),
        (([0.5], [1], [1]), "ids are of type float64; give token ids, whole numbers"),
        (([], [], []), "there are no links; give at least one"),
        (([0], [1], [1], 0.0), "tau is 0.0; it must be above 0 and finite"),
    ):
        with pytest.raises(ValueError, match=words):
            raretok.align_similarity(matrix, *wrong)
    with pytest.raises(ValueError, match="have 2, 1 and 1 numbers"):
        raretok.align_similarity(matrix, [0, 1], [1], [1])


def test_margins_of_samplers():
    assert raretok.nucleus_margin(100_000, 0.99, 0.9) == pytest.approx(14.50, abs=0.005)
    assert raretok.min_p_margin(0.1) == pytest.approx(math.log(10))
    with pytest.raises(ValueError, match="no margin for"):
        raretok.min_p_margin(0)
