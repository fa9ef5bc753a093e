"""Fitted temperature, and metrics at it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rarepapers.data.characters.prepare import prepare
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.evaluation import character_run, language
from rarepapers.evaluation.character_run import fitted_rows, mixed
from rarepapers.evaluation.characters import score, score_languages
from rarepapers.evaluation.temperature import HIGHEST, LOWEST, fit, temperature_rows
from rarepapers.evaluation.text_scores import score as score_text
from rarepapers.models.building import build_model
from raretok.metrics.group_statistics import Groups, distinct, group_perplexities
from raretok.metrics.perplexity import TEMPERATURES

MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 16, "context": 8}
SETTINGS = {"batch_size": 1, "drop_incomplete": True, "examples": 1, "neighbours": 1}


def binary_loss(logit, share):
    """Mean loss of a model that gives one of two types `logit` more and is right in `share` of the cases."""
    return lambda temperature: math.log1p(math.exp(-logit / temperature)) + (1 - share) * logit / temperature


@pytest.mark.parametrize(("logit", "share"), [(3.0, 0.9), (3.0, 0.6), (0.5, 0.95)])
def test_the_temperature_of_two_types_has_a_closed_form(logit, share):
    """The best has logit / T = ln(share / (1 - share))."""
    expected = logit / math.log(share / (1 - share))
    assert fit(binary_loss(logit, share)) == pytest.approx(expected, rel=2e-3)


def test_a_text_that_fits_already_keeps_its_temperature():
    assert fit(lambda temperature: (temperature - 1) ** 2 if temperature != 1 else -1e-9) == 1.0


@pytest.mark.parametrize(
    ("mean_nll", "end"),
    [
        (lambda temperature: temperature, LOWEST),  # the flatter the logits, the steeper they should be
        (lambda temperature: 1 / temperature, HIGHEST),
        (binary_loss(3.0, 0.9), None),
    ],
)
def test_a_temperature_at_the_end_of_the_search_is_reported(mean_nll, end, capsys):
    temperature = fit(mean_nll)
    fitted, at_bound = temperature_rows(temperature, 7)
    assert (fitted["metric"], fitted["value"], fitted["n"]) == ("fitted_temperature", temperature, 7)
    assert (at_bound["metric"], at_bound["value"]) == ("temperature_at_bound", float(end is not None))
    if end:
        assert temperature == pytest.approx(end, rel=3e-3)
    assert ("warning: the temperature that fits the validation text is" in capsys.readouterr().err) == bool(end)


def test_only_the_ends_of_the_sweep_are_reported():
    """For characters, the search has steps of a hundredth: the last value but one is not an end."""
    ends = TEMPERATURES[0], TEMPERATURES[-1]
    found = [temperature_rows(value, 1, *ends)[1]["value"] for value in (0.01, 0.02, 1.0, 1.99, 2.0, math.nan)]
    assert found == [1, 0, 0, 0, 1, 0]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Characters whose test text has other letters than the validation text."""
    folder = tmp_path_factory.mktemp("halves")
    generator = np.random.default_rng(0)
    texts = {}
    for split, letters, length in (("train", "abcdef", 1800), ("valid", "abc", 100), ("test", "def", 100)):
        texts[split] = "".join(generator.choice(list(letters), length))
    (folder / "text.txt").write_text("".join(texts.values()))
    corpus = {"kind": "characters", "splits": {"train": 0.9, "valid": 0.05, "test": 0.05}}
    prepare("halves", corpus, folder / "text.txt", folder / "prepared")
    corpus = load_manifest(folder / "prepared" / "manifest.json")
    assert [corpus.splits[split] for split in texts] == [1800, 100, 100]
    return corpus


def test_characters_are_fitted_on_one_half_and_measured_on_the_other(halves):
    """Against sums over all positions, by hand."""
    model = build_model(MODEL, 12, seed=1)
    with torch.no_grad():
        model.output_weight.mul_(40)
    share, curves = {"HR": 0.9, "LR": 0.1}, {}
    losses = {}
    for split in ("valid", "test"):
        ids = halves.tokens(split).astype(np.int64)
        for group, shift in (("HR", 0), ("LR", 6)):
            found = score(model, ids + shift, 8, SETTINGS)
            losses[split, group] = found.sweep / len(found.nll)
            curves[split, group] = found
    total = sum(share[group] * losses["valid", group] for group in share)
    best = int(total.argmin())
    rows = fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu")
    # A validation text that was scored as a whole is not scored again.
    known, other = (score_languages(model, halves.tokens(of).astype(int), 6, 8, SETTINGS) for of in ("valid", "test"))
    assert fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu", known) == rows
    assert fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu", other) != rows
    values = {(row["metric"], row["group"], row["split"]): row["value"] for row in rows}
    assert values["fitted_temperature", "", "valid@best"] == TEMPERATURES[best] != 1.0
    assert values["fitted_perplexity", "total", "valid@best"] == pytest.approx(math.exp(total[best]))
    for group in share:
        expected = math.exp(losses["test", group][best])
        assert values["fitted_perplexity", group, "test@best"] == pytest.approx(expected)
    expected = math.exp(sum(share[group] * losses["test", group][best] for group in share))
    assert values["fitted_perplexity", "total", "test@best"] == pytest.approx(expected)
    numbers = {(row["group"], row["split"]): row["n"] for row in rows if row["metric"] == "fitted_perplexity"}
    assert numbers["total", "valid@best"] == len(curves["valid", "HR"].nll) < 100
    predicted = set(curves["test", "LR"].predicted.tolist())
    assert values["uniq", "LR", "test@best"] == len([i for i in predicted if i >= 6])


def test_a_language_without_a_share_does_not_count():
    """Its loss may be infinite."""
    assert mixed({"HR": np.array([np.inf]), "LR": np.array([2.0])}, {"HR": 0.0, "LR": 1.0}) == [2.0]


def test_without_a_test_text_the_validation_text_is_halved(halves):
    whole = np.concatenate([halves.tokens("valid"), halves.tokens("test")])
    joined = SimpleNamespace(symbols=halves.symbols, splits={"train": 1800, "valid": 200}, tokens=lambda split: whole)
    model = build_model(MODEL, 12, seed=1)
    assert fitted_rows(model, joined, 8, SETTINGS, 0.1, "cpu") == fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu")


def test_a_best_temperature_at_the_end_is_reported_for_characters(halves, monkeypatch):
    model = build_model(MODEL, 12, seed=1)
    falling = SimpleNamespace(nll=np.zeros(10), sweep=np.linspace(9, 2, 200), predicted=np.zeros(10, dtype=int))
    monkeypatch.setattr(character_run, "score_languages", lambda *arguments: {"HR": falling, "LR": falling})
    rows = fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu")
    assert [row["value"] for row in rows if row["metric"] == "temperature_at_bound"] == [1]
    falling.sweep[:] = np.inf
    rows = fitted_rows(model, halves, 8, SETTINGS, 0.1, "cpu")
    values = {(row["metric"], row["group"], row["split"]): float(row["value"]) for row in rows}
    assert math.isnan(values["fitted_temperature", "", "valid@best"])
    for group, split in (("total", "valid"), ("HR", "test"), ("LR", "test"), ("total", "test")):
        assert values["fitted_perplexity", group, f"{split}@best"] == math.inf


def test_a_language_is_fitted_on_the_validation_text_and_measured_on_the_test_text():
    """The model predicts the validation text's frequencies to the third power, so T is 3."""
    generator = np.random.default_rng(0)
    texts = {split: (12 * generator.random(400) ** 2).astype(int) for split in ("valid", "test")}
    corpus = SimpleNamespace(tokens=lambda split: texts[split])
    shares = np.bincount(texts["valid"], minlength=12) / 400
    model = build_model(MODEL | {"output_bias": "zero"}, 12, seed=1)
    with torch.no_grad():
        model.output_weight.zero_()
        model.output_bias.copy_(3 * torch.from_numpy(shares).log())
    groups, settings = [Groups(("freq", "med", "rare"), (4, 8), 12)], {"block": 8, "window": 4}
    read = []
    with model.register_forward_hook(lambda _, inputs, hidden: read.append(inputs[0].numel())):
        fitted = language.fitted_temperature(model, corpus, settings, "cpu")
    assert sum(read) == 400  # one pass for all temperatures
    corpus.types = 12
    _, plain = language.text_rows(model, corpus, groups, settings, "best", "cpu", temperature=fitted)
    rows, arrays = (
        language.fitted_rows(fitted, plain, corpus, groups, settings),
        language.offset_arrays(plain, corpus, groups[0]),
    )
    values = {(row["metric"], row["group"], row["split"]): row["value"] for row in rows}
    assert values["fitted_temperature", "", "valid@best"] == fitted == pytest.approx(3, rel=5e-3)
    masses = [values["fitted_group_mass", group, "test@best"] for group in ("freq", "med", "rare")]
    assert masses == pytest.approx([shares[:4].sum(), shares[4:8].sum(), shares[8:].sum()], rel=5e-3)
    # A constant for the rare types changes the probabilities as a bias would.
    offset = arrays["best.offsets"][4]
    assert offset == 1
    plain = [values["fitted_perplexity", group, "test@best"] for group in ("freq", "med", "rare", "total")]
    assert arrays["best.offset_perplexities"][0] == pytest.approx(plain)
    with torch.no_grad():
        model.output_bias[8:] += fitted * offset
    scores = score_text(model, texts["test"], 8, 0, 2, temperature=fitted).tempered
    expected, _ = group_perplexities(scores.nll, texts["test"], groups[0])
    assert arrays["best.offset_perplexities"][4] == pytest.approx(expected, rel=1e-5)
    valid = score_text(model, texts["valid"], 8, 0, 2, temperature=fitted).tempered
    expected, _ = group_perplexities(valid.nll, texts["valid"], groups[0])
    assert arrays["best.offset_perplexities_valid"][4] == pytest.approx(expected, rel=1e-5)
    for split, part in texts.items():
        for group, first, last in (("total", 0, 12), ("freq", 0, 4), ("rare", 8, 12)):
            nll = -np.log(shares[part[(part >= first) & (part < last)]])
            found = values["fitted_perplexity", group, f"{split}@best"]
            assert found == pytest.approx(math.exp(nll.mean()), rel=5e-3)


def test_uniq_with_a_constant_is_that_of_a_model_with_this_bias():
    generator = np.random.default_rng(1)
    ids = generator.integers(0, 12, 200)
    corpus = SimpleNamespace(tokens=lambda split: ids, types=12)
    model = build_model(MODEL | {"output_bias": "zero"}, 12, seed=3)
    groups, settings = Groups(("freq", "med", "rare"), (4, 8), 12), {"block": 8, "window": 4}
    for temperature in (1.0, 0.5):
        _, plain = language.text_rows(model, corpus, [groups], settings, "best", "cpu", temperature=temperature)
        found = language.offset_arrays(plain, corpus, groups)["best.offset_uniq"]
        assert found[0].tolist() == distinct(plain["test"].predicted, groups).tolist()
        for k in (0, 1, 4, 12):
            with torch.no_grad():
                model.output_bias[8:] += temperature * language.OFFSETS[k]
            predicted = score_text(model, ids, 8, 0, 2).predicted
            with torch.no_grad():
                model.output_bias.zero_()
            assert found[k].tolist() == distinct(predicted, groups).tolist()
        assert found[12].tolist() != found[0].tolist()
