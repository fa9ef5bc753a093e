"""The decoder, compared with a literal forward pass, and its initialisation."""

import math

import pytest
import torch
from torch.nn.utils import parametrize

from rarepapers.core.errors import UserError
from rarepapers.models.building import build_model, load_model, plain_weights
from rarepapers.models.layers import sinusoidal_table
from rarepapers.training.checkpoint import save_tensors

SETTINGS = {"name": "decoder", "layers": 3, "heads": 2, "width": 12, "context": 9}


def literal_forward(model, ids):
    """One sequence, position by position and head by head: hidden vectors T x d."""
    p = {name: value.detach() for name, value in model.named_parameters()}

    def norm(x, weight, bias=0):
        return (x - x.mean()) / torch.sqrt(((x - x.mean()) ** 2).mean() + 1e-5) * weight + bias

    width, heads = model.config.width, model.config.heads
    size = width // heads
    scale = math.sqrt(width) if model.config.scale_embedding else 1
    x = [scale * p["token_embedding.weight"][i] + model.positions[t].detach() for t, i in enumerate(ids)]
    for b in range(model.config.layers):
        w = {name.removeprefix(f"blocks.{b}."): value for name, value in p.items() if name.startswith(f"blocks.{b}.")}

        def linear(name, v, w=w):
            return w[f"{name}.weight"] @ v + w.get(f"{name}.bias", 0)

        normed = [norm(v, w["attention_norm.weight"], w.get("attention_norm.bias", 0)) for v in x]
        qkv = [linear("attention.qkv", v) for v in normed]
        for_output = []
        for t in range(len(x)):
            mixed = []
            for head in range(heads):
                at = slice(head * size, (head + 1) * size)
                scores = [qkv[t][:width][at] @ qkv[s][width : 2 * width][at] / math.sqrt(size) for s in range(t + 1)]
                weights = torch.softmax(torch.stack(scores), 0)
                mixed.append(sum(a * qkv[s][2 * width :][at] for s, a in enumerate(weights)))
            for_output.append(linear("attention.projection", torch.cat(mixed)))
        x = [v + y for v, y in zip(x, for_output, strict=True)]
        for t, v in enumerate(x):
            normed = norm(v, w["feed_forward_norm.weight"], w.get("feed_forward_norm.bias", 0))
            inside = linear("feed_forward.expansion", normed)
            inside = inside * 0.5 * (1 + torch.erf(inside / math.sqrt(2)))
            x[t] = v + linear("feed_forward.projection", inside)
    return torch.stack([norm(v, p["final_norm.weight"], p.get("final_norm.bias", 0)) for v in x])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True},
        {"positions": "sinusoidal", "scale_embedding": True, "linear_init": "xavier", "bias": True, "tied": False},
    ],
)
def test_forward_equals_a_literal_one(options):
    model = build_model(SETTINGS | {"init_std": 0.3} | options, 7, seed=1).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # they start at zero, which would hide a forgotten one
                parameter.normal_(generator=torch.Generator().manual_seed(len(name)))
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


def test_initialisation_has_std_0_02_and_less_into_the_residual_stream():
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
    [
        ({"name": "rnn"}, "model.name is 'rnn'"),
        ({"heads": 5}, "do not divide"),
        ({"depth": 3}, "depth"),
        ({"positions": "rotary"}, "model.positions is 'rotary'; it can be learned, sinusoidal"),
        ({"linear_init": "he"}, "model.linear_init is 'he'; it can be normal, xavier"),
        ({"positions": "sinusoidal", "width": 2}, "model.width is 2; sinusoidal positions need at least 4"),
    ],
)
def test_wrong_settings_are_refused(change, expected):
    with pytest.raises(UserError, match=expected):
        build_model(SETTINGS | change, 7)


def test_names_of_the_weights_are_unchanged():
    """Recorded runs and evaluation use them; a sinusoidal table is not a weight."""
    block = ["attention_norm", "attention.qkv", "attention.projection", "feed_forward_norm"]
    block += ["feed_forward.expansion", "feed_forward.projection"]
    blocks = [f"blocks.{b}.{name}.weight" for b in range(3) for name in block]
    inputs, positions = "token_embedding.weight", "position_embedding.weight"
    assert list(build_model(SETTINGS, 7).state_dict()) == [inputs, positions, *blocks, "final_norm.weight"]
    sinusoidal = build_model(SETTINGS | {"positions": "sinusoidal"}, 7)
    assert list(sinusoidal.state_dict()) == [inputs, *blocks, "final_norm.weight"]


@pytest.mark.parametrize("width", [8, 9])
def test_the_sinusoidal_table_is_fairseqs(width):
    """SinusoidalPositionalEmbedding.get_embedding with padding id 1: the first token is at position 2."""
    table = sinusoidal_table(5, width)
    half = width // 2
    for t in range(5):
        for k in range(half):
            angle = (t + 2) * math.exp(-math.log(10_000) * k / (half - 1))
            assert table[t, k].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, half + k].item() == pytest.approx(math.cos(angle), abs=1e-6)
    assert (table[:, 2 * half :] == 0).all()


def test_xavier_matrices_are_fairseqs():
    options = {"linear_init": "xavier", "init_std": 0.3, "bias": True, "width": 128, "heads": 4}
    model = build_model(SETTINGS | options, 500, seed=2)
    bounds = {
        "attention.qkv": math.sqrt(6 / 256) / math.sqrt(2),
        "attention.projection": math.sqrt(6 / 256),
        "feed_forward.expansion": math.sqrt(6 / 640),
        "feed_forward.projection": math.sqrt(6 / 640),
    }
    for name, parameter in model.named_parameters():
        part = name.removesuffix(".weight").split(".", 2)[-1]
        if part in bounds:
            assert parameter.abs().max() <= bounds[part], name
            assert parameter.std().item() == pytest.approx(bounds[part] / math.sqrt(3), rel=0.05), name
        elif "embedding" in name:
            assert parameter.std().item() == pytest.approx(0.3, rel=0.05), name
        elif name.endswith("bias"):
            assert (parameter == 0).all(), name


@pytest.mark.parametrize(
    ("layers", "heads", "width", "low", "high"),
    [(6, 8, 512, 41e6, 43e6), (24, 16, 1024, 347e6, 349e6)],
)
def test_the_papers_language_models_have_their_numbers_of_parameters(layers, heads, width, low, high):
    """agg: 42M, and 347M to 349M by our own count (docs/deviations.md, A17); tied over 44,256 types."""
    settings = {"name": "decoder", "layers": layers, "heads": heads, "width": width, "context": 1024, "bias": True}
    for positions in ("learned", "sinusoidal"):
        with torch.device("meta"):
            model = build_model(settings | {"positions": positions}, 44_256)
        number = sum(parameter.numel() for parameter in model.parameters())
        blocks = layers * (12 * width**2 + 13 * width) + 2 * width
        assert number == 44_256 * width + blocks + (1024 * width if positions == "learned" else 0)
        assert low < number < high


def test_attention_dropout_defaults_to_dropout():
    def hidden(**options):
        model = build_model(SETTINGS | {"dropout": 0.3} | options, 7, seed=1).train()
        torch.manual_seed(5)
        return model(torch.tensor([[3, 1, 4, 1, 5]]))

    assert torch.equal(hidden(), hidden(attention_dropout=0.3))
    assert not torch.equal(hidden(), hidden(attention_dropout=0.0))


def test_recomputed_activations_change_no_bit():
    ids = torch.tensor([[3, 1, 4, 1, 5], [0, 6, 6, 2, 3]])
    gradients = []
    for recomputed in (False, True):
        model = build_model(SETTINGS | {"dropout": 0.2}, 7, seed=1).train()
        model.checkpoint_activations = recomputed
        calls = []
        model.blocks[0].register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        torch.manual_seed(5)
        model.logits(model(ids)).square().sum().backward()
        assert len(calls) == 1 + recomputed
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_sequence_longer_than_the_context_is_refused():
    with pytest.raises(UserError, match="10 positions do not fit"):
        build_model(SETTINGS, 7)(torch.zeros(1, 10, dtype=torch.int64))


class Doubled(torch.nn.Module):
    """A parametrisation: a matrix as twice its half."""

    def forward(self, half):
        return 2 * half

    def right_inverse(self, matrix):
        return matrix / 2


@pytest.mark.parametrize("tied", [True, False])
def test_a_parametrised_matrix_is_exported_as_a_plain_one(tmp_path, tied):
    settings = SETTINGS | {"tied": tied}
    model = build_model(settings, 7, seed=1).eval()
    expected = model.state_dict()
    if tied:
        parametrize.register_parametrization(model.token_embedding, "weight", Doubled())
    else:
        parametrize.register_parametrization(model, "output_embedding", Doubled())
    weights = plain_weights(model)
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected.items())
    save_tensors(tmp_path / "model.safetensors", weights, {"run": "x"})
    ids = torch.tensor([[0, 1, 2]])
    assert torch.equal(load_model(tmp_path / "model.safetensors", settings, 7)(ids), model(ids))


def test_the_initial_values_of_a_decoder_are_unchanged():
    """Recorded runs started from them: sums of weights and of absolute logits, from the version that recorded them."""
    xavier = {"positions": "sinusoidal", "linear_init": "xavier", "bias": True, "tied": False, "init_std": 0.3}
    expected = {
        False: (-0.273327, 0.006881, 0.136093, 4.28552),
        True: (-4.099911, 0.333309, 5.594721, 30.87152),
    }
    names = ("token_embedding.weight", "blocks.0.attention.qkv.weight", "blocks.2.feed_forward.projection.weight")
    ids = torch.tensor([[3, 1, 4, 1, 5], [0, 6, 6, 2, 3]])
    for is_xavier, numbers in expected.items():
        model = build_model(SETTINGS | (xavier if is_xavier else {}), 7, seed=1)
        with torch.no_grad():
            sums = [model.get_parameter(name).double().sum().item() for name in names]
            sums.append(model.logits(model(ids)).double().abs().sum().item())
        assert sums == pytest.approx(numbers, abs=2e-5)
