"""The command `record`: copy the files of finished runs that the report needs.

It keeps numbers, arrays, histories, translations of test splits and provenance, but no weights and no training states.
The arrays of a language model grow with its vocabulary, so points of planes are kept in float16, and those of the last
step, which no figure shows, are dropped: 8,000 types with four snapshots take less than 600 KB per run.
"""

import argparse
import io
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, copy_file, parse_json, read_arrays, read_json, write_json, write_text
from rarepapers.reporting.recorded_precision import precision_of, processor_of

METRICS = "metrics.json"
HISTORY = "history.csv"
ARRAYS = "arrays.npz"
# Of translation models only.
HYPOTHESES = "hypotheses.json"
KEPT_SPLIT = "test"
PLANES = ("svd", "pca")
SCALE_FILES = ("gpt2/*.json", "comparisons/*/*.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--results", type=Path, required=True, help="folder of a scale, such as results/small")
    parser.add_argument("--output", type=Path, required=True, help="folder to copy to, such as results/recorded/small")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `record`."""
    kept, left = record(arguments.results, arguments.output)
    for name, reason in left.items():
        print(f"not recorded: {name}: {reason}")
    recorded = sum(1 for _ in arguments.output.glob("runs/*/*/*/metrics.json"))
    print(f"kept {len(kept)} run(s) of {arguments.results} in {arguments.output}, which now holds {recorded}")


def record(results: Path, output: Path) -> tuple[list[Path], dict[str, str]]:
    """Copy the report's files of every evaluated run.

    A run that was recorded before is replaced; recorded runs that are not in `results` stay, since they may come from
    another machine. Returns the recorded runs' folders below `output`, and why other runs were left out, by name.
    Raises UserError if nothing has been evaluated.
    """
    finished = sorted(path.parent for path in results.glob("runs/*/*/*/metrics.json"))
    if not finished:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    kept, left = [], {}
    for folder in finished:
        target = output / folder.relative_to(results)
        try:
            # Read before anything is written, so that a record never mixes files of two trainings.
            files, translations = _recorded_files(folder), _translations(folder)
            reason = _reason_to_leave(parse_json(files[METRICS].decode("utf-8"), str(folder / METRICS)), folder, target)
        except FileNotFoundError as error:
            reason = f"{Path(error.filename).name} is missing; train or evaluate the run first"
        if reason:
            left[folder.relative_to(results / "runs").as_posix()] = reason
            continue
        if translations:
            write_json(target / HYPOTHESES, translations)
        else:
            (target / HYPOTHESES).unlink(missing_ok=True)  # of an earlier evaluation
        for name, content in files.items():
            with atomic_path(target / name) as temporary:
                temporary.write_bytes(content)
        kept.append(target)
    for pattern in SCALE_FILES:
        for path in results.glob(pattern):
            copy_file(path, output / path.relative_to(results))
    write_text(output / "README.md", provenance(sorted(path.parent for path in output.glob("runs/*/*/*/metrics.json"))))
    return kept, left


def provenance(folders: list[Path]) -> str:
    """Provenance of the runs in `folders` as Markdown: one row per run with commit, machine, precision and time."""
    lines = [
        "# Where these results come from",
        "",
        "Written by `make record`; `make recorded` renders tables, figures and the report from these files.",
        "A commit with a `+` had local changes.",
        "",
        "| run | hash | commit | device | processor | precision | torch | seconds | resumes |",
        "|---|---|---|---|---|---|---|---:|---:|",
    ]
    for folder in folders:
        run = read_json(folder / "metrics.json")["training"]
        name = f"{run['experiment']}/{run['method']}/seed{run['seed']}"
        machine = (run["device"], processor_of(run), precision_of(run), run["versions"]["torch"])
        facts = (name, run["hash"], run["commit"], *machine, f"{run['seconds']:.0f}", str(run["resumes"]))
        lines.append(f"| {' | '.join(facts)} |")
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


def _recorded_files(folder: Path) -> dict[str, bytes]:
    """Contents of a run's files as they are recorded, by name, metrics.json last.

    Raises FileNotFoundError if a file that every run has is missing, as while the run is trained again.
    """
    files = {name: (folder / name).read_bytes() for name in (METRICS, HISTORY)}
    files[ARRAYS] = _arrays(folder / ARRAYS)
    return files | {METRICS: files.pop(METRICS)}


def _translations(folder: Path) -> dict:
    """What `rarepapers compare` needs of a run's translations; empty for other runs, and older ones."""
    translated = read_json(folder / HYPOTHESES) if (folder / HYPOTHESES).exists() else {}
    return {KEPT_SPLIT: translated[KEPT_SPLIT]} if KEPT_SPLIT in translated else {}


def _reason_to_leave(metrics: dict, folder: Path, target: Path) -> str:
    """Why a run with these metrics is not recorded; empty if it is. target: its folder of recorded files."""
    trained = folder / "training.json"  # may be missing in results of another machine
    if trained.exists() and read_json(trained) != metrics["training"]:
        return "it was trained again since its evaluation; evaluate it first"
    if not (target / METRICS).exists():
        return ""
    recorded = read_json(target / METRICS)
    evaluation = dict(recorded.get("evaluation", {}))
    is_remeasured = evaluation.pop("remeasured", None) is not None
    if is_remeasured and (recorded["training"], evaluation) == (metrics["training"], metrics.get("evaluation", {})):
        return "its recorded metrics were remeasured from this evaluation and stay"
    return ""


def _arrays(source: Path) -> bytes:
    """The content of a run's arrays as they are recorded."""
    arrays = read_arrays(source)
    if "bounds" not in arrays:  # a character model, whose arrays are small
        return source.read_bytes()
    content = io.BytesIO()
    np.savez_compressed(content, **kept_arrays(arrays))
    return content.getvalue()
