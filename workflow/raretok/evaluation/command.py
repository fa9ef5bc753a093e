"""The command `evaluate`: metrics and arrays of one trained run, from its files alone."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from raretok.data.corpora import load_manifest
from raretok.errors import UserError
from raretok.evaluation import gradients
from raretok.evaluation.characters import Settings, evaluate_checkpoint, row
from raretok.evaluation.perplexity import TEMPERATURES
from raretok.evaluation.signature import signature
from raretok.files import atomic_path, read_json, write_json
from raretok.models import load_model
from raretok.training.device import choose_device

CHECKPOINTS = {"best": "model.safetensors", "last": "last.safetensors"}
RATIOS = {
    "ratio_of_average": gradients.ratio_of_average,
    "average_of_ratio": gradients.average_of_ratio,
    "average_of_ratio_dropped": gradients.average_of_ratio_dropped,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `evaluate`."""
    parser.add_argument("--run-folder", type=Path, required=True, help="folder that `train` wrote")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json of the prepared corpus")
    parser.add_argument("--settings", required=True, help="the experiment's `evaluation`, as JSON")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--metrics", type=Path, required=True, help="metrics.json to write")
    parser.add_argument("--arrays", type=Path, required=True, help="arrays.npz to write")


def main(arguments: argparse.Namespace) -> None:
    """Evaluate both checkpoints of a run on the validation text, and what training observed."""
    torch.set_num_threads(arguments.threads)
    settings = read_settings(arguments.settings)
    device = choose_device(arguments.device)
    training = read_training(arguments.run_folder / "training.json")
    corpus = load_manifest(arguments.manifest)
    if training.get("data", corpus.sha256) != corpus.sha256:
        raise UserError(f"{arguments.run_folder} was trained on other data than {arguments.manifest} describes")
    model_settings, symbols = training["settings"]["model"], list(corpus.symbols)
    ids = np.asarray(corpus.tokens("valid"), dtype=np.int64)
    rows = []
    arrays = {
        "temperatures": TEMPERATURES,
        "counts": np.asarray(corpus.counts, dtype=np.int64),
        "symbols": np.array([ord(symbol) for symbol in symbols], dtype=np.int32),
    }
    for checkpoint, file in CHECKPOINTS.items():
        path = arguments.run_folder / file
        model = load_model(path, model_settings, vocabulary=2 * len(symbols), device=device)
        more_rows, more_arrays = evaluate_checkpoint(
            model, ids, symbols, model_settings["context"], settings, checkpoint, device
        )
        rows += more_rows
        arrays |= more_arrays
    more_rows, more_arrays = gradient_ratios(arguments.run_folder / "observations.npz", len(symbols))
    # The arrays first: metrics.json is the sign that a run is evaluated.
    with atomic_path(arguments.arrays) as temporary:
        np.savez(temporary, **arrays, **more_arrays)
    write_json(arguments.metrics, {"training": training, "metrics": rows + more_rows})


def gradient_ratios(path: Path, types: int) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Rows (mean over LR tokens) and arrays (V) of the gradient norms in `path`; nothing if not observed."""
    with np.load(path, allow_pickle=False) as archive:
        sums = {
            name.removeprefix("gradient_norms."): archive[name]
            for name in archive.files
            if name.startswith("gradient_norms.")
        }
    rows, arrays = [], {}
    if sums:
        for name, ratio in RATIOS.items():
            values = ratio(sums)
            mean, tokens = gradients.mean_over_tokens(values[types:])
            sign = signature(name, steps=int(sums["steps"]), mean="tokens")
            rows.append(row(name, "LR", "train", mean, tokens, sign))
            arrays[f"gradients.{name}"] = values
    return rows, arrays


def read_settings(text: str) -> Settings:
    """The evaluation settings in a JSON object; UserError for anything else or an unknown key."""
    try:
        return Settings(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise UserError(f"--settings is not an experiment's evaluation: {error}") from None


def read_training(path: Path) -> dict:
    """The record of a run's training; UserError when it is missing or broken."""
    try:
        training = read_json(path)
        training["settings"]["model"]["context"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not the record of a trained run; train the run first") from None
    return training
