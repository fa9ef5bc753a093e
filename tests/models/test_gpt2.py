"""Reading embeddings and final layer norm of a public GPT-2."""

import pytest
import torch
from safetensors.torch import save_file

from rarepapers.core.errors import UserError
from rarepapers.models.gpt2 import initialise, load_final_layers


def write(path, prefix="", vocabulary=11, width=4, leave_out=""):
    tensors = {
        "wte.weight": torch.arange(vocabulary * width, dtype=torch.float32).view(vocabulary, width),
        "ln_f.weight": torch.full((width,), 2.0),
        "ln_f.bias": torch.full((width,), -1.0),
        "h.0.attn.c_attn.weight": torch.zeros(width, 3 * width),
    }
    save_file({prefix + name: tensor for name, tensor in tensors.items() if name != leave_out}, path)
    return tensors


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("folder", [True, False])
def test_tensors_are_found_by_either_name_in_a_file_or_a_folder(tmp_path, prefix, folder):
    tensors = write(tmp_path / "model.safetensors", prefix)
    layers = load_final_layers(tmp_path if folder else tmp_path / "model.safetensors", 11, 4)
    assert torch.equal(layers.embeddings, tensors["wte.weight"])
    assert torch.equal(layers.norm_weight, tensors["ln_f.weight"])
    assert torch.equal(layers.norm_bias, tensors["ln_f.bias"])


def test_half_precision_becomes_float32(tmp_path):
    tensors = {"wte.weight": torch.ones(3, 2), "ln_f.weight": torch.ones(2), "ln_f.bias": torch.ones(2)}
    save_file({name: tensor.half() for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    assert load_final_layers(tmp_path, 3, 2).embeddings.dtype == torch.float32


def test_the_norm_is_torchs_layer_norm(tmp_path):
    write(tmp_path / "model.safetensors")
    layers = load_final_layers(tmp_path, 11, 4)
    norm = torch.nn.LayerNorm(4)
    norm.weight.data.fill_(2.0)
    norm.bias.data.fill_(-1.0)
    x = torch.randn(5, 4)
    torch.testing.assert_close(layers.normalise(x), norm(x).detach())


@pytest.mark.parametrize(
    ("options", "sizes", "message"),
    [
        ({"leave_out": "ln_f.bias"}, (11, 4), "holds no tensor ln_f.bias"),
        ({"leave_out": "wte.weight"}, (11, 4), "holds no tensor wte.weight"),
        ({}, (11, 5), r"wte.weight .* has shape \(11, 4\), but \(11, 5\)"),
        ({}, (12, 4), r"wte.weight .* has shape \(11, 4\), but \(12, 4\)"),
    ],
)
def test_a_wrong_checkpoint_is_refused(tmp_path, options, sizes, message):
    write(tmp_path / "model.safetensors", **options)
    with pytest.raises(UserError, match=message):
        load_final_layers(tmp_path, *sizes)


def test_a_missing_or_broken_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no GPT-2 checkpoint"):
        load_final_layers(tmp_path, 11, 4)
    (tmp_path / "model.safetensors").write_bytes(b"no safetensors")
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_final_layers(tmp_path, 11, 4)


def test_default_initialisation():
    layers = initialise(2000, 50, seed=1)
    assert layers.embeddings.std().item() == pytest.approx(0.02, rel=0.02)
    assert layers.embeddings.mean().item() == pytest.approx(0.0, abs=3e-4)
    assert torch.equal(layers.norm_weight, torch.ones(50))
    assert torch.equal(layers.norm_bias, torch.zeros(50))
    assert torch.equal(layers.embeddings, initialise(2000, 50, seed=1).embeddings)
    assert not torch.equal(layers.embeddings, initialise(2000, 50, seed=2).embeddings)
