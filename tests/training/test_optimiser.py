"""Row-wise AdamW, compared with a list of vectors, and the three readings of separated embeddings."""

import pytest
import torch

from rarepapers.experiments.methods import build_method
from rarepapers.models.building import build_model
from rarepapers.training.optimiser import Optimiser, RowAdamW
from raretok.methods import coupled_adam, mu_centering, normed_rows, separated

MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 8, "context": 6}
ADAMW = {"name": "adamw", "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1}


def sparse_gradients(rows, width, steps, seed=0):
    """Gradients with random zero rows; row 0 is always zero, row 1 never."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        gradient = torch.randn(rows, width, generator=generator, dtype=torch.float64)
        gradient[torch.rand(rows, generator=generator) < 0.6] = 0
        gradient[0] = 0
        gradient[1] += 1
        yield gradient


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_row_adamw_equals_a_list_of_vectors_without_gradients(weight_decay):
    start = torch.randn(9, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    matrix = torch.nn.Parameter(start.clone())
    vectors = [torch.nn.Parameter(row.clone()) for row in start]
    ours = RowAdamW(matrix, (0.9, 0.99), 1e-8, weight_decay, separated.Separated("skip"))
    listed = torch.optim.AdamW(vectors, betas=(0.9, 0.99), eps=1e-8, weight_decay=weight_decay)
    for step, gradient in enumerate(sparse_gradients(9, 5, 25)):
        learning_rate = 0.01 * (1 + step % 3)
        matrix.grad = gradient
        for vector, row in zip(vectors, gradient, strict=True):
            vector.grad = row.clone() if row.any() else None
        for group in listed.param_groups:
            group["lr"] = learning_rate
        ours.step(learning_rate)
        listed.step()
        torch.testing.assert_close(matrix.detach(), torch.stack([v.detach() for v in vectors]), rtol=0, atol=1e-14)
    assert torch.equal(matrix[0], start[0])


# Name of an `embedding_update`: its literal form, for second moments or for the output matrix after a step.
UPDATES = {"coupled_adam": {"second_moment": coupled_adam.reference}, "mu_centering": {"after": mu_centering.reference}}


def literal_adamw(w, gradients, learning_rate, second_moment=lambda v: v, after=lambda w: w):
    """Rows after AdamW with ADAMW's settings, step by step."""
    (beta1, beta2), m, v = ADAMW["betas"], torch.zeros_like(w), torch.zeros_like(w)
    for step, gradient in enumerate(gradients, start=1):
        m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
        root = (second_moment(v) / (1 - beta2**step)).sqrt()
        decayed = w * (1 - learning_rate * ADAMW["weight_decay"])
        w = after(decayed - learning_rate * m / (1 - beta1**step) / (root + ADAMW["eps"]))
    return w


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", UPDATES)
def test_embedding_updates_equal_their_literal_form(name, tied):
    model = build_model(MODEL | {"tied": tied}, 9, seed=1).double()
    optimiser = Optimiser(model, build_method({"embedding_update": {"name": name}}), ADAMW)
    matrices = dict.fromkeys([model.output_weight, model.input_weight])
    before = [matrix.detach().clone() for matrix in matrices]
    for gradients in zip(sparse_gradients(9, 8, 5), sparse_gradients(9, 8, 5, seed=1), strict=True):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        for matrix, gradient in zip(matrices, gradients, strict=False):
            matrix.grad = gradient
        optimiser.step(0.01)
    for place, (matrix, start) in enumerate(zip(matrices, before, strict=True)):
        literal = {} if place == 1 and "after" in UPDATES[name] else UPDATES[name]
        expected = literal_adamw(start, list(sparse_gradients(9, 8, 5, seed=place)), 0.01, **literal)
        torch.testing.assert_close(matrix.detach(), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("tied", [True, False])
def test_normed_rows_give_the_literal_logits_and_keep_one_norm(tied):
    method, model = build_method({"embedding_update": {"name": "normed_rows"}}), build_model(MODEL | {"tied": tied}, 9)
    model.double().initialise(1)
    method.embedding_update.parametrise(model)
    s, directions = (p for name, p in model.named_parameters() if "parametrizations" in name)
    optimiser = Optimiser(model, method, ADAMW)
    for h, d in zip(sparse_gradients(4, 8, 3), sparse_gradients(4, 9, 3, seed=1), strict=True):
        z = torch.stack([torch.cat(row) for row in normed_rows.reference(h, s, directions)])
        literal = torch.autograd.grad((z * d).sum(), (s, directions))
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        (model.logits(h) * d).sum().backward()
        torch.testing.assert_close((s.grad, directions.grad), literal, rtol=0, atol=1e-12)
        optimiser.step(0.1)
        torch.testing.assert_close(model.output_weight.norm(dim=1), s.expand(9), rtol=0, atol=1e-14)
        torch.testing.assert_close(directions.norm(dim=1), torch.ones_like(s).expand(9), rtol=0, atol=1e-14)


def trained(reading, tied, list_of_vectors=False, steps=12):
    """Weights after a few steps of thresholded training under one reading."""
    method = build_method(
        {
            "loss": {"name": "threshold", "margin": 0.3},
            "embedding_update": {"name": "separated", "reading": reading},
        }
    )
    model = build_model(MODEL | {"tied": tied}, 20, seed=1)
    optimiser = Optimiser(model, method, ADAMW)
    generator = torch.Generator().manual_seed(4)
    for _ in range(steps):
        ids = torch.randint(12, (2, 7), generator=generator)
        logits = model.logits(model(ids[:, :-1]))
        threshold = logits.gather(2, ids[:, 1:, None]) - 0.3
        kept = logits.masked_fill(logits < threshold, float("-inf"))
        torch.nn.functional.cross_entropy(kept.flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimiser.step(0.01)
    return model


@pytest.mark.parametrize("reading", ["matrix", "listing"])
def test_listing_equals_matrix_when_tied(reading):
    model, matrix = trained(reading, tied=True), trained("matrix", tied=True)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), matrix.parameters(), strict=True))


def test_skip_differs_from_matrix_for_types_that_never_occur():
    """Ids 12 to 19 never occur. When they are below the threshold, skip leaves them unchanged."""
    start = build_model(MODEL | {"tied": True}, 20, seed=1)
    skip, matrix = trained("skip", tied=True), trained("matrix", tied=True)
    moved = (skip.input_weight - start.input_weight).norm(dim=1)
    assert (moved[12:] < (matrix.input_weight - start.input_weight).norm(dim=1)[12:]).all()


def test_untied_listing_has_no_decay_on_output_vectors():
    """As in the authors' optimiser groups; the input vectors still decay (docs/deviations.md, S1)."""
    listing, matrix = trained("listing", tied=False, steps=1), trained("matrix", tied=False, steps=1)
    assert torch.equal(listing.input_weight, matrix.input_weight)
    start = build_model(MODEL | {"tied": False}, 20, seed=1)
    decay = 0.01 * 0.1 * start.output_weight
    torch.testing.assert_close(listing.output_weight - matrix.output_weight, decay, rtol=0, atol=1e-7)


def test_listing_2_of_the_paper_never_gives_a_gradient_of_none():
    """This makes `listing` equal `matrix`: stacking a list of vectors gives each a gradient, if only of zeros."""
    vectors = [torch.nn.Parameter(torch.ones(3)) for _ in range(4)]
    torch.stack(vectors)[torch.tensor([1, 1])].sum().backward()
    assert all(vector.grad is not None for vector in vectors)
    assert [bool(vector.grad.any()) for vector in vectors] == [False, True, False, False]


def test_trained_weights_equal_those_of_torchs_adamw():
    """The whole optimiser, compared with torch's on the nanoGPT groups: matrices decay, norms do not."""
    model, plain = trained("matrix", tied=False), build_model(MODEL | {"tied": False}, 20, seed=1)
    decay = [p for p in plain.parameters() if p.dim() >= 2]
    rest = [p for p in plain.parameters() if p.dim() < 2]
    adamw = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=0.01, betas=(0.9, 0.99), eps=1e-8, foreach=False, fused=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(4)
    for _ in range(12):
        ids = torch.randint(12, (2, 7), generator=generator)
        logits = plain.logits(plain(ids[:, :-1]))
        threshold = logits.gather(2, ids[:, 1:, None]) - 0.3
        kept = logits.masked_fill(logits < threshold, float("-inf"))
        plain.zero_grad()
        torch.nn.functional.cross_entropy(kept.flatten(0, 1), ids[:, 1:].flatten()).backward()
        adamw.step()
    for (name, a), b in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6, msg=name)
