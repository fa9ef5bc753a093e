"""Keep what a scale's report is made of, so that it can be made again without training.

Numbers, arrays, histories, translations of test splits and provenance are kept, and of the weights what later metrics
need (`evaluation.measurable`, for `make remeasure`); the weights themselves and states are not. Of a
language model's arrays, which grow with the vocabulary, pictures (the points of a plane) are kept in half precision,
and those of the last step, which nothing shows, are left out: 8,000 types with four snapshots stay below 600 KB a run.
"""

import argparse
from pathlib import Path

import numpy as np

from raretok.core.errors import UserError
from raretok.core.files import atomic_path, copy_file, read_arrays, read_json, write_json, write_text

# Of every evaluated run, and of the scale.
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
    parser.add_argument("--output", type=Path, required=True, help="where to keep it, such as results/recorded/small")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `record`."""
    kept = record(arguments.results, arguments.output)
    recorded = sum(1 for _ in arguments.output.glob("runs/*/*/*/metrics.json"))
    print(f"kept {len(kept)} run(s) of {arguments.results} in {arguments.output}, which now holds {recorded}")


def record(results: Path, output: Path) -> list[Path]:
    """Copy what reports need of every evaluated run; returns the runs' folders below `output`.

    A run that was recorded before is replaced, and one that is not in `results` stays: nothing recorded is lost because
    it was trained on another machine. Raises UserError where nothing has been evaluated.
    """
    finished = sorted(path.parent for path in results.glob("runs/*/*/*/metrics.json"))
    if not finished:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    for folder in finished:
        for name in RUN_FILES:
            copy_file(folder / name, output / folder.relative_to(results) / name)
        if (folder / MEASURABLE).exists():  # runs that were evaluated at an earlier time have none
            copy_file(folder / MEASURABLE, output / folder.relative_to(results) / MEASURABLE)
        _keep_arrays(folder / ARRAYS, output / folder.relative_to(results) / ARRAYS)
        _keep_hypotheses(folder / HYPOTHESES, output / folder.relative_to(results) / HYPOTHESES)
    for pattern in SCALE_FILES:
        for path in results.glob(pattern):
            copy_file(path, output / path.relative_to(results))
    kept = [output / folder.relative_to(results) for folder in finished]
    write_text(output / "README.md", provenance(sorted(path.parent for path in output.glob("runs/*/*/*/metrics.json"))))
    return kept


def provenance(folders: list[Path]) -> str:
    """What made the runs in `folders`, as Markdown: a row a run with its commit, machine, versions and time."""
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
    """A language model's arrays as they are kept: planes in float16, without those of the last step."""
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
    kept = kept_arrays(arrays) if "bounds" in arrays else None
    if kept is None:  # of a character model, small as it is
        copy_file(source, target)
        return
    with atomic_path(target) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **kept)


def _keep_hypotheses(source: Path, target: Path) -> None:
    """What `raretok compare` needs; runs that do not translate, and those of an earlier time, have none."""
    translated = read_json(source) if source.exists() else {}
    if KEPT_SPLIT in translated:
        write_json(target, {KEPT_SPLIT: translated[KEPT_SPLIT]})
