"""Evaluation of a run of a character model on two languages: both checkpoints, and what training observed."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from raretok.errors import UserError
from raretok.evaluation import gradients
from raretok.evaluation.characters import Settings, evaluate_checkpoint
from raretok.evaluation.perplexity import TEMPERATURES
from raretok.evaluation.rows import row
from raretok.evaluation.signature import signature
from raretok.models import load_model

CHECKPOINTS = {"best": "model.safetensors", "last": "last.safetensors"}
RATIOS = {
    "ratio_of_average": gradients.ratio_of_average,
    "average_of_ratio": gradients.average_of_ratio,
    "average_of_ratio_dropped": gradients.average_of_ratio_dropped,
}


def evaluate_run(
    folder: Path, model_settings: Mapping, corpus, settings: Settings, device: str = "cpu"
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """All metric rows and arrays of the run in `folder`, as docs/architecture.md names them.

    corpus: a `data.corpora.Corpus` of kind characters. Raises UserError for a text shorter than a batch.
    """
    symbols = list(corpus.symbols)
    ids = np.asarray(corpus.tokens("valid"), dtype=np.int64)
    rows = []
    arrays = {
        "temperatures": TEMPERATURES,
        "counts": np.asarray(corpus.counts, dtype=np.int64),
        "symbols": np.array([ord(symbol) for symbol in symbols], dtype=np.int32),
    }
    for checkpoint, file in CHECKPOINTS.items():
        model = load_model(folder / file, model_settings, vocabulary=2 * len(symbols), device=device)
        more_rows, more_arrays = evaluate_checkpoint(
            model, ids, symbols, model_settings["context"], settings, checkpoint, device
        )
        rows += more_rows
        arrays |= more_arrays
    more_rows, more_arrays = gradient_ratios(folder / "observations.npz", len(symbols))
    return rows + more_rows, arrays | more_arrays


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


def parse(settings: Mapping) -> Settings:
    """An experiment's `evaluation`; UserError for an unknown key."""
    try:
        return Settings(**settings)
    except TypeError as error:
        raise UserError(f"--settings is not an experiment's evaluation: {error}") from None
