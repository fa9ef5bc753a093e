"""The command `record`: copy the files of finished runs that the report needs.

It keeps numbers, arrays, histories, translations of test splits, provenance, and data for later metrics
(`evaluation.measurable`, used by `make remeasure`), but no weights and no training states. The arrays of a language
model grow with its vocabulary, so points of planes are kept in float16, and those of the last step, which no figure
shows, are dropped: 8,000 types with four snapshots take less than 600 KB per run.
"""

import argparse
from pathlib import Path

import numpy as np

from raretok.core.errors import UserError
from raretok.core.files import atomic_path, copy_file, read_arrays, read_json, write_json, write_text

# Files of every evaluated run, and of the scale.
RUN_FILES = ("metrics.json", "history.csv")
ARRAYS = "arrays.npz"
HYPOTHESES = "hypotheses.json"
MEASURABLE = "measurable.npz"
KEPT_SPLIT = "test"
PLANES = ("svd", "pca")
SCALE_FILES = ("gpt2/*.json", "comparisons/*/*.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--results", type=Path, required=True, help="folder of a scale, such as results/small")
    parser.add_argument("--output", type=Path, required=True, help="folder to copy to, such as results/recorded/small")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `record`."""
    kept = record(arguments.results, arguments.output)
    recorded = sum(1 for _ in arguments.output.glob("runs/*/*/*/metrics.json"))
    print(f"kept {len(kept)} run(s) of {arguments.results} in {arguments.output}, which now holds {recorded}")


def record(results: Path, output: Path) -> list[Path]:
    """Copy the report's files of every evaluated run; returns the runs' folders below `output`.

    A run that was recorded before is replaced; recorded runs that are not in `results` stay, since they may come from
    another machine. Raises UserError if nothing has been evaluated.
    """
    finished = sorted(path.parent for path in results.glob("runs/*/*/*/metrics.json"))
    if not finished:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    kept = [output / folder.relative_to(results) for folder in finished]
    for folder, target in zip(finished, kept, strict=True):
        for name in RUN_FILES:
            copy_file(folder / name, target / name)
        if (folder / MEASURABLE).exists():  # older runs have none
            copy_file(folder / MEASURABLE, target / MEASURABLE)
        _keep_arrays(folder / ARRAYS, target / ARRAYS)
        _keep_hypotheses(folder / HYPOTHESES, target / HYPOTHESES)
    for pattern in SCALE_FILES:
        for path in results.glob(pattern):
            copy_file(path, output / path.relative_to(results))
    write_text(output / "README.md", provenance(sorted(path.parent for path in output.glob("runs/*/*/*/metrics.json"))))
    return kept


def provenance(folders: list[Path]) -> str:
    """Provenance of the runs in `folders` as Markdown: one row per run with commit, machine, versions and time."""
    lines = [
        "# Where these results come from",
        "",
        "Written by `make record`; `make recorded` renders tables, figures and the page from what lies here.",
        "A commit with a `+` had local changes.",
        "",
        "| run | hash | commit | device | torch | seconds | resumed |",
        "|---|---|---|---|---|---:|---:|",
    ]
    for folder in folders:
        run = read_json(folder / "metrics.json")["training"]
        name = f"{run['experiment']}/{run['method']}/seed{run['seed']}"
        facts = (run["hash"], run["commit"], run["device"], run["versions"]["torch"], f"{run['seconds']:.0f}")
        lines.append(f"| {name} | {' | '.join(facts)} | {run['resumes']} |")
    return "\n".join(lines) + "\n"


def kept_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A language model's arrays as they are recorded: planes in float16, without those of the last step."""
    kept = {}
    for name, values in arrays.items():
        checkpoint, _, what = name.partition(".")
        if what in PLANES:
            if checkpoint == "last":
                continue
            values = values.astype(np.float16)
        kept[name] = values
    return kept


def _keep_arrays(source: Path, target: Path) -> None:
    arrays = read_arrays(source)
    if "bounds" not in arrays:  # a character model, whose arrays are small
        copy_file(source, target)
        return
    with atomic_path(target) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **kept_arrays(arrays))


def _keep_hypotheses(source: Path, target: Path) -> None:
    """Keep what `raretok compare` needs; runs without translations, and older ones, have no such file."""
    translated = read_json(source) if source.exists() else {}
    if KEPT_SPLIT in translated:
        write_json(target, {KEPT_SPLIT: translated[KEPT_SPLIT]})
