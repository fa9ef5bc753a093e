"""Render the report: one HTML page that needs no network, with every table, figure and claim of a scale."""

import argparse
import base64
import os
import re
from collections import Counter
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from raretok.errors import UserError
from raretok.files import read_json, write_text
from raretok.reporting.cost import by_device, read_costs
from raretok.reporting.definition import Definition, parse_definition
from raretok.reporting.paired_tests import paired_tests
from raretok.reporting.results import Results, read_results
from raretok.reporting.table_kinds import blocks
from raretok.reporting.table_text import axes, legend, number, prose_columns, remarks, under_heading
from raretok.reporting.tables import cells_of

VERDICTS = ("reproduced", "not reproduced", "inconclusive", "not run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--definitions", nargs="+", required=True, help="one JSON of runs.py for each paper")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with metrics.csv")
    parser.add_argument("--published", type=Path, default=Path("config/published"))
    parser.add_argument("--deviations", type=Path, default=Path("docs/deviations.md"))
    parser.add_argument("--output", type=Path, required=True, help="the html to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `page`."""
    results = read_results(arguments.results)
    definitions = [parse_definition(text) for text in arguments.definitions]
    claims = _read_claims(arguments.results / "claims.csv")
    folder = arguments.output.parent
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("page.html.j2").render(
        scale=definitions[0].scale,
        scale_note=definitions[0].scale_title,
        papers=[_paper(definition, results, claims, arguments.published, folder) for definition in definitions],
        verdicts=VERDICTS,
        slug=slug,
        short=short,
        costs=_costs(definitions, arguments.results / "cost.csv"),
        cost_csv=_relative(arguments.results / "cost.csv", folder),
        provenance=_provenance(definitions, results),
        deviations=_relative(arguments.deviations, folder),
        metrics=_relative(arguments.results / "metrics.csv", folder),
        claims_csv=_relative(arguments.results / "claims.csv", folder),
    )
    write_text(arguments.output, text)
    print(arguments.output)


def slug(text: str) -> str:
    """`text` as a word that can be a class or an id in HTML."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def short(value: str) -> str:
    """A number of claims.csv in three digits, an en dash for none; the csv keeps the others."""
    return f"{float(value):.3g}" if value else "–"


def _paper(definition: Definition, results: Results, claims: list[dict], published: Path, folder: Path) -> dict:
    own = own_claims(definition, claims)
    return {
        "id": definition.paper,
        "title": definition.title,
        "scale_note": definition.scale_note(),
        "tables": [_table(definition, item, results, published, folder) for item in definition.tables],
        "figures": [_figure(definition, item, results, folder) for item in definition.figures],
        "paired_tests": paired_tests(definition, results.folder),
        "claims": own,
        "counts": Counter(claim["verdict"] for claim in own),
    }


def own_claims(definition: Definition, claims: list[dict]) -> list[dict]:
    """The rows of claims.csv on a paper, without the scale, which the section's title says for all of them."""
    said = f"; {definition.scale_note()}"
    return [
        claim | {"note": f"; {claim['note']}".removesuffix(said).removeprefix("; ")}
        for claim in claims
        if claim["paper"] == definition.paper
    ]


def _table(definition: Definition, item: str, results: Results, published: Path, folder: Path) -> dict:
    cells = cells_of(definition, item, results, published)
    grids = []
    for heading, block in blocks(cells):
        columns, rows, groups = axes(under_heading(block))
        grids.append(
            {"heading": heading, "columns": columns, "rows": rows, "groups": groups, "prose": prose_columns(block)}
        )
    return {
        "id": f"{definition.paper}-{item}",
        "heading": definition.heading(item),
        "grids": grids,
        "legend": " ".join(legend(definition, cells)),
        "remarks": remarks(cells),
        "number": number,
        "spread": lambda cell: format(cell.spread, cell.format),
        "files": [
            (kind, _relative(results.folder / "tables" / definition.paper / f"{item}.{kind}", folder))
            for kind in ("csv", "md", "tex")
        ],
    }


def _figure(definition: Definition, item: str, results: Results, folder: Path) -> dict:
    stem = results.folder / "figures" / definition.paper / item
    svg, png = Path(f"{stem}.svg"), Path(f"{stem}.png")
    if not svg.exists() or not png.exists():
        raise UserError(f"{svg} or its png does not exist; make it with `snakemake {svg}`.")
    source = min(svg, png, key=lambda path: path.stat().st_size)
    kind = {".svg": "image/svg+xml", ".png": "image/png"}[source.suffix]
    return {
        "id": f"{definition.paper}-{item}",
        "heading": definition.heading(item),
        "image": f"data:{kind};base64,{base64.b64encode(source.read_bytes()).decode()}",
        "files": [(suffix, _relative(Path(f"{stem}.{suffix}"), folder)) for suffix in ("svg", "png", "pdf")],
    }


def _read_claims(path: Path) -> list[dict]:
    if not path.exists():
        raise UserError(f"{path} does not exist; make it with `snakemake {path}`.")
    return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")


def _costs(definitions: list[Definition], path: Path) -> list[dict]:
    """What the runs of each paper took, by device."""
    table = read_costs(path)
    rows = [(paper, by_device(table[table["paper"] == paper.paper])) for paper in definitions]
    return [{"title": paper.title, **row} for paper, shown in rows for row in shown]


def _provenance(definitions: list[Definition], results: Results) -> list[dict]:
    """What the runs of each paper were made with, from their metrics.json: every value that occurs."""
    papers = []
    for definition in definitions:
        methods = definition.shown()
        trainings = []
        for method in methods:
            for seed in method.seeds:
                path = results.folder / "runs" / method.experiment / method.name / f"seed{seed}" / "metrics.json"
                if path.exists():
                    trainings.append(read_json(path)["training"])
        seen = {
            "Seeds": {str(training["seed"]) for training in trainings},
            "Devices": {training["device"] for training in trainings},
            "Versions": {f"{key} {value}" for t in trainings for key, value in t["versions"].items()},
            "Commits": {training["commit"] for training in trainings},
            "Data (sha256)": {training["data"] for training in trainings},
        }
        expected = sum(len(method.seeds) for method in methods)
        hours = sum(training["seconds"] for training in trainings) / 3600
        facts = {"Runs": f"{len(trainings)} of {expected}", "Training time": f"{hours:.2f} hours in all"}
        papers.append(
            {
                "title": definition.title,
                "facts": facts | {name: ", ".join(sorted(values)) for name, values in seen.items()},
                "runs": trainings,
            }
        )
    return papers


def _relative(path: Path, folder: Path) -> str:
    """The path of a file as a link from a page in `folder`."""
    return Path(os.path.relpath(path, folder)).as_posix()
