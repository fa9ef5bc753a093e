"""Render the report: one HTML page that needs no network, with every table, figure and claim of a scale."""

import argparse
import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from raretok.core.files import relative_link, write_text
from raretok.reporting.cost import by_device, read_costs
from raretok.reporting.csv_rows import read_rows
from raretok.reporting.definition import Definition, parse_definition
from raretok.reporting.deviations import of_paper, read_deviations, slug
from raretok.reporting.page.page_claims import OTHER_VERDICTS, VERDICTS, apart, claims_of, leans, short, verdicts
from raretok.reporting.page.page_items import Sources, figure, tables
from raretok.reporting.page.page_statistics import agreement_rows, improvement_rows
from raretok.reporting.page.paired_tests import paired_tests
from raretok.reporting.page.pictures import as_data
from raretok.reporting.page.provenance import Records, provenance
from raretok.reporting.report_options import add_report_arguments
from raretok.reporting.results import read_results

TEMPLATES = Path(__file__).parents[1] / "templates" / "page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the html to write")
    parser.add_argument("--deviations", type=Path, default=Path("docs/deviations.md"))
    parser.add_argument("--command", default="snakemake --cores all", help="what makes a file of these results")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `page`."""
    definitions = [parse_definition(text) for text in arguments.definitions]
    results, folder = read_results(arguments.results), arguments.output.parent
    sources = Sources(
        results=results,
        published=arguments.published,
        folder=folder,
        command=arguments.command,
        deviations=read_deviations(arguments.deviations, [one.paper for one in definitions], folder),
        records=Records(results),
    )
    statistics = {name: read_rows(arguments.results / f"{name}.csv") for name in ("claims", "agreement", "improvement")}
    files = ("metrics.csv", *(f"{name}.csv" for name in statistics), "cost.csv", "report/report.pdf")
    text = rendered(
        scale=definitions[0].scale,
        scale_note=definitions[0].scale_title,
        papers=[_paper(definition, statistics, sources) for definition in definitions],
        leans=leans(statistics["claims"]),
        apart=apart(statistics["claims"]),
        costs=_costs(definitions, arguments.results / "cost.csv"),
        provenance=provenance(definitions, sources.records),
        deviations=relative_link(arguments.deviations, folder),
        links={Path(file).name: relative_link(arguments.results / file, folder) for file in files},
        run_link=lambda run, seed: sources.link(sources.records.path(run.method, seed)),
    )
    write_text(arguments.output, text)
    print(arguments.output)


def rendered(**words) -> str:
    """The template with `words`: everything in them is text and is escaped, but for Markup."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        verdicts=VERDICTS,
        shown_verdicts=VERDICTS + OTHER_VERDICTS,
        slug=slug,
        short=short,
        as_data=as_data,
        script=Markup(script),
        script_sha256=digest,
        **words,
    )


def _paper(definition: Definition, statistics: dict[str, list[dict]], sources: Sources) -> dict:
    own = claims_of(definition, statistics["claims"], sources.deviations)
    return {
        "id": definition.paper,
        "title": definition.title,
        "scale_note": definition.scale_note(),
        "tables": tables(definition, sources, readings=False),
        "readings": tables(definition, sources, readings=True),
        "figures": [figure(definition, item, sources) for item in definition.figures],
        "agreement": agreement_rows(statistics["agreement"], definition.paper),
        "improvement": improvement_rows(statistics["improvement"], definition.paper),
        "paired_tests": paired_tests(definition, sources.results.folder),
        "claims": own,
        "counts": verdicts(own),
        "deviations": of_paper(sources.deviations, definition.paper),
    }


def _costs(definitions: list[Definition], path: Path) -> list[dict]:
    """What the runs of each paper took, by device."""
    table = read_costs(path)
    rows = [(paper, by_device(table[table["paper"] == paper.paper])) for paper in definitions]
    return [{"title": paper.title, **row} for paper, shown in rows for row in shown]
