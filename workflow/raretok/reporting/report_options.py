"""Options that every command has which reports on whole papers."""

import argparse
from pathlib import Path


def add_report_arguments(parser: argparse.ArgumentParser, output: str) -> None:
    """Declare the definitions of papers, where results and printed numbers lie, and `output`: what is written."""
    parser.add_argument("--definitions", nargs="+", required=True, help="one JSON of report_inputs.py for each paper")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with metrics.csv")
    parser.add_argument("--published", type=Path, default=Path("config/papers"))
    parser.add_argument("--output", type=Path, required=True, help=output)
