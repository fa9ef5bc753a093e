"""The command `merge-counts`: the sum of counts of shards."""

import argparse
from pathlib import Path

import numpy as np

from rarepapers.core.files import atomic_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--counts", required=True, nargs="+", type=Path, help="counts of shards, .npy")
    parser.add_argument("--output", required=True, type=Path, help="their sum, .npy")


def main(arguments: argparse.Namespace) -> None:
    total = sum(np.load(path) for path in arguments.counts)
    with atomic_path(arguments.output) as temporary:
        np.save(temporary, total, allow_pickle=False)
