"""The command `evaluate` on the files of a run, as written by training and preparation."""

import json
import string

import numpy as np
import pytest
from safetensors.torch import save_file

from rarepapers.__main__ import main
from rarepapers.core.errors import EXIT_USER_ERROR
from rarepapers.data.characters.prepare import prepare
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.metrics.gradient_ratios import average_of_ratio, ratio_of_average
from rarepapers.models.building import build_model

MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 8, "context": 8, "tied": True}
SETTINGS = {"batch_size": 2, "drop_incomplete": True, "examples": 4, "neighbours": 3}


@pytest.fixture
def run(tmp_path):
    """A folder with a prepared corpus and an untrained run: `evaluate(**changes)` gives the exit status."""
    rng = np.random.default_rng(0)
    letters = list(string.ascii_letters + " .\n")
    (tmp_path / "text.txt").write_text("".join(letters + rng.choice(letters, 2000).tolist()))
    entry = {"kind": "characters", "splits": {"train": 0.9, "valid": 0.1}}
    prepare("letters", entry, tmp_path / "text.txt", tmp_path / "data")
    corpus = load_manifest(tmp_path / "data" / "manifest.json")
    vocabulary = 2 * len(corpus.symbols)
    folder = tmp_path / "run"
    folder.mkdir()
    for seed, name in enumerate(("model", "last")):
        save_file(build_model(MODEL, vocabulary, seed=seed).state_dict(), folder / f"{name}.safetensors")
    (folder / "training.json").write_text(
        json.dumps({"hash": "0123", "data": corpus.sha256, "settings": {"model": MODEL}})
    )
    np.savez(folder / "observations.npz")
    return tmp_path


def evaluate(root, settings=SETTINGS, manifest="data/manifest.json") -> int:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    options = {
        "--run-folder": root / "run",
        "--manifest": root / manifest,
        "--device": "cpu",
        "--settings": text,
        "--metrics": root / "out" / "metrics.json",
        "--arrays": root / "out" / "arrays.npz",
    }
    return main(["evaluate", *(str(part) for option in options.items() for part in option)])


def test_both_checkpoints_are_measured(run):
    assert evaluate(run) == 0
    result = json.loads((run / "out" / "metrics.json").read_text())
    assert result["training"]["hash"] == "0123"
    assert {row["split"] for row in result["metrics"]} == {
        "valid@best",
        "valid@last",
        "weights@best",
        "weights@last",
    }
    with np.load(run / "out" / "arrays.npz") as arrays:
        corpus = load_manifest(run / "data" / "manifest.json")
        assert "".join(map(chr, arrays["symbols"])) == "".join(corpus.symbols)
        assert arrays["counts"].tolist() == list(corpus.counts)
        assert len(arrays["temperatures"]) == 200
        assert not np.array_equal(arrays["best.embeddings"], arrays["last.embeddings"])
        # An untrained model predicts nearly uniformly: its perplexity is near the vocabulary size.
        assert arrays["best.perplexity.HR"][99] == pytest.approx(2 * len(corpus.symbols), rel=0.05)
        assert not [name for name in arrays if name.startswith("gradients")]


def test_evaluation_is_deterministic(run):
    evaluate(run)
    first = [(run / "out" / name).read_bytes() for name in ("metrics.json", "arrays.npz")]
    evaluate(run)
    assert first == [(run / "out" / name).read_bytes() for name in ("metrics.json", "arrays.npz")]


def test_observed_gradients_become_ratios_of_the_low_resource_tokens(run):
    rng = np.random.default_rng(1)
    tokens = 2 * len(load_manifest(run / "data" / "manifest.json").symbols)
    names = ("sum_aligned", "sum_marginal", "sum_ratio", "sum_aligned_zero", "zero_steps")
    sums = {name: rng.random(tokens) for name in names} | {"steps": np.float64(7)}
    np.savez(run / "run" / "observations.npz", **{f"gradient_norms.{key}": value for key, value in sums.items()})
    assert evaluate(run) == 0
    rows = json.loads((run / "out" / "metrics.json").read_text())["metrics"]
    values = {(row["metric"], row["group"]): row["value"] for row in rows if row["split"] == "train"}
    assert values["ratio_of_average", "LR"] == pytest.approx(ratio_of_average(sums)[tokens // 2 :].mean())
    assert values["average_of_ratio", "LR"] == pytest.approx(average_of_ratio(sums)[tokens // 2 :].mean())
    with np.load(run / "out" / "arrays.npz") as arrays:
        np.testing.assert_array_equal(arrays["gradients.ratio_of_average"], ratio_of_average(sums))
        assert len(arrays["gradients.average_of_ratio_dropped"]) == tokens


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{", "--settings is not"),
        ("[1]", "--settings is not"),
        (SETTINGS | {"batches": 1}, "batches"),
        (SETTINGS | {"batch_size": 500}, "one evaluation batch needs"),
    ],
)
def test_wrong_settings_are_refused(run, capsys, settings, message):
    assert evaluate(run, settings) == EXIT_USER_ERROR
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (run / "out" / "metrics.json").exists()


def test_missing_or_foreign_files_are_refused(run, capsys):
    record = run / "run" / "training.json"
    record.write_text(record.read_text().replace('"data": "', '"data": "other'))
    assert evaluate(run) == EXIT_USER_ERROR
    assert "trained on other data" in capsys.readouterr().err
    record.unlink()
    assert evaluate(run) == EXIT_USER_ERROR
    assert "train the run first" in capsys.readouterr().err
