"""The output bias of a decoder: start, training, and no change to models without one."""

import pytest
import torch

from rarepapers.core.errors import UserError
from rarepapers.models.building import build_model
from rarepapers.training.trainer import start_output_bias

MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 16, "context": 8}
COUNTS = torch.tensor([50, 30, 15, 5, 0]).numpy()


def model_with(start, seed=1):
    settings = MODEL if start is None else MODEL | {"output_bias": start}
    model = build_model(settings, 5, seed=seed)
    start_output_bias(model, settings, COUNTS, None)
    return model


def test_it_starts_at_the_log_unigram_distribution():
    """Hidden vectors of zero then predict the counts, each with one added."""
    model = model_with("unigram")
    p = torch.softmax(model.logits(torch.zeros(1, 16)), dim=1)
    assert torch.allclose(p, (torch.from_numpy(COUNTS) + 1)[None] / 105.0)
    assert model_with("zero").output_bias.abs().sum() == 0
    assert "output_bias" in dict(model.named_parameters())


def test_a_model_without_a_bias_has_the_same_other_weights():
    plain, biased = model_with(None), model_with("unigram")
    assert plain.output_bias is None
    weights = biased.state_dict()
    assert plain.state_dict().keys() == weights.keys() - {"output_bias"}
    assert all(torch.equal(tensor, weights[name]) for name, tensor in plain.state_dict().items())


def test_unknown_starts_are_refused():
    with pytest.raises(UserError, match=r"model\.output_bias is 'c4'; it must be zero, unigram or null"):
        build_model(MODEL | {"output_bias": "c4"}, 5)
    with pytest.raises(ValueError, match=r"log_unigram has shape \(4,\), not \(5,\)"):
        model_with("unigram").set_output_bias(torch.zeros(4))
