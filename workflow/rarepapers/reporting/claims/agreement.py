"""Agreement of our numbers with the printed ones, by column of each table and for the claims about tables.

Signs and ranks are compared at every scale. The coefficient of variation compares the numbers themselves; it is empty
at scales that change more than the number of seeds.
"""

import argparse
import math
import statistics
from collections.abc import Iterable
from pathlib import Path

from rarepapers.reporting.claims.claim_parts import slacks
from rarepapers.reporting.claims.quantities import comparisons, of_this_scale
from rarepapers.reporting.claims.table_claims import printed_quantities, quantities_of_means
from rarepapers.reporting.claims.truths import Missing
from rarepapers.reporting.csv_rows import csv_number
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.report_options import add_report_arguments, write_for_papers
from rarepapers.reporting.results import Printed, Results, printed_numbers, read_published
from rarepapers.reporting.statistics.concordance import concordance, order
from rarepapers.reporting.statistics.over_seeds import mean_of, not_finite
from rarepapers.reporting.statistics.variation import cv_star
from rarepapers.reporting.tables.cells import measured_at, places_of

COLUMNS = [
    *("paper", "item", "column", "group", "rows", "seeds", "pairs", "sign_agreement", "kendall_tau", "spearman"),
    *("cv_star", "note"),
]
CLAIMS = "claims"  # name of the item for the paper's claims about tables
SCALED = "scaled: only directions and ranks are compared"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `agreement`."""
    write_for_papers(arguments, agreements, COLUMNS)


def agreements(definition: Definition, results: Results, published: Path) -> list[dict]:
    """The rows of agreement.csv for one paper: its claims, then every column and group of its tables of metrics.

    Columns without measured or without printed numbers have no row.
    """
    printed = printed_numbers(published, definition.paper)
    claims = read_published(published, "claims", definition.paper)
    judged = (claims["measured_by"] == "table") & (claims["kind"] == "experiment")
    rows = _of_claims(definition, results, printed, claims[judged].itertuples())
    for item, entry in definition.tables.items():
        if entry["kind"] == "metrics":
            rows += _of_table(definition.of(item), item, results, printed)
    return rows


def _of_table(definition: Definition, item: str, results: Results, printed: dict[tuple, Printed]) -> list[dict]:
    entry = definition.entry(item)
    rows = []
    for group, column, how in places_of(entry, entry["columns"]):
        theirs, ours, seeds, undefined = [], [], [], []
        for method in definition.methods_of(item):
            number = printed.get((item, method.printed_label, column, group))
            # An alternative reading would count its printed row twice.
            if number is None or method.reading or not method.is_measured_on(group):
                continue
            values = measured_at(results, entry, method, how, group)
            if not values:
                continue
            mean = mean_of(values.values())
            # An undefined number has no rank.
            if math.isnan(mean):
                undefined.append(f"without {method.label}: {not_finite(values)}")
                continue
            theirs.append(number.meant)
            ours.append(mean)
            seeds.append(len(values))
        if ours:
            rows.append(_row(definition, item, column, group, theirs, ours, min(seeds)))
            rows[-1]["note"] = "; ".join(filter(None, [rows[-1]["note"], *undefined]))
    return rows


def _row(
    definition: Definition, item: str, column: str, group: str, theirs: list[float], ours: list[float], seeds: int
) -> dict:
    found = concordance(theirs, ours)
    variations = [cv_star(pair) for pair in zip(theirs, ours, strict=True)] if definition.comparable else []
    known = [value for value in variations if value is not None]
    return {
        "paper": definition.paper,
        "item": item,
        "column": column,
        "group": group,
        "rows": found.rows,
        "seeds": seeds,
        "pairs": found.pairs,
        "sign_agreement": csv_number(found.signs),
        "kendall_tau": csv_number(found.kendall),
        "spearman": csv_number(found.spearman),
        "cv_star": csv_number(statistics.median(known) if known else None),
        "note": _note(definition),
    }


def _of_claims(definition: Definition, results: Results, printed: dict[tuple, Printed], claims: Iterable) -> list[dict]:
    """One row: the share of claims about tables whose slack has the printed sign; none if none was run.

    Both signs are computed on the groups of this scale.
    """
    agree, seeds = [], []
    for claim in claims:
        try:
            ours, number = quantities_of_means(claim.quantity, claim.unit, definition, results)
        except Missing:
            continue
        theirs = printed_quantities(of_this_scale(comparisons(claim.quantity), definition), claim.unit, printed)
        if None in theirs:
            continue
        signs = {order(min(slacks(claim, values)), 0) for values in (ours, theirs)}
        agree.append(len(signs) == 1)
        seeds += [number] if number else []
    if not agree:
        return []
    return [
        dict.fromkeys(COLUMNS, "")
        | {
            "paper": definition.paper,
            "item": CLAIMS,
            "rows": len(agree),
            "seeds": min(seeds, default=0),
            "pairs": len(agree),
            "sign_agreement": csv_number(sum(agree) / len(agree)),
            "note": _note(definition),
        }
    ]


def _note(definition: Definition) -> str:
    return "" if definition.comparable else SCALED
