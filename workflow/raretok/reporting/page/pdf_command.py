"""Render the report as one PDF: every claim, table and figure of a scale, to print or to send.

Typst sets it, a pip package without any program of the system. What runs and papers say goes to it as JSON, which it
never reads as markup.
"""

import argparse
import json
from pathlib import Path

import typst

from raretok.core.files import atomic_path
from raretok.reporting.csv_rows import read_rows
from raretok.reporting.definition import Definition, parse_definition
from raretok.reporting.page.page_claims import VERDICTS, apart, in_words, leans, own_claims, short, verdicts
from raretok.reporting.page.page_items import Sources, figure, tables
from raretok.reporting.page.provenance import Records, count, missing, runs_of
from raretok.reporting.report_options import add_report_arguments
from raretok.reporting.results import read_results
from raretok.reporting.tables.cells import Cell
from raretok.reporting.tables.table_text import shortened

TEMPLATE = Path(__file__).parents[1] / "templates" / "report.typ"
TITLE = "Papers on rare tokens, published beside reproduced"
# What is shown of a generated text; the csv has the whole.
CHARACTERS = 600
LEGEND = (
    "Each claim has a quantity of its own, a ratio (x1.22) or a difference: on the printed numbers, and ours with its "
    "95% interval over training seeds. The verdict says whether the effect has the claimed direction, after Holm's "
    "correction for the claims of the paper, and whether a stated size lies in our 95% prediction interval."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the pdf to write")
    parser.add_argument("--command", default="snakemake --cores all", help="what makes a file of these results")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `pdf`."""
    results = read_results(arguments.results)
    definitions = [parse_definition(text) for text in arguments.definitions]
    sources = Sources(
        results=results,
        published=arguments.published,
        folder=arguments.output.parent,
        command=arguments.command,
        deviations=[],
        records=Records(results),
    )
    claims = read_rows(arguments.results / "claims.csv")
    report = {
        "title": TITLE,
        "scale": definitions[0].scale_title,
        "verdicts": VERDICTS,
        "claims-legend": LEGEND,
        "apart": " ".join(filter(None, ["Claims about experiments by verdict.", leans(claims), apart(claims)])),
        "papers": [_paper(definition, claims, sources) for definition in definitions],
    }
    with atomic_path(arguments.output) as temporary:
        temporary.write_bytes(compiled(report))
    print(arguments.output)


def compiled(report: dict, form: str = "pdf") -> bytes | list[bytes]:
    """The report set by Typst; equal reports give equal bytes, on every machine: its fonts come with it."""
    words = json.dumps(report, ensure_ascii=False)
    compiler = typst.Compiler(TEMPLATE, root="/", ignore_system_fonts=True, sys_inputs={"report": words})
    return compiler.compile(format=form, timestamp=0)


def _paper(definition: Definition, claims: list[dict], sources: Sources) -> dict:
    runs = runs_of(definition, sources.records)
    done, expected = count(runs)
    own = own_claims(definition, claims)
    counts = verdicts(own)
    parts = {
        "Tables": tables(definition, sources, readings=False),
        "Contradictions": tables(definition, sources, readings=True),
    }
    return {
        "title": definition.title,
        "scale": definition.scale_note(),
        "runs": f"{done} of {expected}",
        "missing": missing(runs),
        "counts": [str(counts[verdict]) if own else "" for verdict in VERDICTS],
        "claims": [_claim(claim) for claim in own],
        "tables": [
            {"title": title, "tables": [_table(one) for one in found]} for title, found in parts.items() if found
        ],
        "figures": [_figure(figure(definition, item, sources)) for item in definition.figures],
    }


def _claim(claim: dict) -> dict:
    words = in_words(claim)
    ours = words["our_value"] + (f" ({words['interval']})" if words["interval"] else "")
    said = [ours, f"p {short(claim['p_holm'])}" if claim["p_holm"] else "", words["size_said"], words["lean_said"]]
    return {
        **{key: claim[key] for key in ("id", "sentence", "verdict", "note", "seeds")},
        "printed": words["printed_value"],
        "ours": ", ".join(filter(None, said)),
    }


def _table(table: dict) -> dict:
    grids = [
        {
            "heading": grid["heading"],
            "columns": grid["columns"],
            "groups": grid["groups"],
            "prose": [column in grid["prose"] for column in grid["columns"]],
            "rows": [
                {
                    "head": [row if first else "", *([group] if grid["groups"] else [])],
                    "cells": [_cell(found.get(column), table, column in grid["prose"]) for column in grid["columns"]],
                }
                for (row, group), found, first in grid["rows"]
            ],
        }
        for grid in table["grids"]
    ]
    return _about(table) | {
        "grids": grids,
        "said": " ".join(table["sentences"]),
        "notes": [table["legend"], *table["remarks"]],
    }


def _cell(cell: Cell | None, table: dict, prose: bool) -> dict | None:
    if cell is None:
        return None
    return {
        "own": shortened(table["number"](cell), CHARACTERS),
        "spread": "" if cell.spread is None else f" ± {table['spread'](cell)}",
        "published": shortened(cell.published, CHARACTERS),
        "best": cell.best,
        "prose": prose,
    }


def _figure(figure: dict) -> dict:
    return _about(figure) | {"path": str(figure["path"].resolve()), "alt": figure["alt"], "notes": []}


def _about(item: dict) -> dict:
    return {key: item[key] for key in ("heading", "missing", "command")}
