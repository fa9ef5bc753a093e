"""The command `cost`: time, memory and speed of every training as a csv, and summaries by device."""

import argparse
from pathlib import Path

import pandas as pd

from rarepapers.core.files import read_json
from rarepapers.experiments.run_code import is_copy
from rarepapers.reporting.csv_rows import check_numbers, read_table, write_table

COLUMNS = [
    *("paper", "experiment", "method", "seed", "device", "together", "threads"),
    *("seconds", "cpu_seconds", "tokens", "tokens_per_second", "peak_memory_gib", "resumes", "same_as"),
]
NUMBERS = COLUMNS[COLUMNS.index("together") : COLUMNS.index("same_as")]
# Defaults for older records without these keys.
DEFAULTS = {"together": 1, "cpu_seconds": 0.0}
# Numbers of a run that was not trained but copied from one with the same settings.
NO_TRAINING = {"seconds": 0.0, "cpu_seconds": 0.0, "tokens": 0, "tokens_per_second": 0, "resumes": 0}
CPU = "CPU"
RUN = ("experiment", "method", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--metrics", type=Path, nargs="+", required=True, help="metrics.json of every run")
    parser.add_argument("--output", type=Path, required=True, help="the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `cost`."""
    write_table(arguments.output, costs(arguments.metrics))


def costs(paths: list[Path]) -> pd.DataFrame:
    """One row per run, sorted: seconds of training with validation, including time before interruptions.

    A run that is a copy of another names it in `same_as` and cost nothing. together: number of
    recorded runs that shared a job (no longer possible); their seconds are each run's share. cpu_seconds: 0 if unknown.
    Peak memory is that of the GPU, or of the process on a CPU.
    """
    records = [read_json(path) for path in paths]
    table = pd.DataFrame([_row(one) for one in records], columns=COLUMNS)
    return table.sort_values(["paper", "experiment", "method", "seed"], kind="stable")


def read_costs(path: Path) -> pd.DataFrame:
    """The table of `cost.csv`; raises UserError for a number that is not finite."""
    check_numbers(read_table(path), path, NUMBERS)
    return pd.read_csv(path)


def trained(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs that were trained, without copies."""
    return table[table["same_as"].isna() | table["same_as"].eq("")]


def by_device(table: pd.DataFrame) -> list[dict]:
    """Summary of one paper's runs, one row per kind of device, in core or GPU hours."""
    shown = []
    for device, runs in trained(table).groupby("device", sort=True):
        shown.append(
            {
                "device": device,
                "runs": len(runs),
                "hours": hours(runs),
                "peak": f"{runs['peak_memory_gib'].max():.2f}",
                "speed": f"{runs['tokens_per_second'].median():,.0f}",
                "slowest": f"{runs['tokens_per_second'].min():,.0f}",
                "fastest": f"{runs['tokens_per_second'].max():,.0f}",
                "resumes": int(runs["resumes"].sum()),
            }
        )
    return shown


def unit_seconds(runs: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Whether each training ran on a CPU, and its seconds on one core or one GPU.

    On a CPU that is CPU time, which other work on the machine hardly changes, or wall time if CPU time is unknown.
    """
    on_cpu = runs["device"].str.startswith(CPU)
    wall = runs["seconds"] * runs["threads"].where(on_cpu, 1)
    return on_cpu, runs["cpu_seconds"].where(on_cpu & (runs["cpu_seconds"] > 0), wall)


def hours(runs: pd.DataFrame) -> str:
    """Total training time in core hours, GPU hours, or both, as text."""
    on_cpu, seconds = unit_seconds(runs)
    taken = seconds / 3600
    sums = {"core-hours": taken[on_cpu].sum(), "GPU-hours": taken[~on_cpu].sum()}
    return " and ".join(f"{total:,.2f} {unit}" for unit, total in sums.items() if total) or "nothing"


def _row(record: dict) -> list:
    run = record["training"]
    known = DEFAULTS | {name: run[name] for name in COLUMNS if name in run}
    threads = run["settings"]["training"]["threads"]
    speed = round(run["tokens"] / run["seconds"]) if run["seconds"] else 0
    known |= {"threads": threads, "tokens_per_second": speed, "same_as": ""}
    if is_copy(run):
        known |= NO_TRAINING | {"same_as": "/".join(str(run["same_as"].get(name)) for name in RUN)}
    return [known[name] for name in COLUMNS]
