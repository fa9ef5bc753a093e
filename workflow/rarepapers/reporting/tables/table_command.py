"""The command `table`: render one table as tidy csv, Markdown and LaTeX, with printed and measured numbers."""

import argparse
import math
from pathlib import Path

import pandas as pd

from rarepapers.core.files import write_text
from rarepapers.reporting.collect import read_item
from rarepapers.reporting.csv_rows import csv_number, write_table
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.recorded_precision import mixed_precision
from rarepapers.reporting.results import Results
from rarepapers.reporting.tables.cells import Cell, metric_cells
from rarepapers.reporting.tables.comparison_table import better_methods, comparison_cells
from rarepapers.reporting.tables.generated_table import generated_cells
from rarepapers.reporting.tables.gpt2_table import gpt2_cells
from rarepapers.reporting.tables.hyperparameter_table import hyperparameter_cells
from rarepapers.reporting.tables.neighbour_table import neighbour_cells, query_sentences
from rarepapers.reporting.tables.readings_table import reading_cells, reading_outcomes
from rarepapers.reporting.tables.table_text import latex, markdown

KINDS = {
    "metrics": metric_cells,
    "neighbours": neighbour_cells,
    "generated": generated_cells,
    "gpt2": gpt2_cells,
    "hyperparameters": hyperparameter_cells,
    "readings": reading_cells,
    "comparison": comparison_cells,
}
# Sentences above the numbers, by kind of table: functions of (definition, item, cells).
SENTENCES = {"readings": reading_outcomes, "comparison": better_methods, "neighbours": query_sentences}
COLUMNS = ["row", "column", "group", "published", "value", "spread", "seeds", "difference", "note"]
# Additional columns of tables with intervals.
BOUNDS = ["lower", "upper"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--item", required=True, help="the table, such as table1")
    parser.add_argument("--definition", required=True, help="the paper's file of `definition`")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with runs/")
    parser.add_argument("--published", type=Path, default=Path("config/papers"), help="folder of the printed numbers")
    parser.add_argument("--output-stem", type=Path, required=True, help="path of the outputs without .csv, .md, .tex")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `table`."""
    definition, item = read_definition(arguments.definition), arguments.item
    definition.entry(item)
    results = read_item(arguments.results, definition, item)
    cells = cells_of(definition, item, results, arguments.published)
    stem = str(arguments.output_stem)
    write_table(f"{stem}.csv", tidy(cells))
    said = sentences_of(definition, item, cells)
    mixed = precision_notes(definition, item, results)
    write_text(f"{stem}.md", markdown(definition, item, cells, said, mixed))
    write_text(f"{stem}.tex", latex(definition, item, cells, said, mixed))


def cells_of(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """The cells of a table, by its kind."""
    return KINDS[definition.entry(item)["kind"]](definition.of(item), item, results, published)


def sentences_of(definition: Definition, item: str, cells: list[Cell]) -> list[str]:
    """The sentences above a table's numbers; empty for most kinds."""
    kind = definition.entry(item)["kind"]
    return SENTENCES[kind](definition.of(item), item, cells) if kind in SENTENCES else []


def precision_notes(definition: Definition, item: str, results: Results) -> list[str]:
    """A sentence for each method of a table whose seeds were trained in different precisions."""
    of = definition.of(item)
    mixed = ((method, mixed_precision(results.trainings(method))) for method in of.behind(item))
    return [f"{method.label} ({method.experiment}): {words}." for method, words in mixed if words]


def tidy(cells: list[Cell]) -> pd.DataFrame:
    """The cells as text, one per row: empty if missing or undefined, measured numbers with six digits.

    If any cell has an interval, columns for the bounds are added.
    """
    rows = []
    for cell in cells:
        lower, upper = cell.interval or (None, None)
        note = "; ".join(filter(None, [cell.note, cell.not_finite]))
        fields = vars(cell) | {"seeds": cell.seeds or None, "lower": lower, "upper": upper, "note": note}
        rows.append({name: _text(fields[name]) for name in (*COLUMNS, *BOUNDS)})
    bounds = BOUNDS if any(cell.interval for cell in cells) else []
    return pd.DataFrame(rows, columns=[*COLUMNS, *bounds])


def _text(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return csv_number(None if value is None or math.isnan(value) else value)
