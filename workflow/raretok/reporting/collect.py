"""The command `collect`: metrics of all runs in one csv, in a deterministic order."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pandas as pd

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.reporting.csv_rows import write_table
from raretok.reporting.definition import Definition
from raretok.reporting.results import COLUMNS, Results, index_results

Taken = TypeVar("Taken")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--metrics", type=Path, nargs="+", required=True, help="metrics.json of every run")
    parser.add_argument("--output", type=Path, required=True, help="the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `collect`."""
    write_table(arguments.output, collect(arguments.metrics))


def collect(paths: list[Path]) -> pd.DataFrame:
    """One row per measurement, sorted by run; the metrics of a run keep the order in which they were written.

    Raises UserError if a file is missing or invalid, or if two files belong to one run.
    """
    rows = [row for path in paths for row in from_record(path, _rows)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    keys = ["paper", "experiment", "method", "seed", "metric", "group", "split"]
    twice = table[table.duplicated(keys)]
    if not twice.empty:
        first = twice.iloc[0]
        raise UserError(
            f"{first['metric']} of {first['experiment']}/{first['method']}/seed{first['seed']} was given "
            "twice: give every run's metrics.json once."
        )
    return table.sort_values(["paper", "experiment", "method", "seed"], kind="stable")


def read_item(folder: Path, definition: Definition, item: str) -> Results:
    """The results that a table or figure shows, read from the metrics.json of its finished runs.

    A table or figure needs only its own runs, so it does not wait for `metrics.csv`. Raises UserError if the folder
    does not exist.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist; --results names the results of a scale, such as results/smoke.")
    runs = [
        method.run_folder(folder, seed) / "metrics.json" for method in definition.behind(item) for seed in method.seeds
    ]
    metrics = collect([path for path in runs if path.exists()])
    return index_results(folder, metrics.astype({"seed": int, "value": float}))


def _rows(record: dict) -> list[dict]:
    run = record["training"]
    about = {key: run[key] for key in ("paper", "experiment", "method", "seed")} | {"run": run["hash"]}
    return [about | {key: metric[key] for key in COLUMNS[4:-1]} for metric in record["metrics"]]


def from_record(path: Path, take: Callable[[dict], Taken]) -> Taken:
    """`take(record)` of the metrics.json at `path`; raises UserError if it is missing, or no record of a run."""
    try:
        return take(read_json(path))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; evaluate that run first.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not the metrics.json of a run ({error!r}); delete it and evaluate again.") from None
