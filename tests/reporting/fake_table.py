"""Synthetic paper with one table of metrics, filled with numbers from a test."""

import csv
import json
from pathlib import Path

import pandas as pd

from rarepapers.reporting.definition import Definition, parse_definition
from rarepapers.reporting.results import COLUMNS, Results, index_results

NUMBERS = ["item", "row", "column", "group", "value", "direction", "note", "reference"]
CLAIMS = [
    *("id", "kind", "sentence", "quantity", "unit", "null", "direction", "margin", "size", "ours"),
    *("predicate", "where", "measured_by", "holds_on_printed_numbers", "note"),
]
CLAIM = {"kind": "experiment", "measured_by": "table", "unit": "x", "null": "1", "direction": ">"}


def definition_of(methods: dict[str, str], comparable: bool = True, **table) -> Definition:
    """A paper with `table1`, which shows `methods` (name: label) in the column Score, `score` of the test text."""
    entry = {"title": "made up", "kind": "metrics", "methods": list(methods)}
    entry |= {"columns": {"Score": {"metric": "score", "format": ".2f"}}} | table
    raw = {
        "paper": "made_up",
        "title": "Made up (2026)",
        "scale": "small",
        "scale_title": "small scale",
        "comparable": comparable,
        "methods": {name: {"label": label, "experiment": "e1", "seeds": [1, 2, 3]} for name, label in methods.items()},
        "tables": {"table1": entry},
        "settings": {"e1": {}, "e2": {}},
    }
    return parse_definition(json.dumps(raw))


def results_of(folder: Path, scores: dict[str, list[float]], group: str = "", experiment: str = "e1") -> Results:
    """Results in which a method has these scores for seeds 1, 2, ...; NaN for a seed that was not run."""
    return results_with(folder, rows_of(scores, group, experiment))


def results_with(folder: Path, rows: list[list]) -> Results:
    """Results with these rows of metrics.csv."""
    return index_results(folder, pd.DataFrame(rows, columns=COLUMNS))


def rows_of(
    scores: dict[str, list[float]], group: str = "", experiment: str = "e1", metric: str = "score"
) -> list[list]:
    """The rows of metrics.csv of those results."""
    return [
        [
            "made_up",
            experiment,
            name,
            seed,
            metric,
            group,
            "test@best",
            value,
            int(value == value),
            "made:up",
            "0" * 16,
        ]
        for name, values in scores.items()
        for seed, value in enumerate(values, 1)
    ]


def write_published(folder: Path, numbers: dict[tuple[str, str], str], claims=(), reference=None) -> Path:
    """Write printed numbers of table1, by row and group, and claims about it (rows of claims.csv)."""
    own_folder = folder / "made_up"
    own_folder.mkdir(exist_ok=True)
    with open(own_folder / "numbers.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, NUMBERS, restval="")
        writer.writeheader()
        for (row, group), value in numbers.items():
            about = {"item": "table1", "row": row, "column": "Score", "group": group}
            known = {"direction": "up", "reference": (reference or {}).get((row, group), "")}
            writer.writerow(about | known | {"value": value})
    with open(own_folder / "claims.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, CLAIMS, restval="")
        writer.writeheader()
        for number, claim in enumerate(claims):
            writer.writerow(CLAIM | {"id": f"made_up.{number}"} | claim)
    return folder
