"""The command `readme`: recorded results in the README and in pages of docs/."""

import argparse
from collections.abc import Callable
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import relative_link, write_text
from rarepapers.reporting.claims.verdicts import VERDICTS, judged
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.page.filled_numbers import Recorded, filled
from rarepapers.reporting.page.page_claims import contradicted, leanings, own_claims, verdicts
from rarepapers.reporting.page.page_words import PICTURE, SHARED_PAGES, unjudged_counts
from rarepapers.reporting.page.provenance import count, runs_of
from rarepapers.reporting.report_options import add_report_arguments
from rarepapers.reporting.results import Results, read_results

# Markers in the README around the generated part of a scale.
BEGIN, END = "<!-- recorded {scale}: begin -->", "<!-- recorded {scale}: end -->"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the Markdown to write")
    parser.add_argument("--readme", type=Path, required=True, help="file with markers for the scale, and for numbers")
    parser.add_argument("--pages", type=Path, nargs="+", required=True, help="files with markers for numbers")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `readme`."""
    definitions = [read_definition(text) for text in arguments.definitions]
    text = readme_text(definitions, arguments.results, arguments.readme.parent)
    write_text(arguments.output, text)
    recorded = Recorded(arguments.results, definitions, arguments.published)
    update_file(arguments.readme, lambda before: insert_section(before, text, definitions[0].scale))
    for page in (arguments.readme, *arguments.pages):
        update_file(page, lambda before: filled(before, recorded, definitions[0].scale))


def update_file(path: Path, change: Callable[[str], str]) -> None:
    """Apply `change` to a text file; an unchanged file is not written."""
    before = path.read_text(encoding="utf-8")
    after = change(before)
    if after != before:
        write_text(path, after)


def readme_text(definitions: list[Definition], folder: Path, root: Path) -> str:
    """The README's Markdown: figure, links and verdicts of the results in `folder`; links are relative to `root`."""
    results = read_results(folder)
    claims = read_rows(folder / "claims.csv")
    where = relative_link(folder, root)
    pages = [("index", "overview"), *((one.paper, one.title) for one in definitions), *SHARED_PAGES.items()]
    links = [f"[{label}]({where}/report/{name}.html)" for name, label in pages]
    picture = f"[![What was found, paper by paper]({where}/report/{PICTURE})]({where}/report/index.html)"
    return (
        "\n\n".join([picture, f"The report: {', '.join(links)}.", _overview(definitions, results, claims, where)])
        + "\n"
    )


def insert_section(readme: str, text: str, scale: str) -> str:
    """The README with `text` between the markers of a scale; unchanged if it has no markers.

    Raises UserError if only one of the two markers is present.
    """
    begin, end = BEGIN.format(scale=scale), END.format(scale=scale)
    if begin not in readme and end not in readme:
        return readme
    if readme.count(begin) != 1 or readme.count(end) != 1 or readme.index(end) < readme.index(begin):
        raise UserError(f"the README must have {begin!r} once and {end!r} once after it, or neither")
    before, rest = readme.split(begin)
    return f"{before}{begin}\n{text}{end}{rest.split(end)[1]}"


def _overview(definitions: list[Definition], results: Results, claims: list[dict], where: str) -> str:
    possible = {verdict for definition in definitions if definition.printed for verdict in judged(definition)}
    heads = [verdict for verdict in VERDICTS if verdict in possible]
    lines = [
        f"| {definitions[0].scale_title} | runs | {' | '.join(heads)} |",
        "|---|---:" + "|---:" * len(heads) + "|",
    ]
    for definition in definitions:
        done, expected = count(runs_of(definition.shown(), results))
        counts = verdicts(own_claims(definition, claims))
        own = judged(definition) if counts else ()
        shown_counts = " | ".join(str(counts[verdict]) if verdict in own else "" for verdict in heads)
        lines.append(f"| {definition.title} | {done} of {expected} | {shown_counts} |")
    links = [
        f"[verdicts]({where}/claims.csv)",
        f"[numbers]({where}/metrics.csv)",
        f"[what made them]({where}/README.md)",
    ]
    own = [claim for definition in definitions for claim in own_claims(definition, claims)]
    said = [
        "Claims about experiments by verdict: *reproduced* or not where the experiment has the paper's own size; at a "
        "reduced scale they *hold* or *fail here*. A claim with one seed is never decided.",
        definitions[0].scale_shows,
        contradicted(own),
        leanings(own),
        unjudged_counts(own),
    ]
    return "\n".join(lines) + f"\n\n{' '.join(filter(None, said))} All {', '.join(links)}."
