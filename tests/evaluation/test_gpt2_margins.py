"""Effective margin and alpha (stop_jostling, Appendix B) and the command `measure-gpt2`."""

import json
import math

import pytest
import torch
from safetensors.torch import save_file

from rarepapers.__main__ import main
from rarepapers.core.errors import EXIT_USER_ERROR, UserError
from rarepapers.evaluation.gpt2_margins import effective_margin, per_token_margins
from rarepapers.models.gpt2 import FinalLayers, initialise

OPTIONS = ["measure-gpt2", "--name", "Tiny", "--width", "8", "--vocabulary", "23", "--percentile-index", "3"]


def trained(vocabulary: int = 23, width: int = 8) -> FinalLayers:
    generator = torch.Generator().manual_seed(0)
    return FinalLayers(
        torch.randn(vocabulary, width, generator=generator),
        1 + torch.randn(width, generator=generator),
        torch.randn(width, generator=generator),
    )


def literal(layers: FinalLayers, k: int) -> tuple[list[float], list[float]]:
    """margin_i and alpha_i by loops over tokens i, contexts t and dimensions."""
    rows, gamma, beta = layers.embeddings.tolist(), layers.norm_weight.tolist(), layers.norm_bias.tolist()
    hidden = []
    for w in rows:
        x = [g * value for g, value in zip(gamma, w, strict=True)]
        mean = sum(x) / len(x)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in x) / len(x) + 1e-5)
        hidden.append([g * (v - mean) / deviation + b for g, v, b in zip(gamma, x, beta, strict=True)])

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    margins, alphas = [], []
    for w_i in rows:
        differences = [dot(h, w) - dot(h, w_i) for h, w in zip(hidden, rows, strict=True)]
        lengths = [math.sqrt(dot(h, h)) * math.sqrt(dot(w, w)) for h, w in zip(hidden, rows, strict=True)]
        margins.append(sorted(differences)[k - 1])
        alphas.append(sorted(d / length for d, length in zip(differences, lengths, strict=True))[k - 1])
    return margins, alphas


@pytest.mark.parametrize("k", [1, 2, 23])
@pytest.mark.parametrize("block", [1, 5, 23, 100])
def test_margin_and_alpha_equal_literal_loops_for_any_block(k, block):
    margins, alphas = per_token_margins(trained(), k, block)
    expected_margins, expected_alphas = literal(trained(), k)
    assert margins.tolist() == pytest.approx(expected_margins, abs=1e-5)
    assert alphas.tolist() == pytest.approx(expected_alphas, abs=1e-6)


def test_the_table_shows_mean_and_standard_deviation():
    margins, alphas = literal(trained(), 2)
    found = effective_margin(trained(), 2)
    for values, mean, sigma in (
        (margins, found["margin"], found["margin_sigma"]),
        (alphas, found["alpha"], found["alpha_sigma"]),
    ):
        expected = sum(values) / len(values)
        assert mean == pytest.approx(expected, abs=1e-5)
        assert sigma == pytest.approx(math.sqrt(sum((v - expected) ** 2 for v in values) / len(values)), abs=1e-5)


def test_random_initialisation_gives_the_printed_values_at_a_smaller_vocabulary():
    # Table 3, Small: 14.04 and 0.940. 4,000 types at the same percentile; all 50,257 gave 14.043, 0.9398.
    found = effective_margin(initialise(4000, 768, seed=1), percentile_index=199)
    assert found["margin"] == pytest.approx(14.04, abs=0.05)
    assert found["alpha"] == pytest.approx(0.940, abs=0.002)


@pytest.mark.parametrize("k", [0, 24])
def test_a_percentile_outside_the_vocabulary_is_refused(k):
    with pytest.raises(UserError, match="percentile_index"):
        per_token_margins(trained(), k)


def test_command_without_a_checkpoint(tmp_path):
    # Without a checkpoint, the rule passes `--checkpoint` without a value.
    output = tmp_path / "tiny.json"
    assert main([*OPTIONS, "--checkpoint", "--seeds", "2", "5", "--output", str(output)]) == 0
    result = json.loads(output.read_text())
    assert result["pretrained"] is None
    assert "gpt2_weights" in result["reason"]
    assert result["random_init"] == [
        {"seed": seed, **effective_margin(initialise(23, 8, seed=seed), 3)} for seed in (2, 5)
    ]


def test_command_with_a_checkpoint(tmp_path):
    layers = trained()
    save_file(
        {
            "transformer.wte.weight": layers.embeddings,
            "transformer.ln_f.weight": layers.norm_weight,
            "transformer.ln_f.bias": layers.norm_bias,
        },
        tmp_path / "model.safetensors",
    )
    output = tmp_path / "tiny.json"
    assert main([*OPTIONS, "--checkpoint", str(tmp_path / "model.safetensors"), "--output", str(output)]) == 0
    result = json.loads(output.read_text())
    margins, _ = literal(layers, 3)
    assert result["pretrained"]["margin"] == pytest.approx(sum(margins) / 23, abs=1e-5)
    assert "reason" not in result
    assert result["signature"].startswith("effective_margin|percentile:3/23|")
    assert [entry["seed"] for entry in result["random_init"]] == [1]


def test_a_missing_checkpoint_is_refused(tmp_path, capsys):
    output = tmp_path / "tiny.json"
    assert main([*OPTIONS, "--checkpoint", str(tmp_path), "--output", str(output)]) == EXIT_USER_ERROR
    assert "there is no GPT-2 checkpoint" in capsys.readouterr().err
    assert not output.exists()
