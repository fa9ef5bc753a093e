"""Tables of nearest tokens of given queries, for two languages of characters or for a vocabulary."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from rarepapers.metrics.declared import better
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Results, printed_numbers, read_published, summarise
from rarepapers.reporting.tables.cells import NOT_PRINTED, NOT_RUN, Cell, mark_best, numbers_of
from rarepapers.reporting.token_text import visible_text
from rarepapers.reporting.translation_metrics import other_language

RELATED = "Related characters among the nearest three"
# Shown name of the column: (group of the metric related_neighbours, format)
RELATED_COLUMNS = {"of A and a (of 12)": ("Aa", ".1f"), "of all letters (share)": ("letters", ".3f")}
RARE_SHARE = "Rare tokens among the nearest of all rare tokens"
# Heading of printed queries that no run has; the cells have no value of ours.
PRINTED = "The paper's queries and neighbours"
RARE = "†"
OTHER_SHARE = "Neighbours of the other language among all of these"
OTHER = "‡"


def neighbour_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Neighbours and cosines of the first seed, and shares of related or rare neighbours over all seeds."""
    entry = definition.entry(item)
    table = read_published(published, "neighbours", definition.paper)
    printed = {(row.method, row.query, int(row.rank)): row for row in table[table["item"] == item].itertuples()}
    numbers = printed_numbers(published, definition.paper)
    methods = definition.methods_of(item)
    runs = {method.name: results.seeds_with_arrays(method) for method in methods}
    of_characters = "ranks" not in entry
    if of_characters:
        queries, ranks, neighbour = entry["queries"], range(1, 4), _neighbour
        absent = "the text does not have this character"
    else:
        own = [query for found in runs.values() for _, arrays in found for query in queries_of(arrays)]
        queries = dict.fromkeys([*entry["queries"], *own])
        ranks, neighbour = range(1, entry["ranks"] + 1), language_neighbour
        absent = "not in this run's vocabulary" + ", or not rare there" * ("rare_group" in entry)
    cells = []
    for method in methods:
        cells += _cells(method, runs[method.name], queries, ranks, printed, neighbour, absent)
    if not of_characters:
        if own:
            cells = [replace(cell, block="" if cell.column in own else PRINTED) for cell in cells]
            cells.sort(key=lambda cell: cell.block == PRINTED)
        rare = entry.get("rare_group")
        what = ("rare_neighbours", rare, RARE_SHARE)
        what = what if rare else ("neighbours_other_language", "", OTHER_SHARE)
        return mark_best([*cells, *(_share(method, results, *what) for method in methods)])
    for method in methods:
        for column, (group, shown) in RELATED_COLUMNS.items():
            summary = summarise(results.per_seed(method, "related_neighbours", group))
            key = ("text:4.6", method.printed_label, "related characters among top-3 neighbours", "")
            fields = numbers_of(summary, numbers.get(key) if group == "Aa" else None, definition)
            fields |= {
                "note": "" if summary else NOT_RUN,
                "format": shown,
                "direction": better("related_neighbours"),
                "block": RELATED,
            }
            cells.append(Cell(row=method.label, column=column, **fields))
    return cells


def query_sentences(definition: Definition, item: str, cells: list[Cell]) -> list[str]:
    """Sentence on our queries and their corpus, if they are not the paper's."""
    if not any(cell.block == PRINTED for cell in cells):
        return []
    (experiment,) = {method.experiment for method in definition.methods_of(item)}
    own = list(dict.fromkeys(cell.column for cell in cells if not cell.block))
    title = definition.corpus_title(experiment)
    return [f"Our queries are not the paper's: {len(own)} rare types of {title}, which can be parts of words."]


def _cells(
    method: Method, runs: list, queries: list[str], ranks: range, printed: dict, neighbour: Callable, absent: str
) -> Iterator[Cell]:
    """The `neighbour` of each query at each rank in the first run; `absent`: the note if the query is missing."""
    for rank in ranks:
        for query in queries:
            row = printed.get((method.printed_label, query, rank))
            # Flags are our remarks on printed scores.
            flags = row.flag.split(";") if row and row.score else [] if row else [NOT_PRINTED]
            suspect = "; ".join(flag for flag in flags if flag.startswith("suspect"))
            notes = [flag for flag in flags if flag != "none"]
            found = [neighbour(arrays, query, rank) for _, arrays in runs]
            if not found:
                notes.append(NOT_RUN)
            elif found[0] is None:
                notes.append(absent)
            else:
                same = sum(other is not None and other[0] == found[0][0] for other in found)
                notes.append(f"seed {runs[0][0]}; the same at this rank in {same} of {len(runs)} seeds")
            yield Cell(
                row=method.label,
                column=query,
                named=False,
                group=str(rank),
                published=f"{row.neighbour} {row.score}".strip() if row else "",
                value="{} {:.2f}".format(*found[0]) if found and found[0] else None,
                seeds=len(runs),
                note="; ".join(filter(None, notes)),
                remarks=(suspect,) if suspect else (),
            )


def _neighbour(arrays: dict[str, np.ndarray], query: str, rank: int) -> tuple[str, float] | None:
    """Name and cosine of the neighbour of `query` (such as A_LR) at `rank`, or None for an unknown character."""
    symbols = [chr(point) for point in arrays["symbols"]]
    symbol, _, language = query.rpartition("_")
    if symbol not in symbols:
        return None
    token = symbols.index(symbol) + (len(symbols) if language == "LR" else 0)
    identity = int(arrays["best.neighbours"][token, rank - 1])
    return token_name(identity, symbols), float(arrays["best.neighbour_cosines"][token, rank - 1])


def token_name(identity: int, symbols: list[str]) -> str:
    """A token's display name: `a_LR` for the second language's a; blanks are made visible."""
    return f"{visible_text(symbols[identity % len(symbols)])}_{'LR' if identity >= len(symbols) else 'HR'}"


def queries_of(arrays: dict[str, np.ndarray]) -> dict[str, int]:
    """Row of each query in the run's neighbours, by its displayed text; the first of those that differ in a blank."""
    if "best.neighbour_queries" not in arrays:
        return {}
    found: dict[str, int] = {}
    for row, identity in enumerate(arrays["best.neighbour_queries"]):
        found.setdefault(visible_text(str(arrays["vocabulary"][identity])).removeprefix("␣"), row)
    return found


def language_neighbour(arrays: dict[str, np.ndarray], query: str, rank: int) -> tuple[str, float] | None:
    """Name (marked if rare or of the other language) and cosine of the neighbour of `query` at `rank`.

    None if the run has no such query.
    """
    row = queries_of(arrays).get(query)
    if row is None or rank > arrays["best.neighbours"].shape[1]:
        return None
    identity = int(arrays["best.neighbours"][row, rank - 1])
    mark = RARE if identity >= int(arrays["bounds"][1]) else ""
    others = other_language(arrays, int(arrays["best.neighbour_queries"][row]))
    mark += OTHER if others is not None and others[identity] else ""
    return visible_text(str(arrays["vocabulary"][identity])) + mark, float(
        arrays["best.neighbour_cosines"][row, rank - 1]
    )


def _share(method: Method, results: Results, metric: str, group: str, block: str) -> Cell:
    summary = summarise(results.per_seed(method, metric, group))
    note = NOT_PRINTED if summary else f"{NOT_PRINTED}; {NOT_RUN}"
    fields = numbers_of(summary) | {"note": note, "format": ".3f", "direction": better(metric), "block": block}
    return Cell(row=method.label, column="share", **fields)
