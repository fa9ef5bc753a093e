"""Tidy csv files of the report: writing and reading."""

import csv
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from rarepapers.core.config_files import are_numbers
from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path


def write_table(path: Path | str, table: pd.DataFrame) -> None:
    """Write a table as a csv, atomically."""
    # A carriage return in a token would end a row, and `csv` quotes only the line end that it writes.
    returns = any("\r" in value for name in table for value in table[name] if isinstance(value, str))
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n", quoting=quoting)


def read_table(path: Path) -> pd.DataFrame:
    """A csv of the report, all values as text (`NA` is a name)."""
    return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")


def check_numbers(table: pd.DataFrame, path: Path, columns: Iterable[str], words: Iterable[str] = ()) -> None:
    """Raises UserError, with the line, if a cell of these columns is neither empty nor finite numbers (`0.5; 0`).

    words: also allowed, such as `inf` for a perplexity that is infinite in print.
    """
    for name in columns:
        known = {text: are_numbers(text, words) for text in table[name].unique()}
        wrong = ~table[name].map(known).astype(bool)
        if wrong.any():
            place = int(wrong.to_numpy().argmax())
            also = "".join(f" or {word}" for word in words)
            text = table[name].iloc[place]
            raise UserError(f"{path}, line {place + 2}: {name} is {text!r}; it must be a finite number{also}")


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of `read_table`."""
    return read_table(path).to_dict("records")


def csv_number(value: float | None) -> str:
    """A number with six digits; empty for None."""
    return "" if value is None else f"{value + 0.0:.6g}"  # + 0.0 turns -0.0 into 0.0
