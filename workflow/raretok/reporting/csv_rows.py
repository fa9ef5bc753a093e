"""Tidy csv files of the report: writing and reading."""

import csv
from collections.abc import Iterable
from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import atomic_path


def write_rows(path: Path, columns: list[str], rows: Iterable[dict]) -> None:
    """Write `rows` as a csv with `columns`; a key that is not a column is an error."""
    with (
        atomic_path(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a csv written by `write_rows`, all values as text; raises UserError if it does not exist."""
    with open(existing(path), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def existing(path: Path) -> Path:
    """`path`, a file of the report; raises UserError if it does not exist."""
    if not path.exists():
        raise UserError(f"{path} does not exist; make it with `snakemake {path}`.")
    return path


def csv_number(value: float | None) -> str:
    """A number with six digits; empty for None."""
    return "" if value is None else f"{value + 0.0:.6g}"  # + 0.0 turns -0.0 into 0.0
