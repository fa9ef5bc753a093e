"""Keep what a scale's report is made of, so that it can be made again without training.

Numbers, arrays, histories and provenance are kept; weights and states are not.
"""

import argparse
import shutil
from pathlib import Path

from raretok.errors import UserError
from raretok.files import atomic_path, read_json, write_text

# Of every evaluated run, and of the scale.
RUN_FILES = ("metrics.json", "arrays.npz", "history.csv")
SCALE_FILES = "gpt2/*.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--results", type=Path, required=True, help="folder of a scale, such as results/small")
    parser.add_argument("--output", type=Path, required=True, help="where to keep it, such as results/recorded/small")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `record`."""
    kept = record(arguments.results, arguments.output)
    print(f"kept {len(kept)} run(s) of {arguments.results} in {arguments.output}")


def record(results: Path, output: Path) -> list[Path]:
    """Copy what reports need of every evaluated run; returns the runs' folders below `output`.

    Raises UserError where nothing has been evaluated.
    """
    finished = sorted(path.parent for path in results.glob("runs/*/*/*/metrics.json"))
    if not finished:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    shutil.rmtree(output, ignore_errors=True)  # replaced as a whole: no run of an earlier time stays among them
    for folder in finished:
        for name in RUN_FILES:
            _copy(folder / name, output / folder.relative_to(results) / name)
    for path in results.glob(SCALE_FILES):
        _copy(path, output / path.relative_to(results))
    kept = [output / folder.relative_to(results) for folder in finished]
    write_text(output / "README.md", provenance(kept))
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


def _copy(source: Path, target: Path) -> None:
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)
