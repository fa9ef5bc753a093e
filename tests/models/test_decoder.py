"""The decoder against a literal forward pass, and its initialisation."""

import math

import pytest
import torch

from raretok.errors import UserError
from raretok.models import build_model, load_model
from raretok.training.checkpoint import save_tensors

SETTINGS = {"name": "decoder", "layers": 3, "heads": 2, "width": 12, "context": 9}


def literal_forward(model, ids):
    """One sequence, position by position and head by head: hidden vectors T x d."""
    p = {name: value.detach() for name, value in model.named_parameters()}

    def norm(x, weight):
        return (x - x.mean()) / torch.sqrt(((x - x.mean()) ** 2).mean() + 1e-5) * weight

    width, heads = model.config.width, model.config.heads
    size = width // heads
    x = [p["token_embedding.weight"][i] + p["position_embedding.weight"][t] for t, i in enumerate(ids)]
    for b in range(model.config.layers):
        w = {name.removeprefix(f"blocks.{b}."): value for name, value in p.items() if name.startswith(f"blocks.{b}.")}
        normed = [norm(v, w["attention_norm.weight"]) for v in x]
        qkv = [w["attention.qkv.weight"] @ v for v in normed]
        for_output = []
        for t in range(len(x)):
            mixed = []
            for head in range(heads):
                at = slice(head * size, (head + 1) * size)
                scores = [qkv[t][:width][at] @ qkv[s][width : 2 * width][at] / math.sqrt(size) for s in range(t + 1)]
                weights = torch.softmax(torch.stack(scores), 0)
                mixed.append(sum(a * qkv[s][2 * width :][at] for s, a in enumerate(weights)))
            for_output.append(w["attention.projection.weight"] @ torch.cat(mixed))
        x = [v + y for v, y in zip(x, for_output, strict=True)]
        for t, v in enumerate(x):
            inside = w["feed_forward.expansion.weight"] @ norm(v, w["feed_forward_norm.weight"])
            inside = inside * 0.5 * (1 + torch.erf(inside / math.sqrt(2)))
            x[t] = v + w["feed_forward.projection.weight"] @ inside
    return torch.stack([norm(v, p["final_norm.weight"]) for v in x])


def test_forward_equals_a_literal_one():
    model = build_model(SETTINGS | {"init_std": 0.3}, 7, seed=1).double()
    ids = torch.tensor([[3, 1, 4, 1, 5], [0, 6, 6, 2, 3]])
    hidden = model(ids)
    for sequence, ours in zip(ids, hidden, strict=True):
        torch.testing.assert_close(ours, literal_forward(model, sequence.tolist()), rtol=0, atol=1e-12)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.output_weight.T)


def test_the_papers_model_has_its_number_of_parameters():
    """stop_jostling 4.1: 800k, that is 786,432 + 130 x 128 + norms, positions not counted."""
    settings = {"name": "decoder", "layers": 4, "heads": 4, "width": 128, "context": 64}
    model = build_model(settings, 130)
    counted = sum(p.numel() for p in model.parameters()) - model.position_embedding.weight.numel()
    assert counted == 786_432 + 130 * 128 + 9 * 128


def test_initialisation_is_n_0_02_and_smaller_into_the_residual_stream():
    model = build_model(SETTINGS | {"width": 128, "heads": 4}, 500, seed=2)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            expected = 0.02 / math.sqrt(6) if "projection" in name else 0.02
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name


def test_tied_and_untied_models_of_a_seed_start_alike():
    tied, untied = build_model(SETTINGS, 7, seed=3), build_model(SETTINGS | {"tied": False}, 7, seed=3)
    for name, parameter in tied.named_parameters():
        assert torch.equal(parameter, untied.get_parameter(name)), name
    assert tied.output_weight is tied.input_weight
    assert untied.output_weight is not untied.input_weight
    assert not torch.equal(build_model(SETTINGS, 7, seed=4).input_weight, tied.input_weight)


def test_weights_round_trip(tmp_path):
    model = build_model(SETTINGS | {"tied": False}, 7, seed=1).eval()
    save_tensors(tmp_path / "model.safetensors", model.state_dict(), {"run": "x"})
    loaded = load_model(tmp_path / "model.safetensors", SETTINGS | {"tied": False}, 7)
    ids = torch.tensor([[0, 1, 2]])
    assert torch.equal(loaded(ids), model(ids))
    assert not loaded.input_weight.requires_grad
    with pytest.raises(UserError, match="does not hold the weights of this model"):
        load_model(tmp_path / "model.safetensors", SETTINGS, 7)


@pytest.mark.parametrize(
    ("change", "expected"),
    [({"name": "rnn"}, "model.name is 'rnn'"), ({"heads": 5}, "do not divide"), ({"depth": 3}, "depth")],
)
def test_wrong_settings_are_one_sentence(change, expected):
    with pytest.raises(UserError, match=expected):
        build_model(SETTINGS | change, 7)
