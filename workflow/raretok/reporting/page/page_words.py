"""Sentences of the report that are made of its numbers: what was found, and on which data."""

import re
from collections import Counter

from raretok.reporting.claims.claims_command import ARITHMETIC, EXPERIMENT, MATHEMATICS
from raretok.reporting.claims.verdicts import AGAINST, NOT_RUN, REFUTED, REPRODUCED, TOWARDS, UNDECIDED
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import Definition
from raretok.reporting.page.page_claims import KINDS, OTHER_VERDICTS
from raretok.reporting.page.provenance import Records, runs_of

SAID = (REPRODUCED, REFUTED, UNDECIDED)
# Claims that a sentence names.
NAMED = 2
# What is counted apart from experiments, and how a sentence calls it.
APART = {kind: KINDS[kind] for kind in (MATHEMATICS, ARITHMETIC)} | {EXPERIMENT: "experiments"}
# What pages explain where it first occurs: names of methods, groups and columns.
ABBREVIATIONS = {
    "HR": "high-resource language",
    "LR": "low-resource language",
    "SE": "separated embeddings",
    "MLE": "maximum likelihood",
    "AGG": "adaptive gradient gating",
    "AGPS": "adaptive gradient partial scaling",
    "CosReg": "cosine regularisation",
    "UL": "unlikelihood training",
    "PPL": "perplexity",
    "MRR": "mean reciprocal rank",
    "Uniq": "distinct predicted tokens",
    "ALC": "area under the learning curve",
    "I(W)": "isotropy of the output embeddings",
    "Zipfian": "isotropy of the output embeddings weighted by frequency",
    "S(w)": "mean cosine of all embeddings",
}
PICTURE = "overview.svg"  # the picture of the README, beside the pages
SHARED_PAGES = {"method": "Method", "cost": "Cost", "provenance": "Provenance"}


def pages_of(papers: list[dict]) -> list[dict]:
    """The pages in the order of the navigation: name, file, template, and what links call it."""
    named = [{"name": "index", "label": "Overview", "template": "index.html.j2"}]
    for paper in papers:
        label = paper["title"].partition(" (")[0] if paper["claims"] else "Comparison"
        named.append({"name": paper["id"], "label": label, "template": "paper.html.j2"})
    named += [{"name": name, "label": label, "template": f"{name}.html.j2"} for name, label in SHARED_PAGES.items()]
    return [page | {"file": f"{page['name']}.html"} for page in named]


def abbreviations(claims: list[dict], tables: list[dict] = ()) -> dict[str, str]:
    """The abbreviations in claims and in the heads of tables, with what they mean."""
    said = [claim["sentence"] for claim in claims]
    for layout in (grid["layout"] for table in tables if not table["waits"] for grid in table["grids"]):
        said += [*layout.heads, *(row for row, *_ in layout.rows), *(group for _, group, *_ in layout.rows)]
    text = " ".join(said)
    return {
        short: meaning
        for short, meaning in ABBREVIATIONS.items()
        if re.search(rf"(?<!\w){re.escape(short)}(?!\w)", text)
    }


def title_of(papers: list[dict]) -> str:
    """What the report is about."""
    number = sum(1 for paper in papers if paper["claims"])
    return f"{in_words(number)} papers on rare tokens" if number > 1 else f"{papers[0]['title']}, on rare tokens"


def first_screen(papers: list[dict]) -> list[str]:
    """What was found over all papers: how much was run, how it came out, and which claims stand out."""
    claims = [claim for paper in papers for claim in paper["claims"] if claim["kind"] == EXPERIMENT]
    if not claims:
        return []
    run, of = sum(claim["verdict"] != NOT_RUN for claim in claims), sum(1 for paper in papers if paper["claims"])
    who = f"{in_words(of)} papers make" if of > 1 else "The paper makes"
    return [
        f"{who} {len(claims)} claims that an experiment can test; {run} of them are tested here.",
        f"So far {_counted(claims)}.",
        _standing_out(claims),
    ]


def findings(paper: dict) -> str:
    """The same of one paper, in a line or two."""
    claims = [claim for claim in paper["claims"] if claim["kind"] == EXPERIMENT]
    if not claims:
        return ""
    said = [f"Of {len(claims)} claims about experiments {_counted(claims, NOT_RUN)}."]
    if any(claim["verdict"] != NOT_RUN for claim in claims):
        said += [_standing_out(claims), apart(paper["claims"])]
    return " ".join(filter(None, said))


def apart(claims: list[dict]) -> str:
    """Mathematics, printed arithmetic, and experiments that are not judged, counted in words; empty for none."""
    parts = []
    for kind, name in APART.items():
        counts = Counter(claim["verdict"] for claim in claims if claim["kind"] == kind)
        said = ", ".join(f"{counts[word]} {word}" for word in OTHER_VERDICTS if counts[word])
        parts += [f"{name}: {said}"] if said else []
    return f"Not counted above: {'; '.join(parts)}." if parts else ""


def _counted(claims: list[dict], *more: str) -> str:
    """How many claims have each verdict, and where the undecided ones point."""
    counts = Counter(claim["verdict"] for claim in claims)
    said = [f"{counts[verdict]} {'is' if counts[verdict] == 1 else 'are'} {verdict}" for verdict in (*SAID, *more)]
    open_claims = [claim for claim in claims if claim["verdict"] == UNDECIDED]
    leans = Counter(claim["lean"] for claim in open_claims)
    single = sum(claim["seeds"] == "1" for claim in open_claims)
    text = ", ".join(said[:-1]) + f" and {said[-1]}"
    if leans[TOWARDS] + leans[AGAINST]:
        text += f"; of the inconclusive ones {leans[TOWARDS]} point the paper's way, {leans[AGAINST]} against it"
        text += f", and {single} rest on one seed, which never decides" if single else ""
    return text


def _standing_out(claims: list[dict]) -> str:
    """The first claims that are reproduced and that are not, by name."""
    parts = []
    for verdict in (REPRODUCED, REFUTED):
        found = [f"{one['sentence']} (ours {one['our_value']})" for one in claims if one["verdict"] == verdict]
        if found:
            more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
            parts.append(f"{verdict.capitalize()}: {'; '.join(found[:NAMED])}{more}.")
    return " ".join(parts) or "No claim is decided yet: more seeds are needed."


def in_words(number: int) -> str:
    """A small number as a sentence begins with it."""
    return {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}.get(number, str(number))


def data_sets(definition: Definition, records: Records) -> list[str]:
    """The proper names of the corpora that a paper's finished runs were trained on."""
    names = [definition.corpus(one.method.experiment) for one in runs_of(definition, records) if one.trained]
    return list(dict.fromkeys(corpus_title(name) for name in names))
