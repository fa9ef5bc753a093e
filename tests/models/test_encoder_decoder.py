"""The encoder-decoder, compared with torch.nn.Transformer; initialisation, tying, output bias."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from rarepapers.core.errors import UserError
from rarepapers.models.building import average_weights, build_model, load_model
from rarepapers.models.layers import sinusoidal_table
from rarepapers.training.checkpoint import save_tensors

SIZES = {"name": "encoder_decoder", "encoder_layers": 2, "decoder_layers": 3, "heads": 2, "width": 12, "context": 9}
SIZES |= {"tying": "three_way"}
TYPES = 11
SOURCE = torch.tensor([[5, 7, 4, 2, 1, 1], [9, 6, 4, 10, 8, 2], [3, 2, 1, 1, 1, 1]])
INPUTS = torch.tensor([[0, 4, 9, 1, 1], [0, 5, 6, 7, 8], [0, 10, 1, 1, 1]])
TYINGS = ("three_way", "two_way", "decoder", "encoder_decoder", "none")


def random_model(seed=1, **options):
    """A model in evaluation mode whose norms and biases, which start as 1 and 0, are random."""
    model = build_model(SIZES | options, TYPES, seed=seed).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for _, parameter in sorted(model.named_parameters()):
        if parameter.dim() == 1:
            parameter.data.normal_(0.5, 0.5, generator=generator)
    return model


def torchs_transformer(model):
    """`nn.TransformerEncoder` and `nn.TransformerDecoder` with the weights of `model`."""
    c, ours = model.config, model.state_dict()
    options = {
        "d_model": c.width,
        "nhead": c.heads,
        "dim_feedforward": c.inner or 4 * c.width,
        "dropout": 0.0,
        "activation": c.activation,
        "batch_first": True,
        "norm_first": c.norm == "pre",
    }

    def norm():
        return nn.LayerNorm(c.width) if c.norm == "pre" else None

    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**options), c.encoder_layers, norm(), enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), c.decoder_layers, norm())
    names = {
        "self_attn.in_proj_": "attention.qkv.",
        "self_attn.out_proj.": "attention.projection.",
        "multihead_attn.out_proj.": "cross_attention.projection.",
        "linear1.": "feed_forward.expansion.",
        "linear2.": "feed_forward.projection.",
        "norm1.": "attention_norm.",
        "norm2.": "cross_attention_norm.",
        "norm3.": "feed_forward_norm.",
    }
    for theirs, side in ((encoder, "encoder"), (decoder, "decoder")):
        weights = {}
        for name in theirs.state_dict():
            ending = name.split(".")[-1].replace("in_proj_", "")
            if name.startswith("norm"):
                weights[name] = ours[f"{side}_norm.{ending}"]
                continue
            _, block, part = name.split(".", 2)
            prefix = f"{side}.{block}."
            if part.startswith("multihead_attn.in_proj_"):
                parts = [ours[f"{prefix}cross_attention.{key}.{ending}"] for key in ("query", "key_value")]
                weights[name] = torch.cat(parts)
                continue
            stem = part.removesuffix(ending)
            own = "feed_forward_norm." if (side, stem) == ("encoder", "norm2.") else names[stem]
            weights[name] = ours[prefix + own + ending]
        theirs.double().load_state_dict(weights)
    return encoder.eval(), decoder.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("options", [{}, {"activation": "gelu", "inner": 7, "scale_embedding": False}])
def test_forward_equals_torchs(norm, options):
    model = random_model(norm=norm, tying="none", **options)
    encoder, decoder = torchs_transformer(model)
    scale = math.sqrt(12) if model.config.scale_embedding else 1
    table = sinusoidal_table(9, 12).double()
    x = F.embedding(SOURCE, model.source_weight) * scale + table[:6]
    padding = SOURCE == 1
    memory = encoder(x, src_key_padding_mask=padding)
    y = F.embedding(INPUTS, model.input_weight) * scale + table[:5]
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = decoder(y, memory, tgt_mask=future, memory_key_padding_mask=padding)
    hidden = model(SOURCE, INPUTS)
    real = INPUTS != 1
    torch.testing.assert_close(hidden[real], expected[real], rtol=0, atol=1e-12)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.output_weight.T)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_padding_changes_nothing(positions):
    model = random_model(positions=positions)
    together = model(SOURCE, INPUTS)
    for row in range(3):
        source, inputs = SOURCE[row][SOURCE[row] != 1], INPUTS[row][INPUTS[row] != 1]
        alone = model(source[None], inputs[None])[0]
        torch.testing.assert_close(together[row, : len(inputs)], alone, rtol=0, atol=1e-12)
    with torch.no_grad():
        model.token_embedding.weight[1] = 1e3
    torch.testing.assert_close(model(SOURCE, INPUTS)[INPUTS != 1], together[INPUTS != 1], rtol=0, atol=1e-12)


def test_each_side_learns_its_own_positions():
    model = random_model(positions="learned")
    memory, mask = model.encode(SOURCE)
    hidden = model.decode(INPUTS, memory, mask)
    with torch.no_grad():
        model.position_embedding.weight[0] += 1
        assert torch.equal(model.encode(SOURCE)[0], memory)
        assert not torch.equal(model.decode(INPUTS, memory, mask), hidden)
        model.source_position_embedding.weight[0] += 1
    assert not torch.equal(model.encode(SOURCE)[0], memory)


def test_padding_gets_no_gradient():
    """The loss over real targets has zero gradient at the padding embedding, and a finite one everywhere."""
    model = random_model(tying="encoder_decoder", dropout=0.1).train()
    model.logits(model(SOURCE, INPUTS))[INPUTS != 1].square().sum().backward()
    assert (model.input_weight.grad[1] == 0).all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_attention_is_causal():
    model = random_model()
    changed = INPUTS.clone()
    changed[:, 3:] = 4
    torch.testing.assert_close(model(SOURCE, changed)[:, :3], model(SOURCE, INPUTS)[:, :3], rtol=0, atol=1e-12)


def test_tied_matrices_are_one_parameter():
    for tying in TYINGS:
        model = build_model(SIZES | {"tying": tying}, TYPES, seed=1)
        assert (model.source_weight is model.input_weight) == (tying in ("three_way", "encoder_decoder")), tying
        assert (model.output_weight is model.input_weight) == (tying in ("three_way", "two_way", "decoder")), tying
        number = len({id(weight) for weight in (model.source_weight, model.input_weight, model.output_weight)})
        others = sum(p.numel() for name, p in model.named_parameters() if "embedding" not in name)
        assert sum(p.numel() for p in model.parameters()) == others + number * TYPES * 12, tying
        assert model.config.tied == (model.output_weight is model.input_weight)


def test_models_of_one_seed_start_alike_with_any_tying():
    expected = dict(build_model(SIZES, TYPES, seed=3).named_parameters())
    for tying in TYINGS:
        model = build_model(SIZES | {"tying": tying}, TYPES, seed=3)
        again = build_model(SIZES | {"tying": tying}, TYPES, seed=3)
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, again.get_parameter(name)), (tying, name)
            if name not in ("source_embedding.weight", "output_embedding"):
                assert torch.equal(parameter, expected[name]), (tying, name)
    assert not torch.equal(build_model(SIZES, TYPES, seed=4).input_weight, expected["token_embedding.weight"])


def test_starting_from_a_seed_leaves_torchs_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    build_model(SIZES, TYPES)
    build_model(SIZES, TYPES).initialise(1)
    first = build_model(SIZES, TYPES, seed=2).input_weight
    torch.manual_seed(8)
    assert torch.equal(build_model(SIZES, TYPES, seed=2).input_weight, first)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), expected)


def test_matrices_start_as_fairseqs():
    model = build_model(SIZES | {"width": 128, "heads": 4, "tying": "none", "positions": "learned"}, 500, seed=2)
    square = math.sqrt(6 / 256) / math.sqrt(2)
    bounds = {
        "attention.qkv": square,
        "cross_attention.query": square,
        "cross_attention.key_value": square,
        "attention.projection": math.sqrt(6 / 256),
        "cross_attention.projection": math.sqrt(6 / 256),
        "feed_forward.expansion": math.sqrt(6 / 640),
        "feed_forward.projection": math.sqrt(6 / 640),
    }
    for name, parameter in model.named_parameters():
        part = name.removesuffix(".weight").split(".", 2)[-1]
        if part in bounds and parameter.dim() > 1:
            assert parameter.abs().max() <= bounds[part], name
            assert parameter.std().item() == pytest.approx(bounds[part] / math.sqrt(3), rel=0.05), name
        elif "embedding" in name:
            assert parameter.std().item() == pytest.approx(128**-0.5, rel=0.05), name
        elif "norm" not in name:
            assert name.endswith("bias"), name
            assert (parameter == 0).all(), name


def test_initialisation_options():
    options = {"width": 128, "heads": 4, "linear_init": "normal", "embedding_std": 0.3, "tying": "encoder_decoder"}
    model = build_model(SIZES | options | {"output_init": "truncated"}, 500, seed=2)
    assert model.encoder[0].attention.qkv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.input_weight.std().item() == pytest.approx(0.3, rel=0.05)
    std = 128**-0.5
    assert model.output_weight.abs().max().item() == pytest.approx(2 * std, rel=0.01)
    # A normal distribution truncated at two standard deviations has 0.8796 of its standard deviation.
    assert model.output_weight.std().item() == pytest.approx(0.8796 * std, rel=0.02)
    tied = build_model(SIZES | options | {"output_init": "truncated", "tying": "two_way"}, 500, seed=2)
    assert tied.input_weight.abs().max() <= 2 * std
    assert tied.source_weight.std().item() == pytest.approx(0.3, rel=0.05)


def log_unigram(types=TYPES):
    counts = torch.arange(1, types + 1, dtype=torch.float64)
    return (counts / counts.sum()).log()


def arms(**options):
    settings = SIZES | {"tying": "encoder_decoder", "output_init": "truncated"} | options
    models = {bias: build_model(settings | {"output_bias": bias}, TYPES, seed=5) for bias in (None, "zero", "unigram")}
    for model in models.values():
        model.set_output_bias(log_unigram())
    return models


@pytest.mark.parametrize("scale", ["none", "frobenius", "spectral"])
def test_the_three_starts_differ_only_in_the_bias(scale):
    models = arms(output_scale=scale)
    assert models[None].output_bias is None
    assert (models["zero"].output_bias == 0).all()
    assert torch.equal(models["unigram"].output_bias, log_unigram().float())
    for name, parameter in models[None].named_parameters():
        assert torch.equal(models["zero"].get_parameter(name), parameter), name
        assert torch.equal(models["unigram"].get_parameter(name), parameter), name
    norm = {"frobenius": "fro", "spectral": 2}.get(scale)
    if norm is not None:
        actual = torch.linalg.matrix_norm(models[None].output_weight, norm).item()
        assert actual == pytest.approx(log_unigram().norm().item(), rel=1e-5)
    before = models["unigram"].output_weight.clone()
    models["unigram"].set_output_bias(log_unigram())
    torch.testing.assert_close(models["unigram"].output_weight, before)
    plain = arms()["unigram"].output_weight
    assert torch.equal(plain, before) == (scale == "none")


def test_the_bias_is_added_and_trained():
    model = arms()["unigram"]
    hidden = model(SOURCE, INPUTS)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.output_weight.T + log_unigram().float())
    model.logits(hidden).logsumexp(-1).sum().backward()
    assert model.output_bias.grad.abs().sum() > 0
    assert "output_bias" in model.state_dict()
    assert "output_bias" not in arms()[None].state_dict()
    assert (build_model(SIZES | {"output_bias": "c4"}, TYPES, seed=1).output_bias == 0).all()


def test_a_bias_of_other_types_is_refused():
    for wrong in ((torch.zeros(3),), (log_unigram(), torch.zeros(3))):
        with pytest.raises(ValueError, match=r"shape \(3,\), not \(11,\)"):
            build_model(SIZES | {"output_bias": "unigram"}, TYPES, seed=1).set_output_bias(*wrong)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"heads": 5}, "do not divide"),
        ({"layers": 3}, "layers"),
        ({"tying": "all"}, "model.tying is 'all'; it can be three_way, two_way"),
        ({"norm": "sandwich"}, "model.norm is 'sandwich'"),
        ({"activation": "tanh"}, "model.activation is 'tanh'"),
        ({"output_init": "xavier"}, "model.output_init"),
        ({"output_scale": "l1"}, "model.output_scale"),
        ({"width": 2}, "sinusoidal positions need at least 4"),
    ],
)
def test_wrong_settings_of_an_encoder_decoder_are_refused(change, expected):
    with pytest.raises(UserError, match=expected):
        build_model(SIZES | change, TYPES)


@pytest.mark.parametrize(("source", "target"), [(10, 3), (3, 10)])
def test_a_sentence_longer_than_the_context_is_refused(source, target):
    with pytest.raises(UserError, match="10 positions do not fit"):
        build_model(SIZES, TYPES)(torch.full((1, source), 4), torch.full((1, target), 4))


@pytest.mark.parametrize(("heads", "width", "low", "high"), [(8, 512, 64.5e6, 65.5e6), (16, 1024, 217e6, 219e6)])
def test_the_papers_translation_models_have_their_numbers_of_parameters(heads, width, low, high):
    """agg table 12: 65M and 218M, three-way tied over 40,624 types."""
    sizes = {"encoder_layers": 6, "decoder_layers": 6, "heads": heads, "width": width, "context": 1024}
    with torch.device("meta"):
        model = build_model(SIZES | sizes, 40_624)
    number = sum(parameter.numel() for parameter in model.parameters())
    encoder, decoder = 12 * width**2 + 13 * width, 16 * width**2 + 19 * width
    assert number == 40_624 * width + 6 * (encoder + decoder) + 4 * width
    assert low < number < high


def test_recomputed_activations_change_no_bit():
    gradients = []
    for recomputed in (False, True):
        model = build_model(SIZES | {"dropout": 0.2}, TYPES, seed=1).train()
        model.checkpoint_activations = recomputed
        calls = []
        model.decoder[0].register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        model.encoder[0].register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        torch.manual_seed(5)
        model.logits(model(SOURCE, INPUTS)).square().sum().backward()
        assert len(calls) == 2 * (1 + recomputed)
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_dropout_acts_on_residuals_and_on_attention_if_set():
    def hidden(**options):
        model = build_model(SIZES | options, TYPES, seed=1).train()
        torch.manual_seed(5)
        return model(SOURCE, INPUTS)

    assert torch.equal(hidden(dropout=0.3), hidden(dropout=0.3, attention_dropout=0.3))
    assert not torch.equal(hidden(dropout=0.3), hidden(dropout=0.3, attention_dropout=0.0))
    assert not torch.equal(hidden(), hidden(attention_dropout=0.3))
    modules = build_model(SIZES | {"dropout": 0.3, "attention_dropout": 0.2}, TYPES).modules()
    dropouts = [(m.dropout, m.attention_dropout) for m in modules if hasattr(m, "attention_dropout")]
    assert dropouts == [(0.3, 0.2)] * (2 + 2 * 3)


def test_weights_of_an_encoder_decoder_round_trip(tmp_path):
    settings = SIZES | {"tying": "encoder_decoder", "output_bias": "unigram"}
    model = build_model(settings, TYPES, seed=1).eval()
    model.set_output_bias(log_unigram())
    save_tensors(tmp_path / "model.safetensors", model.state_dict(), {"run": "x"})
    loaded = load_model(tmp_path / "model.safetensors", settings, TYPES)
    assert torch.equal(loaded.logits(loaded(SOURCE, INPUTS)), model.logits(model(SOURCE, INPUTS)))
    with pytest.raises(UserError, match="does not hold the weights of this model"):
        load_model(tmp_path / "model.safetensors", SIZES, TYPES)


def test_names_of_an_encoder_decoders_weights_are_unchanged():
    names = set(build_model(SIZES | {"tying": "none", "output_bias": "zero", "bias": False}, TYPES).state_dict())
    shared = ["attention_norm", "attention.qkv", "attention.projection"]
    feed_forward = ["feed_forward_norm", "feed_forward.expansion", "feed_forward.projection"]
    crossing = [f"cross_attention.{name}" for name in ("query", "key_value", "projection")]
    expected = {f"encoder.{b}.{name}.weight" for b in range(2) for name in [*shared, *feed_forward]}
    decoder = [*shared, "cross_attention_norm", *crossing, *feed_forward]
    expected |= {f"decoder.{b}.{name}.weight" for b in range(3) for name in decoder}
    expected |= {"token_embedding.weight", "source_embedding.weight", "output_embedding", "output_bias"}
    assert names == expected | {"encoder_norm.weight", "decoder_norm.weight"}


def test_the_mean_of_checkpoints():
    first, second = ({"w": torch.full((2,), value), "b": torch.tensor([value])} for value in (1.0, 4.0))
    average = average_weights([first, second, second])
    assert average["w"].tolist() == [3.0, 3.0]
    assert average["b"].dtype == torch.float32
    assert torch.equal(average_weights([first])["w"], first["w"])
