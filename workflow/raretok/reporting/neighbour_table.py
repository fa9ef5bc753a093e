"""The table of nearest tokens of chosen characters (stop_jostling, table 2)."""

from pathlib import Path

import numpy as np

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results, printed_numbers, read_published, summarise
from raretok.reporting.table_kinds import NOT_PRINTED, NOT_RUN, Cell

RELATED = "Related characters among the nearest three"
# Shown name of the column: (group of the metric related_neighbours, format)
RELATED_COLUMNS = {"of A and a (of 12)": ("Aa", ".1f"), "of all letters (share)": ("letters", ".3f")}


def neighbour_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Neighbours and cosines of the first seed, and over all seeds how many of them are related."""
    entry = definition.entry("tables", item)
    table = read_published(published, "neighbours", definition.paper)
    printed = {(row.method, row.query, int(row.rank)): row for row in table[table["item"] == item].itertuples()}
    numbers = printed_numbers(published, definition.paper)
    methods = [definition.method(name) for name in entry["methods"]]
    cells = [cell for method in methods for cell in _nearest(method, entry["queries"], results, printed)]
    for method in methods:
        for column, (group, shown) in RELATED_COLUMNS.items():
            summary = summarise(results.per_seed(method, "related_neighbours", group))
            key = ("text:4.6", method.printed_label, "related characters among top-3 neighbours", "")
            number = numbers.get(key) if group == "Aa" else None
            difference = summary.mean - number.value if definition.comparable and summary and number else None
            cells.append(
                Cell(
                    row=method.label,
                    column=column,
                    published=number.text if number else "",
                    value=summary.mean if summary else None,
                    spread=summary.spread if summary else None,
                    seeds=summary.seeds if summary else 0,
                    difference=difference,
                    note="" if summary else NOT_RUN,
                    format=shown,
                    direction="up",
                    block=RELATED,
                )
            )
    return cells


def _nearest(method: Method, queries: list[str], results: Results, printed: dict) -> list[Cell]:
    runs = results.seeds_with_arrays(method)
    ranks = range(1, 4)
    cells = []
    for rank in ranks:
        for query in queries:
            row = printed.get((method.printed_label, query, rank))
            flags = row.flag.split(";") if row else [NOT_PRINTED]
            suspect = "; ".join(flag for flag in flags if flag.startswith("suspect"))
            notes = [flag for flag in flags if flag != "none"]
            value = None
            if not runs:
                notes.append(NOT_RUN)
            else:
                found = [_neighbour(arrays, query, rank) for _, arrays in runs]
                if found[0] is None:
                    notes.append("the text has no such character")
                else:
                    value = "{} {:.2f}".format(*found[0])
                    same = sum(other is not None and other[0] == found[0][0] for other in found)
                    notes.append(f"seed {runs[0][0]}; the same at this rank in {same} of {len(runs)} seeds")
            cells.append(
                Cell(
                    row=method.label,
                    column=query,
                    group=str(rank),
                    published=f"{row.neighbour} {row.score}" if row else "",
                    value=value,
                    seeds=len(runs),
                    note="; ".join(filter(None, notes)),
                    remark=suspect,
                )
            )
    return cells


def _neighbour(arrays: dict[str, np.ndarray], query: str, rank: int) -> tuple[str, float] | None:
    """Name and cosine of the neighbour of `query` (such as A_LR) at `rank`, or None for no such character."""
    symbols = [chr(point) for point in arrays["symbols"]]
    symbol, _, language = query.rpartition("_")
    if symbol not in symbols:
        return None
    token = symbols.index(symbol) + (len(symbols) if language == "LR" else 0)
    identity = int(arrays["best.neighbours"][token, rank - 1])
    return token_name(identity, symbols), float(arrays["best.neighbour_cosines"][token, rank - 1])


def token_name(identity: int, symbols: list[str]) -> str:
    """A token's name in print: `a_LR` for the second language's a; blanks are made visible."""
    symbol = symbols[identity % len(symbols)]
    shown = {"\n": "\\n", " ": "␣"}.get(symbol, symbol)
    return f"{shown}_{'LR' if identity >= len(symbols) else 'HR'}"
