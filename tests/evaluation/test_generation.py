"""Greedy continuations of rigged models."""

import numpy as np
import pytest
import torch
from tests.evaluation.conftest import Cumulative, NextToken

from rarepapers.evaluation.generation import greedy, prefixes
from rarepapers.models.building import build_model


def test_a_rigged_model_walks_its_cycle():
    # 0 -> 1 -> 2 -> 0 and 3 -> 3, whatever else is possible.
    table = np.full((4, 4), 0.1)
    for before, after in ((0, 1), (1, 2), (2, 0), (3, 3)):
        table[before, after] = 0.7
    begun = torch.tensor([[3, 0], [0, 3]])
    assert greedy(NextToken(table), begun, 5, context=8).tolist() == [[1, 2, 0, 1, 2], [3, 3, 3, 3, 3]]


@pytest.mark.parametrize("context", [4, 7, 100])
def test_each_token_is_the_likeliest_after_the_context(context):
    model = Cumulative()
    begun = torch.randint(12, (3, 5), generator=torch.Generator().manual_seed(0))
    found = greedy(model, begun, 9, context)
    for text, continuation in zip(begun.tolist(), found.tolist(), strict=True):
        for token in continuation:
            hidden = sum(model.output_weight[i] for i in text[-context:])
            assert token == int((model.output_weight @ hidden).argmax())
            text.append(token)


def test_the_decoder_takes_texts_longer_than_its_context():
    settings = {"name": "decoder", "layers": 1, "heads": 1, "width": 4, "context": 6}
    model = build_model(settings, 9, seed=0).eval()
    assert greedy(model, torch.zeros(2, 5, dtype=torch.int64), 7, context=6).shape == (2, 7)


def test_prefixes_are_evenly_spaced_and_distinct():
    tokens = np.arange(30, dtype=np.uint16)
    found = prefixes(tokens, 4, 6)
    assert found[:, 0].tolist() == [0, 8, 16, 24]
    assert (np.diff(found, axis=1) == 1).all()
    assert prefixes(tokens, 25, 6)[:, 0].tolist() == list(range(25))
