"""Cards of the overview page: one metric of a few methods, printed and ours, relative to the first method."""

import math
from collections.abc import Iterable
from pathlib import Path

from rarepapers.reporting.claims.claim_text import THOUSAND, number
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Results, index_results
from rarepapers.reporting.statistics.over_seeds import ratio_of
from rarepapers.reporting.tables.cells import Cell
from rarepapers.reporting.tables.table_command import cells_of

# Longest bar, in lengths of the first one.
LONGEST = 100.0


def card(definition: Definition, results: Results, published: Path) -> dict | None:
    """The card described by `headline` in the paper's config, or None.

    Returns a dict: `says`, the caption; `bars`, tuples of a label, then for the paper and for us the number relative
    to the first method, None without a bar (`_shares`), and the number as text, empty if missing; `longest`, the
    largest ratio, at least 1; `about`, a clause on our numbers, which are means over the seeds that all methods with a
    run have, or empty.
    """
    shown = definition.headline
    if not shown:
        return None
    item = shown["table"]
    methods = [definition.of(item).methods[name] for name in shown["methods"]]
    seeds = _common_seeds(results, methods)
    # A further seed of one method may be a lucky one.
    results = index_results(results.folder, results.metrics[results.metrics["seed"].isin(seeds)])
    labels = [method.label for method in methods]
    place = (shown["column"], shown["group"], "")
    cells = cells_of(definition, item, results, published)
    cells = {cell.row: cell for cell in cells if (cell.column, cell.group, cell.block) == place}
    shown_cells = [cell for cell in map(cells.get, labels) if cell and (cell.value is not None or cell.published)]
    printed, ours = _shares(map(_printed, shown_cells)), _shares(cell.value for cell in shown_cells)
    bars = [
        # The printed labels call the authors' own method "(Ours)".
        (cell.row.replace(" (Ours)", ""), (of_paper, rounded(_printed(cell)) or cell.published), (own, _ours(cell)))
        for cell, of_paper, own in zip(shown_cells, printed, ours, strict=True)
    ]
    known = [share for share in (*printed, *ours) if share is not None]
    about = [f"means over {len(seeds)} seeds"] if len(seeds) > 1 else []
    about += [f"{cell.row} is {cell.not_finite}" for cell in shown_cells if cell.not_finite]
    about += ["the paper prints no numbers"] if bars and not any(map(_printed, shown_cells)) else []
    return {"says": shown["says"], "bars": bars, "longest": max([1.0, *known]), "about": "; ".join(about)}


def _common_seeds(results: Results, methods: list[Method]) -> list[int]:
    """The seeds that all of the methods with a run have."""
    runs = [{seed for *run, seed in results.runs if run == [method.experiment, method.name]} for method in methods]
    return sorted(set.intersection(*found)) if (found := [one for one in runs if one]) else []


def rounded(value: float | None, digits: int = 3) -> str:
    """A number with so many digits, trailing zeros included; empty for None."""
    if value is None:
        return ""
    if math.isnan(value):
        return "undefined"
    return f"{value:#.{digits}g}".rstrip(".") if abs(value) < THOUSAND else number(value, "")


def _ours(cell: Cell) -> str:
    """Our mean with its standard deviation over seeds, if there are several."""
    if not cell.spread:
        return rounded(cell.value)
    return f"{rounded(cell.value)} ± {rounded(cell.spread, 2 if cell.spread < 99.5 else 3)}"


def _shares(values: Iterable[float | None]) -> list[float | None]:
    """Values divided by the first one; None if it or the quotient is not a length of a bar.

    A bar has no length if it is negative, not finite, or so long that the others would vanish.
    """
    values = list(values)
    ratios = [ratio_of(value, next((one for one in values if one is not None), None)) for value in values]
    return [None if ratio is None or not 0 <= ratio <= LONGEST else ratio for ratio in ratios]


def _printed(cell: Cell) -> float | None:
    value = float(cell.published) if cell.published else math.nan
    return value if math.isfinite(value) else None
