"""Scores of target sides, compared with an explicit computation for one unpadded pair at a time."""

import numpy as np
import pytest
import torch
from tests.evaluation.conftest import TRANSLATION_MODEL

from rarepapers.core.special_types import END, START
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.evaluation import pair_scores, text_scores
from rarepapers.evaluation.pair_scores import score_pairs
from rarepapers.models.building import build_model


def reference(model, pairs, context):
    """One pair at a time: -log softmax(z)[y] and -log softmax(z - b)[y] of each target token."""
    targets, nll, without_bias, skipped = [], [], [], 0
    for i in range(len(pairs)):
        source = pairs.source[pairs.source_offsets[i] : pairs.source_offsets[i + 1]].astype(np.int64)
        target = pairs.target[pairs.target_offsets[i] : pairs.target_offsets[i + 1]].astype(np.int64)
        if max(len(source), len(target)) > context:
            skipped += 1
            continue
        inputs = torch.tensor([START, *target[:-1]])[None]
        with torch.no_grad():
            logits = model.logits(model(torch.from_numpy(source)[None], inputs))[0].double()
        for z, y in zip(logits, target, strict=True):
            targets.append(y)
            nll.append(-float(z.log_softmax(0)[y]))
            if model.output_bias is not None:
                without_bias.append(-float((z - model.output_bias.double()).log_softmax(0)[y]))
    return targets, nll, without_bias, skipped


@pytest.mark.parametrize("bias", ["unigram", None])
@pytest.mark.parametrize("context", [40, 16])
@pytest.mark.parametrize("held", [2**20, 1000])
def test_scores_equal_those_of_single_pairs(prepared_pairs, monkeypatch, bias, context, held):
    # Several batches, and few logits at a time.
    monkeypatch.setitem(pair_scores.TOKENS, "cpu", 60)
    monkeypatch.setitem(text_scores.LOGITS, "cpu", held)
    model = build_model(TRANSLATION_MODEL | {"output_bias": bias}, prepared_pairs.types, seed=1).eval()
    if bias:
        torch.nn.init.normal_(model.output_bias)
    model.requires_grad_(False)
    pairs = load_pairs(prepared_pairs, "test")
    found = score_pairs(model, pairs, context)
    targets, nll, without_bias, skipped = reference(model, pairs, context)
    assert found.targets.tolist() == targets
    np.testing.assert_allclose(found.nll, nll, atol=1e-5)
    assert found.skipped == skipped
    assert skipped < len(pairs)
    assert (skipped > 0) == (context == 16)
    if bias:
        np.testing.assert_allclose(found.nll_without_bias, without_bias, atol=1e-5)
        assert not np.allclose(found.nll, found.nll_without_bias, atol=0.1)
    else:
        assert found.nll_without_bias is None
    assert (found.targets == END).sum() == len(pairs) - skipped


def test_scores_at_a_temperature_are_those_of_divided_logits(prepared_pairs, monkeypatch):
    model = build_model(TRANSLATION_MODEL | {"output_bias": "unigram"}, prepared_pairs.types, seed=1).eval()
    torch.nn.init.normal_(model.requires_grad_(False).output_bias)
    pairs = load_pairs(prepared_pairs, "test")
    found = score_pairs(model, pairs, 40, temperature=2.0)
    logits = model.logits
    monkeypatch.setattr(model, "logits", lambda hidden: logits(hidden) / 2)
    _, nll, _, _ = reference(model, pairs, 40)
    np.testing.assert_allclose(found.nll, nll, atol=1e-5)
    assert found.nll_without_bias is None


def test_a_context_that_no_pair_fits_scores_nothing(prepared_pairs):
    model = build_model(TRANSLATION_MODEL, prepared_pairs.types, seed=1).eval().requires_grad_(False)
    pairs = load_pairs(prepared_pairs, "test")
    found = score_pairs(model, pairs, 1)
    assert len(found.nll) == 0
    assert found.skipped == len(pairs)
