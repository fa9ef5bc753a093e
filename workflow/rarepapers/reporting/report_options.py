"""Shared options of commands that report on whole papers."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from rarepapers.reporting.csv_rows import write_table
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.results import Results, read_results


def add_report_arguments(parser: argparse.ArgumentParser, output: str) -> None:
    """Declare the options for definitions, results, printed numbers, and `output`, the file to write."""
    parser.add_argument("--definitions", nargs="+", required=True, help="a file of `definition` for each paper")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with metrics.csv")
    parser.add_argument("--published", type=Path, default=Path("config/papers"), help="folder of the printed numbers")
    parser.add_argument("--output", type=Path, required=True, help=output)


def write_for_papers(
    arguments: argparse.Namespace, rows_of: Callable[[Definition, Results, Path], list[dict]], columns: list[str]
) -> None:
    """Write the rows that `rows_of(definition, results, published)` returns for each paper to one csv."""
    results = read_results(arguments.results)
    rows = [
        row for text in arguments.definitions for row in rows_of(read_definition(text), results, arguments.published)
    ]
    write_table(arguments.output, pd.DataFrame(rows, columns=columns))
