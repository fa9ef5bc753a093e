"""The command `page`: render the report as self-contained HTML pages."""

import argparse
import base64
import hashlib
from collections import Counter
from datetime import date
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rarepapers.core.files import write_text
from rarepapers.experiments.seeds import seed_ranges
from rarepapers.reporting import token_text
from rarepapers.reporting.claims.verdicts import AGREES, DISAGREES, NOT_JUDGED, OTHER_VERDICTS, VERDICTS, judged
from rarepapers.reporting.cost import by_device, hours, read_costs
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.deviations import of_paper, read_deviations, slug
from rarepapers.reporting.page.page_card import card
from rarepapers.reporting.page.page_claims import KINDS, claims_of, short, verdicts
from rarepapers.reporting.page.page_forest import TICKS
from rarepapers.reporting.page.page_items import Sources, figure, tables
from rarepapers.reporting.page.page_statistics import agreement_rows, paired_test_rows, with_rowspans
from rarepapers.reporting.page.page_words import (
    PICTURE,
    abbreviations,
    counts_in_words,
    data_sets,
    findings,
    pages_of,
    title_of,
    what_was_found,
)
from rarepapers.reporting.page.pictures import as_data
from rarepapers.reporting.page.provenance import provenance
from rarepapers.reporting.page.second_readings import CHECKED, second_readings
from rarepapers.reporting.report_options import add_report_arguments
from rarepapers.reporting.results import read_results

TEMPLATES = Path(__file__).parents[1] / "templates" / "page"
FILES = ("metrics.csv", "claims.csv", "agreement.csv", "cost.csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "path of index.html; the other pages are written to the same folder")
    parser.add_argument(
        "--comparisons",
        type=Path,
        nargs="*",
        default=[],
        help="files of the command compare (default: no paired tests)",
    )
    parser.add_argument("--deviations", type=Path, default=Path("docs/deviations.md"), help="list of deviations")
    parser.add_argument("--readme", type=Path, nargs="?", help="the README, if it has findings on these results")
    parser.add_argument("--command", default="snakemake --cores all", help="command that makes a file of these results")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `page`."""
    definitions = [read_definition(text) for text in arguments.definitions]
    results, folder = read_results(arguments.results), arguments.output.parent
    sources = Sources(
        results=results,
        published=arguments.published,
        folder=folder,
        command=arguments.command,
        deviations=read_deviations(arguments.deviations, [one.paper for one in definitions], folder),
    )
    rows = {name: read_rows(arguments.results / f"{name}.csv") for name in ("claims", "agreement")}
    found = what_was_found(arguments.readme, folder) if arguments.readme else {}
    papers = [
        _paper(definition, rows, sources, arguments.comparisons) | {"found": found.get(definition.paper, "")}
        for definition in definitions
    ]
    claims = [claim for paper in papers for claim in paper["claims"]]
    costs = read_costs(arguments.results / "cost.csv")
    shared = {
        "papers": papers,
        "pages": pages_of(papers),
        "scale": definitions[0].scale,
        "scale_title": definitions[0].scale_title,
        "scale_shows": definitions[0].scale_shows,
        "today": date.today().isoformat(),
        "links": {name: sources.link(arguments.results / name) for name in FILES},
        "deviations": sources.link(arguments.deviations),
        "statistics_page": sources.link(arguments.deviations.with_name("statistics.md")),
        "sums": sums(definitions, papers),
        "found": [found[definition.paper] for definition in definitions if definition.paper in found],
        "findings_page": sources.link(arguments.deviations.with_name("findings.md")),
        "said": counts_in_words(claims) if found else findings(claims),
        "abbreviations": abbreviations(definitions, claims),
        "costs": _costs(definitions, costs),
        "total": hours(costs),
        "heading": f"{title_of(papers)}: what holds up",
        "link_of": lambda run, seed: sources.link(results.record_of(run.method, seed)),
        "command": arguments.command,
    }
    environment = templates()
    write_text(folder / PICTURE, environment.get_template(f"{PICTURE}.j2").render(shared))
    for page in shared["pages"]:
        more = {"page": page, "paper": next((one for one in papers if one["id"] == page["name"]), None)}
        write_text(folder / page["file"], environment.get_template(page["template"]).render(shared | more))
    print(arguments.output)


def sums(definitions: list[Definition], papers: list[dict]) -> list[dict]:
    """Numbers of verdicts over the papers of one size, which are never added to those of another.

    said: a sentence that names the papers. judged: the verdicts of that size.
    """
    found = []
    for comparable, size in ((True, "of the paper's own size"), (False, "at a reduced scale")):
        those = [
            (one, paper)
            for one, paper in zip(definitions, papers, strict=True)
            if paper["claims"] and one.comparable == comparable
        ]
        if those:
            counts = sum((paper["counts"] for _, paper in those), Counter())
            names = ", ".join(one.title for one, _ in those)
            number = counts.total() - counts[NOT_JUDGED]
            said = f"{number} claims about experiments {size} ({names}):"
            found.append({"said": said, "counts": counts, "judged": judged(those[0][0])})
    return found


def templates() -> Environment:
    """The Jinja environment of the page templates; all values are escaped except Markup."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    environment.filters["token"] = token_text.html
    environment.globals |= {
        "verdicts": VERDICTS,
        "agrees": AGREES,
        "disagrees": DISAGREES,
        "shown_verdicts": VERDICTS + OTHER_VERDICTS,
        "kinds": KINDS,
        "ticks": TICKS,
        "checked": CHECKED,
        "slug": slug,
        "short": short,
        "seed_ranges": seed_ranges,
        "as_data": as_data,
        "with_rowspans": with_rowspans,
        "script": Markup(script),
        "script_sha256": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return environment


def _paper(definition: Definition, rows: dict[str, list[dict]], sources: Sources, comparisons: list[Path]) -> dict:
    claims = claims_of(definition, rows["claims"], sources)
    shown = {
        "id": definition.paper,
        "title": definition.title,
        "source": definition.source,
        "summary": definition.summary,
        "comparable": definition.comparable or not definition.printed,
        "data_sets": data_sets(definition, sources.results),
        "tables": tables(definition, sources, readings=False),
        "readings": tables(definition, sources, readings=True),
        "figures": [figure(definition, item, sources) for item in definition.figures],
        "agreement": agreement_rows(rows["agreement"], definition.paper),
        "paired_tests": paired_test_rows(definition, comparisons),
        "claims": claims,
        "second_readings": second_readings(sources.published, definition.paper, claims),
        "counts": verdicts(claims),
        "judged": judged(definition),
        "kinds": Counter(claim["kind"] for claim in claims),
        "deviations": of_paper(sources.deviations, definition.paper),
        "made": provenance(definition, sources.results),
        "card": card(definition, sources.results, sources.published),
    }
    short = abbreviations([definition], claims, shown["tables"] + shown["readings"])
    return shown | {"findings": findings(claims), "abbreviations": short}


def _costs(definitions: list[Definition], table: pd.DataFrame) -> list[dict]:
    """Training cost of each paper's runs, by device."""
    rows = [(paper, by_device(table[table["paper"] == paper.paper])) for paper in definitions]
    return [{"title": paper.title, **row} for paper, shown in rows for row in shown]
