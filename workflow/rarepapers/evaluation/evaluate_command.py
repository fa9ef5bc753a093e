"""The command `evaluate`: metrics and arrays of one trained run, from its files."""

import argparse
import importlib
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, read_json, write_json
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.experiments.run_code import MEASURES, evaluation_code
from rarepapers.machine import gpu_locks
from rarepapers.machine.device import choose_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `evaluate`."""
    parser.add_argument("--run-folder", type=Path, required=True, help="folder that `train` wrote")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json of the prepared corpus")
    parser.add_argument("--settings", required=True, help="the experiment's `evaluation`, as JSON")
    parser.add_argument(
        "--word-similarity",
        nargs="*",
        default=[],
        metavar="NAME=PATH",
        help="files of word pairs with human scores, for a language (default: none)",
    )
    parser.add_argument(
        "--links",
        type=Path,
        nargs="?",
        help="word links of a translation's training split, where evaluation.alignment is true (default: none)",
    )
    gpu_locks.add_arguments(parser)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--metrics", type=Path, required=True, help="metrics.json to write")
    parser.add_argument("--arrays", type=Path, required=True, help="arrays.npz to write")
    parser.add_argument(
        "--hypotheses",
        type=Path,
        help="JSON file to write with the translations of each split; {} for other models (default: for a translation "
        "model, hypotheses.json beside the metrics)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Evaluate both checkpoints of a run on its corpus's held-out text, with its observations."""
    # Imported here because it imports the options of every model, on which no result depends.
    from rarepapers.evaluation.settings import read_settings

    torch.set_num_threads(arguments.threads)
    device = choose_device(arguments.device, arguments.runs_per_gpu)
    training = read_training(arguments.run_folder / "training.json")
    corpus = load_manifest(arguments.manifest)
    settings = read_settings(arguments.settings, corpus.kind)
    if training.get("data", corpus.sha256) != corpus.sha256:
        raise UserError(f"{arguments.run_folder} was trained on other data than {arguments.manifest} describes")
    model = training["settings"]["model"]
    # Imports only the evaluator of this run, because the others take seconds to import.
    measure = importlib.import_module(MEASURES[corpus.kind])
    if corpus.kind == "translation":
        needed = arguments.links
    elif corpus.kind == "language":
        needed = similarity_files(arguments.word_similarity)
    else:
        needed = training["settings"].get("corpus", {}).get("low_resource_probability")
    found = measure.evaluate_run(arguments.run_folder, model, corpus, settings, needed, device)
    # Compression reduces texts and their padding to a few per cent.
    save = np.savez if corpus.kind == "characters" else np.savez_compressed
    name_average(found.rows, training)
    # metrics.json is written last: its existence means that the run is evaluated.
    if found.hypotheses or arguments.hypotheses:
        write_json(arguments.hypotheses or arguments.metrics.with_name("hypotheses.json"), found.hypotheses)
    with atomic_path(arguments.arrays) as temporary:
        save(temporary, **found.arrays)
    made = {"settings": settings, "sources": evaluation_code(training["settings"], corpus.kind)}
    write_json(arguments.metrics, {"training": training, "evaluation": made, "metrics": found.rows})


def name_average(rows: list[dict], training: dict) -> None:
    """Note in the rows' signatures if the best checkpoint is an average of several."""
    averaged = training.get("averaged_steps")
    if averaged:
        for one in rows:
            one["signature"] = one["signature"].replace("checkpoint:best", f"checkpoint:mean_of_{len(averaged)}")


def similarity_files(pairs: list[str]) -> dict[str, Path]:
    """Files of word pairs by set, from arguments NAME=PATH; raises UserError if a file is missing."""
    files = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise UserError(f"--word-similarity is {pair!r}; it must be NAME=PATH, as MEN=resources/men/pairs.txt")
        if not Path(path).is_file():
            raise UserError(
                f"{path}, the word pairs of {name}, does not exist; download it (config/datasets.yaml) or take {name} "
                "out of evaluation.word_similarity"
            )
        files[name] = Path(path)
    return files


def read_training(path: Path) -> dict:
    """The training record of a run; raises UserError if it is missing or invalid."""
    try:
        training = read_json(path)
        training["settings"]["model"]["context"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not the record of a trained run; train the run first") from None
    return training
