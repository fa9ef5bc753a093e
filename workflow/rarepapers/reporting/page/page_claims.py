"""Claims for the report pages: numbers as text, position in the forest plot, runs and items."""

from collections import Counter

from rarepapers.reporting.claims.claim_runs import rests_on
from rarepapers.reporting.claims.claim_text import number
from rarepapers.reporting.claims.claims_command import ARITHMETIC, EXPERIMENT, FAILS_PRINTED, MATHEMATICS, STATED
from rarepapers.reporting.claims.verdicts import AGAINST, AGREES, DISAGREES, NO_LARGER, TOWARDS, UNDECIDED
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.deviations import items_of, of_claim
from rarepapers.reporting.page.page_forest import drawn_row
from rarepapers.reporting.page.page_items import Sources
from rarepapers.reporting.page.provenance import runs_of
from rarepapers.reporting.results import read_published

KINDS = {kind: kind.replace("_", " ") for kind in (EXPERIMENT, MATHEMATICS, ARITHMETIC)}


def claims_of(definition: Definition, claims: list[dict], sources: Sources) -> list[dict]:
    """A paper's claims, each with its `items`, `runs`, `deviations` and numbers as text."""
    published = {row.id: row for row in read_published(sources.published, "claims", definition.paper).itertuples()}
    return [
        claim
        | {
            "items": [item for item in items_of(claim) if item in definition.tables or item in definition.figures],
            "deviations": of_claim(sources.deviations, claim),
            "runs": _runs(published[claim["id"]], published, definition, sources),
            "drawn": drawn_row(claim, published[claim["id"]]),
        }
        | in_words(claim, published[claim["id"]].size == STATED and not definition.comparable)
        for claim in own_claims(definition, claims)
    ]


def _runs(claim, published: dict, definition: Definition, sources: Sources) -> list:
    """The finished runs that a claim depends on, by method."""
    trained = rests_on(claim, published, (), definition)
    methods = [definition.methods[name].within(experiment) for experiment, name in trained]
    return [one for one in runs_of(methods, sources.results) if one.trained]


def own_claims(definition: Definition, claims: list[dict]) -> list[dict]:
    """A paper's rows of claims.csv, without the note on the scale, which the page already gives."""
    said = f"; {definition.scale_note()}"
    return [
        claim | {"note": f"; {claim['note']}".removesuffix(said).removeprefix("; ")}
        for claim in claims
        if claim["paper"] == definition.paper
    ]


def in_words(claim: dict, untested_size: bool) -> dict[str, str]:
    """A claim's numbers as text: printed, ours, both intervals, and the remarks on size, lean and verdict.

    untested_size: whether the paper's text states a size that this scale does not test.
    """
    bounds = {
        name: f"{short(claim[lower])} to {short(claim[upper])}" if claim[lower] else ""
        for name, lower, upper in (("interval", "lower", "upper"), ("predicted", "predict_lower", "predict_upper"))
    }
    size = {"yes": "printed size within", "no": "printed size outside"}.get(claim["size"], "")
    return bounds | {
        "printed_value": short(claim["printed"], claim["unit"]),
        "our_value": short(claim["ours"], claim["unit"]),
        "size_said": f"{size} {bounds['predicted']}" if size else "",
        "lean_said": {TOWARDS: "points the paper's way", AGAINST: "points against it"}.get(claim["lean"], ""),
        "verdict_said": _about_verdict(claim, untested_size),
    }


def _about_verdict(claim: dict, untested_size: bool) -> str:
    """Why a claim is inconclusive, what is excluded, that only the direction holds, or what it rests on; else empty."""
    if claim["verdict"] != UNDECIDED:
        excluded = f"X = {short(claim['excluded'], claim['unit'])}" if claim["verdict"] == NO_LARGER else ""
        direction = "direction only" if claim["verdict"] in AGREES and untested_size else ""
        added = "with added seeds" if claim["planned_verdict"] != claim["verdict"] else ""
        return "; ".join(filter(None, [direction, excluded, added]))
    if claim["seeds"] == "1":
        return "one seed"
    if claim["alone"] != UNDECIDED:
        return "Holm's correction"
    return f"{'joint ' if claim['part'] else ''}p = {short(claim['p'])}" if claim["p"] else ""


def verdicts(claims: list[dict]) -> Counter:
    """Number of claims about experiments by verdict."""
    return Counter(claim["verdict"] for claim in claims if claim["kind"] == EXPERIMENT)


def leanings(claims: list[dict]) -> str:
    """A sentence on the leans of undecided claims; empty if there are none."""
    undecided = [claim for claim in claims if claim["verdict"] == UNDECIDED and claim["kind"] == EXPERIMENT]
    if not undecided:
        return ""
    counts = Counter(claim["lean"] for claim in undecided)
    towards, against = (counts[lean] or "none" for lean in (TOWARDS, AGAINST))
    neither = f", {counts['']} neither way" if counts[""] else ""
    return f"Of the inconclusive ones {towards} point the paper's way, {against} against it{neither}."


def contradicted(claims: list[dict]) -> str:
    """A sentence on refuted claims that the paper's own numbers refute, too; empty if there are none."""
    refuted = [claim for claim in claims if claim["verdict"] in DISAGREES and claim["kind"] == EXPERIMENT]
    of_print = sum(FAILS_PRINTED in claim.get("note", "") for claim in refuted)
    return f"Of those that fail, {of_print} fail on the paper's printed numbers, too." if of_print else ""


def short(value: str, unit: str = "") -> str:
    """A number of a csv with three digits and its unit; an en dash for an empty one."""
    return number(float(value), unit) if value else "–"
