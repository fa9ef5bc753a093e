"""Scores of a text in windows, compared with one position at a time."""

import math

import numpy as np
import pytest
import torch
from tests.evaluation.conftest import Cumulative, NextToken

from rarepapers.evaluation import text_scores as module
from rarepapers.evaluation.text_scores import score
from rarepapers.models.building import build_model

END = 2
SIZES = [(1, 4, 0), (5, 4, 0), (8, 4, 0), (23, 4, 2), (23, 7, 5), (40, 8, 7), (6, 9, 1), (3, 9, 4), (30, 5, 3)]


def text(length: int, vocabulary: int = 12) -> np.ndarray:
    return np.random.default_rng(4).integers(0, vocabulary, length).astype(np.uint16)


def literal(model: Cumulative, tokens: list[int], block: int, window: int) -> list[tuple[float, int]]:
    """NLL and arg max of every token: each sees its own span so far, and `window` tokens before the span."""
    w, stream, found = model.output_weight.double(), [END, *tokens], []
    for position, target in enumerate(tokens):
        span = position // (block - window) * (block - window)
        seen = stream[max(0, span - window) : position + 1]
        logits = (w @ sum(w[i] for i in seen)).tolist()
        total = math.log(math.fsum(math.exp(z) for z in logits))
        found.append((total - logits[target], max(range(len(logits)), key=logits.__getitem__)))
    return found


@pytest.mark.parametrize(("length", "block", "window"), SIZES)
@pytest.mark.parametrize(("read", "held"), [(10**6, 10**6), (17, 40), (1, 1)])
def test_windowed_scores_equal_literal_ones_for_any_chunks(monkeypatch, length, block, window, read, held):
    monkeypatch.setitem(module.TOKENS, "cpu", read)
    monkeypatch.setitem(module.LOGITS, "cpu", held)
    model, tokens = Cumulative(), text(length)
    found = score(model, tokens, block, window, END)
    nll, predicted = zip(*literal(model, tokens.tolist(), block, window), strict=True)
    np.testing.assert_allclose(found.nll, nll, atol=2e-4)
    assert found.predicted.tolist() == list(predicted)
    assert score(model, tokens, block, window, END, predict=False).predicted is None


@pytest.mark.parametrize("held", [10**6, 1])
def test_probabilities_of_groups_are_the_sums_of_those_of_their_types(monkeypatch, held):
    monkeypatch.setitem(module.LOGITS, "cpu", held)
    model, tokens = Cumulative(), text(23)
    shares = np.exp(score(model, tokens, 7, 5, END, bounds=(3, 8)).groups)
    # The likelihood of each type at each position, from texts that differ only in the last token
    position = 22
    types = np.array([score(model, np.append(tokens[:position], k), 7, 5, END).nll[-1] for k in range(12)])
    whole = np.exp(-types)
    np.testing.assert_allclose(shares[position], [whole[:3].sum(), whole[3:8].sum(), whole[8:].sum()], atol=1e-5)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
    assert score(model, tokens, 7, 5, END).groups is None


@pytest.mark.parametrize("held", [10**6, 40])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_scores_at_a_temperature_are_those_of_a_model_with_divided_logits(monkeypatch, held, temperature):
    monkeypatch.setitem(module.LOGITS, "cpu", held)
    model, tokens, bounds = Cumulative(), text(23), (3, 8)
    found = score(model, tokens, 7, 5, END, bounds=bounds, temperature=temperature)
    plain = score(model, tokens, 7, 5, END, bounds=bounds)
    for name in ("nll", "predicted"):
        assert np.array_equal(getattr(found, name), getattr(plain, name))
    logits = model.logits
    monkeypatch.setattr(model, "logits", lambda hidden: logits(hidden) / temperature)
    divided = score(model, tokens, 7, 5, END, bounds=bounds)
    assert np.array_equal(found.tempered.nll, divided.nll)
    assert np.array_equal(found.tempered.groups, divided.groups)
    assert found.groups is None


def test_no_more_than_a_block_is_read_and_every_token_is_scored_once(monkeypatch):
    shapes, scored = [], 0
    monkeypatch.setitem(module.TOKENS, "cpu", 24)

    class Watched(Cumulative):
        def forward(self, ids):
            shapes.append(tuple(ids.shape))
            return super().forward(ids)

        def logits(self, hidden):
            nonlocal scored
            scored += len(hidden)
            return super().logits(hidden)

    score(Watched(), text(103), 8, 6, END)
    assert max(width for _, width in shapes) == 8
    # Windows cost block / (block - window) in the model's blocks, and nothing in the output layer.
    assert scored == 103
    assert sum(rows * width for rows, width in shapes) == pytest.approx(103 * 8 / 2, rel=0.05)
    assert max(rows for rows, _ in shapes) == 3


def test_an_empty_window_is_the_plain_pass():
    model = build_model({"name": "decoder", "layers": 2, "heads": 2, "width": 8, "context": 8}, 12, seed=0).eval()
    tokens = text(50)
    stream = torch.tensor([END, *tokens.tolist()])
    with torch.no_grad():
        blocks = [model.logits(model(stream[None, i : min(i + 8, 50)]))[0] for i in range(0, 50, 8)]
    logits = torch.cat(blocks).double()
    expected = -logits.log_softmax(1)[torch.arange(50), stream[1:]]
    found = score(model, tokens, 8, 0, END)
    np.testing.assert_allclose(found.nll, expected, atol=1e-5)
    assert found.predicted.tolist() == logits.argmax(1).tolist()
    # With a model that uses its context, a window changes the scores.
    assert not np.allclose(score(model, tokens, 8, 4, END).nll, found.nll, atol=1e-4)


def test_known_probabilities_have_known_scores_in_every_window():
    table = np.random.default_rng(0).dirichlet(np.ones(6), 6)
    model, tokens = NextToken(table), text(31, 6)
    expected = -np.log(table[[END, *tokens[:-1]], tokens])
    for block, window in ((4, 0), (4, 3), (31, 0), (8, 5)):
        np.testing.assert_allclose(score(model, tokens, block, window, END).nll, expected, rtol=1e-5)


def test_an_impossible_token_has_infinite_nll_and_a_broken_model_nan():
    table = np.full((3, 3), 0.5)
    table[:, 1] = 0
    found = score(NextToken(table), np.array([0, 1, 2]), 2, 0, END)
    assert found.nll[1] == math.inf
    assert np.isfinite(found.nll[[0, 2]]).all()
    model = Cumulative()
    model.output_weight[3] = math.nan
    assert np.isnan(score(model, text(20), 4, 0, END).nll).all()
