"""The command `collect`: metrics of all runs in one csv, in a deterministic order."""

import argparse
from pathlib import Path

import pandas as pd

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.reporting.csv_rows import write_table
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.results import COLUMNS, NOT_FINITE, Results, index_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--metrics", type=Path, nargs="+", required=True, help="metrics.json of every run")
    parser.add_argument("--output", type=Path, required=True, help="the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `collect`."""
    write_table(arguments.output, collect(arguments.metrics))


def collect(paths: list[Path]) -> pd.DataFrame:
    """One row per measurement, sorted by run; the metrics of a run keep the order in which they were written."""
    rows = [row for path in paths for row in _rows(read_json(path), path)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values(["paper", "experiment", "method", "seed"], kind="stable")


def read_item(folder: Path, definition: Definition, item: str) -> Results:
    """The results that a table or figure shows, read from the metrics.json of its finished runs.

    A table or figure needs only its own runs, so it does not wait for `metrics.csv`. Raises UserError if the folder
    does not exist.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist; --results names the results of a scale, such as results/smoke.")
    runs = {method.run_folder(folder, seed) for method in definition.behind(item) for seed in method.seeds}
    runs -= {folder / "runs" / name for name in definition.outdated}
    return index_results(folder, collect([path for run in sorted(runs) if (path := run / "metrics.json").exists()]))


def _rows(record: dict, path: Path) -> list[dict]:
    run = record["training"]
    for metric in record["metrics"]:
        if not isinstance(metric["value"], int | float) and metric["value"] not in NOT_FINITE:
            where = f"{path}: {metric['metric']} {metric['group']}".rstrip()
            raise UserError(f"{where} is {metric['value']!r}, not a number; evaluate the run again")
    about = {key: run[key] for key in ("paper", "experiment", "method", "seed")} | {"run": run["hash"]}
    return [about | {key: metric[key] for key in COLUMNS[4:-1]} for metric in record["metrics"]]
