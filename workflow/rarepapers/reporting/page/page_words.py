"""Generated sentences of the report: summary of results and names of data sets."""

import re
from collections import Counter
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from rarepapers.reporting.claims.claims_command import ARITHMETIC, EXPERIMENT, MATHEMATICS
from rarepapers.reporting.claims.verdicts import AGREES, DISAGREES, OTHER_VERDICTS
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.deviations import inline_html, without_comments
from rarepapers.reporting.page.page_claims import KINDS, contradicted, leanings
from rarepapers.reporting.page.provenance import runs_of
from rarepapers.reporting.results import Results

# Number of claims that a sentence names.
NAMED = 2
# The README's section with one point per paper.
FOUND = "## What was found\n"
# Kinds of claims that are counted separately, with their names in sentences.
APART = {kind: KINDS[kind] for kind in (MATHEMATICS, ARITHMETIC)} | {EXPERIMENT: "experiments"}
PICTURE = "overview.svg"  # the picture of the README, beside the pages
SHARED_PAGES = {"method": "Method", "cost": "Cost", "provenance": "Provenance"}


def pages_of(papers: list[dict]) -> list[dict]:
    """The pages in navigation order: name, file, template and label of links."""
    named = [{"name": "index", "label": "Overview", "template": "index.html.j2"}]
    for paper in papers:
        label = re.split(r": | \(", paper["title"])[0]
        named.append({"name": paper["id"], "label": label, "template": "paper.html.j2"})
    named += [{"name": name, "label": label, "template": f"{name}.html.j2"} for name, label in SHARED_PAGES.items()]
    return [page | {"file": f"{page['name']}.html"} for page in named]


def abbreviations(definitions: list[Definition], claims: list[dict], tables: list[dict] = ()) -> dict[str, str]:
    """The papers' abbreviations that occur in claims and table heads, with their meanings."""
    said = [claim["sentence"] for claim in claims]
    for layout in (grid["layout"] for table in tables if not table["waits"] for grid in table["grids"]):
        said += [*layout.heads, *(row for row, *_ in layout.rows), *(group for _, group, *_ in layout.rows)]
    text = " ".join(said)
    return {
        short: meaning
        for definition in definitions
        for short, meaning in definition.abbreviations.items()
        if re.search(rf"(?<!\w){re.escape(short)}(?!\w)", text)
    }


def title_of(papers: list[dict]) -> str:
    """The title of the report."""
    number = sum(1 for paper in papers if paper["claims"])
    if number < 2:
        return f"{papers[0]['title']}, on rare tokens"
    return f"{ {2: 'Two', 3: 'Three', 4: 'Four', 5: 'Five'}.get(number, number) } papers on rare tokens"


def what_was_found(readme: Path, folder: Path) -> dict[str, Markup]:
    """The README's points that name a paper, by its id, as HTML for a page in `folder`.

    A point of the section `FOUND` names its paper in a comment: `- <!-- agg --> **AGG** lowers ...`.
    """
    section = readme.read_text(encoding="utf-8").partition(FOUND)[2].partition("\n## ")[0]
    points = re.findall(r"^- <!-- (\S+) -->(.*?)(?=^- |\Z)", section, flags=re.MULTILINE | re.DOTALL)
    parser, found = MarkdownIt("commonmark", {"html": False}), {}
    for paper, point in points:
        (token,) = parser.parseInline(" ".join(without_comments(point).split()))
        found[paper] = inline_html(parser, token, readme, folder)
    return found


def findings(claims: list[dict]) -> str:
    """The first decided claims, and what the counts by verdict do not say."""
    return " ".join(filter(None, [standing_out(claims), counts_in_words(claims)]))


def counts_in_words(claims: list[dict]) -> str:
    """What the counts by verdict do not say: contradictions in print, leans, and claims that are not counted."""
    return " ".join(filter(None, [contradicted(claims), leanings(claims), unjudged_counts(claims)]))


def unjudged_counts(claims: list[dict]) -> str:
    """Counts of mathematics, printed arithmetic and unjudged experiments in words; empty if there are none."""
    parts = []
    for kind, name in APART.items():
        counts = Counter(claim["verdict"] for claim in claims if claim["kind"] == kind)
        said = ", ".join(f"{counts[word]} {word}" for word in OTHER_VERDICTS if counts[word])
        parts += [f"{name}: {said}"] if said else []
    return f"Not counted above: {'; '.join(parts)}." if parts else ""


def standing_out(claims: list[dict]) -> str:
    """The first claims that hold and that fail, by sentence; empty if none is decided."""
    parts = []
    for verdict in (*AGREES, *DISAGREES):
        found = [f"{one['sentence']} (ours {one['our_value']})" for one in claims if one["verdict"] == verdict]
        if found:
            more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
            parts.append(f"{verdict.capitalize()}: {'; '.join(found[:NAMED])}{more}.")
    return " ".join(parts)


def data_sets(definition: Definition, results: Results) -> list[str]:
    """Display names of the corpora on which a paper's finished runs were trained."""
    runs = runs_of(definition.shown(), results)
    return list(dict.fromkeys(definition.corpus_title(run.method.experiment) for run in runs if run.trained))
