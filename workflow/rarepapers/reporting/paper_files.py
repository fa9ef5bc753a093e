"""The csv files of a paper: their columns, and what is checked when the config loads; few imports.

A mistake is one sentence with file, line and, for a name, the one that was probably meant. It would otherwise show
after the training, or not at all: a printed number of a misspelt row belongs to no row and is dropped.
"""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from rarepapers.core.config_files import are_numbers
from rarepapers.core.errors import UserError, meant
from rarepapers.metrics.declared import better
from rarepapers.reporting.claims.quantities import Key, comparisons
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.printed_places import places_of

TEXT = "text:"  # beginning of the item of a number in the paper's text
# Columns of numbers.csv and claims.csv, and what they hold (docs/adding_a_paper.md).
NUMBERS = {
    "item": "the table, or `text:` and a place for a number in the text, which no table shows",
    "row": "label of the method, without a [bracket]; name of a row of `data`, or of a GPT-2 model",
    "column": "name of the column",
    "group": "group of the column, or title of the experiment where the table compares several; empty without groups",
    "value": "the printed number; `inf` for an infinite perplexity",
    "unit": "the unit, for readers",
    "direction": "which values are better: `up`, `down` or `none`; that of the column's metric, or `none`",
    "rerun_by_paper": "`no` if the paper cites the number from another one, else `yes`",
    "note": "a remark, shown below the table",
    "reference": "the number that was meant, if the printed one is a misprint",
}
CLAIMS = {
    "id": "the paper's id, a dot, and a name of your choice",
    "kind": "`experiment`, `mathematics` (a formula, tried on random cases) or `printed_arithmetic`",
    "sentence": "the claim in one sentence, without a full stop",
    "quantity": "what is compared, [as below](#the-quantity-of-a-claim); of a figure's claim, its parts in words",
    "unit": "`x` for a ratio, else the unit of a difference",
    "null": "the value that the quantity has if the claim is wrong: 1 for a ratio, 0 for a difference",
    "direction": "`>`, `<`, `=` (within the margin), or empty if the paper claims none",
    "margin": "how much worse still counts as no harm, for claims of that kind; one number, or one per comparison",
    "size": "`stated` if the paper's text names the size of the effect, else empty",
    "ours": "which of these entries are our choice",
    "predicate": "the paper's condition, of a claim that is not about a table",
    "where": "section, table or figure of the paper",
    "measured_by": "`table`, or `figure` for a function of `claims.py`",
    "holds_on_printed_numbers": "`yes`, `no`, or empty if nothing is printed",
    "note": "a remark, shown with the claim",
}
DIRECTIONS = ("up", "down", "none")
# What a column of claims.csv can hold.
CHOICES = {
    "kind": ("experiment", "mathematics", "printed_arithmetic"),
    "direction": (">", "<", "=", ""),
    "size": ("stated", ""),
    "measured_by": ("table", "figure"),
    "holds_on_printed_numbers": ("yes", "no", ""),
}


def check_paper_files(definition: Definition, folder: Path) -> None:
    """Raises UserError for a mistake in numbers.csv or claims.csv of the paper in `folder`, or a missing function."""
    for figure in definition.figures:
        check_function(definition.paper, "figures", figure.replace("-", "_"), f"{folder}/paper.yaml: figures.{figure}")
    places, path, printed = places_of(definition), folder / "numbers.csv", set()
    for line, row in read_lines(path, NUMBERS):
        check_number(definition, places, row, f"{path}, line {line}")
        printed.add((row["item"], row["row"], row["column"], row["group"]))
    path, seen = folder / "claims.csv", {}
    for line, row in read_lines(path, CLAIMS):
        where = f"{path}, line {line}"
        if row["id"] in seen:
            raise UserError(f"{where}: the claim {row['id']} is also in line {seen[row['id']]}; give it another id")
        seen[row["id"]] = line
        check_claim(definition.paper, places, row, printed, where)


def read_lines(path: Path, columns: Iterable[str]) -> list[tuple[int, dict[str, str]]]:
    """(line, row) of a csv with these columns; raises UserError if it is missing or has other columns."""
    if not path.exists():
        raise UserError(f"{path} does not exist; without entries it has one line: {','.join(columns)}")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            head, *rows = [(reader.line_num, row) for row in reader]
        except (ValueError, csv.Error, UnicodeDecodeError):
            raise UserError(f"{path} is not a csv with a first line {','.join(columns)}") from None
    names = head[1]
    for name in names:
        if name not in columns:
            raise UserError(f"{path}, line 1: there is no column {name!r}; {meant(name, columns)}")
    for name in columns:
        if names.count(name) != 1:
            raise UserError(f"{path}, line 1: the column {name} is {'there twice' if name in names else 'missing'}")
    for line, row in rows:
        if len(row) != len(names):
            raise UserError(f"{path}, line {line}: {len(row)} cells, but there are {len(names)} columns")
    return [(line, dict(zip(names, row, strict=True))) for line, row in rows]


def check_number(definition: Definition, places: dict, row: dict[str, str], where: str) -> None:
    """Raises UserError for a mistake in a line of numbers.csv."""
    for name in ("value", "reference"):
        if not are_numbers(row[name], ("inf",)) or (name == "value" and not row[name]):
            raise UserError(f"{where}: {name} is {row[name]!r}; it must be a finite number or inf")
    if row["direction"] not in DIRECTIONS:
        raise UserError(f"{where}: direction is {row['direction']!r}; {meant(row['direction'], DIRECTIONS)}")
    if row["item"].startswith(TEXT):
        return
    check_place(places, Key(row["item"], row["row"], row["column"], row["group"]), where)
    how = definition.tables[row["item"]].get("columns", {}).get(row["column"])
    if how and row["direction"] not in ("none", better(how["metric"])):
        raise UserError(
            f"{where}: direction is {row['direction']!r}, but {how['metric']} is better {better(how['metric'])}"
        )


def check_claim(paper: str, places: dict, row: dict[str, str], printed: set[tuple], where: str) -> None:
    """Raises UserError for a mistake in a line of claims.csv. printed: places with a printed number.

    A claim may be about numbers that are not printed, and then has no printed value; arithmetic has nothing else.
    """
    if not row["id"].startswith(f"{paper}.") or row["id"] == f"{paper}.":
        raise UserError(f"{where}: the id is {row['id']!r}; it must begin with {paper!r} and a dot")
    for name, choices in CHOICES.items():
        if row[name] not in choices:
            raise UserError(f"{where}: {name} is {row[name]!r}; {meant(row[name], choices)}")
    for name in ("null", "margin"):
        if not are_numbers(row[name]) or (name == "null" and (not row[name] or ";" in row[name])):
            raise UserError(f"{where}: {name} is {row[name]!r}; it must be a finite number")
    if row["measured_by"] == "figure":
        check_function(paper, "claims", row["id"].removeprefix(f"{paper}.").replace(".", "_"), where)
    else:
        try:
            found = comparisons(row["quantity"])
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        for key in (key for one in found for key in one.keys):
            if row["kind"] != "printed_arithmetic":
                check_place(places, key, where)
            elif key not in printed:
                raise UserError(f"{where}: numbers.csv has no {' | '.join(filter(None, key))}, which this sum needs")


def check_function(paper: str, module: str, name: str, where: str) -> None:
    """Raises UserError unless a paper's module has a function; its text is searched, since its import takes seconds."""
    path = Path(__file__).parents[1] / "papers" / paper / f"{module}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not re.search(rf"^(def {name}\(|[\w, =]*\b{name}(, \w+)* = )", text, flags=re.MULTILINE):
        wanted = f"{name} of workflow/rarepapers/papers/{paper}/{module}.py"
        raise UserError(f"{where}: there is no function {wanted}; write it there")


def check_place(places: dict, key: Key, where: str) -> None:
    """Raises UserError unless a table of the paper has this row, column and group."""
    if key.table not in places:
        raise UserError(f"{where}: there is no table {key.table!r}; {meant(key.table, places)}")
    rows, columns = places[key.table]
    for name, given, names in (
        ("row", key.row, rows),
        ("column", key.column, columns),
        ("group", key.group, columns.get(key.column, ())),
    ):
        if given not in names:
            raise UserError(f"{where}: {key.table} has no {name} {given!r}; {meant(given, names)}")
