"""The command `merge-counts`: the sum of counts of shards."""

import argparse
from pathlib import Path

import numpy as np

from raretok.core.errors import UserError
from raretok.core.files import atomic_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--counts", required=True, nargs="+", type=Path, help="counts of shards, .npy")
    parser.add_argument("--output", required=True, type=Path, help="their sum, .npy")


def main(arguments: argparse.Namespace) -> None:
    total = merge(arguments.counts)
    with atomic_path(arguments.output) as temporary:
        np.save(temporary, total, allow_pickle=False)


def merge(paths: list[Path]) -> np.ndarray:
    """The sum of the counts in `paths`, (types,) int64; raises UserError for a missing, damaged or unequal file."""
    total = None
    for path in paths:
        try:
            counts = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path} is missing or damaged; delete it and count again") from error
        if total is not None and counts.shape != total.shape:
            raise UserError(
                f"{path} has {len(counts):,} types, but {paths[0]} has {len(total):,}; count all with one tokenizer"
            )
        total = counts.astype(np.int64) if total is None else total + counts
    return total
