"""The claims as the page shows them: one table of all papers, each with what it is about and where we departed."""

from collections import Counter

from raretok.reporting.claims.claim_text import number
from raretok.reporting.claims.verdicts import (
    AGAINST,
    CORRECTED,
    FAILS,
    HOLDS,
    NOT_JUDGED,
    NOT_RUN,
    REFUTED,
    REPRODUCED,
    TOWARDS,
    UNDECIDED,
)
from raretok.reporting.definition import Definition
from raretok.reporting.deviations import Deviation, items_of, of_claim

# Of experiments, which the headline counts; and of mathematics, printed arithmetic and synthetic text.
VERDICTS = (REPRODUCED, REFUTED, UNDECIDED, NOT_RUN)
OTHER_VERDICTS = (HOLDS, CORRECTED, FAILS, NOT_JUDGED)
# What is counted apart from experiments, and how a sentence calls it.
APART = {"mathematics": "mathematics", "printed_arithmetic": "printed arithmetic"}


def claims_of(definition: Definition, claims: list[dict], deviations: list[Deviation]) -> list[dict]:
    """A paper's claims, each with its `items` (those that the paper has), `deviations` and numbers in its own unit."""
    return [
        claim
        | {
            "items": [item for item in items_of(claim) if item in definition.tables or item in definition.figures],
            "deviations": of_claim(deviations, claim),
        }
        | in_words(claim)
        for claim in own_claims(definition, claims)
    ]


def own_claims(definition: Definition, claims: list[dict]) -> list[dict]:
    """The rows of claims.csv on a paper, without the scale, which the table's title says for all of them."""
    said = f"; {definition.scale_note()}"
    return [
        claim | {"note": f"; {claim['note']}".removesuffix(said).removeprefix("; ")}
        for claim in claims
        if claim["paper"] == definition.paper
    ]


def in_words(claim: dict) -> dict[str, str]:
    """A claim's numbers as they are read: printed, ours, both intervals, and what is said beneath them."""
    bounds = {
        name: f"{short(claim[lower])} to {short(claim[upper])}" if claim[lower] else ""
        for name, lower, upper in (("interval", "lower", "upper"), ("predicted", "predict_lower", "predict_upper"))
    }
    size = {"yes": "printed size within", "no": "printed size outside"}.get(claim["size"], "")
    return bounds | {
        "printed_value": _value(claim["printed"], claim["unit"]),
        "our_value": _value(claim["ours"], claim["unit"]),
        "size_said": f"{size} {bounds['predicted']}" if size else "",
        "lean_said": {TOWARDS: "points the paper's way", AGAINST: "points against it"}.get(claim["lean"], ""),
    }


def verdicts(claims: list[dict]) -> Counter:
    """How many claims about experiments have each verdict."""
    return Counter(claim["verdict"] for claim in claims if claim["kind"] not in APART)


def leans(claims: list[dict]) -> str:
    """Where undecided claims point, in words; empty where none points anywhere."""
    counts = Counter(claim["lean"] for claim in claims if claim["lean"] and claim["kind"] not in APART)
    if not counts:
        return ""
    return f"Of the inconclusive ones {counts[TOWARDS]} point the paper's way and {counts[AGAINST]} against it."


def apart(claims: list[dict]) -> str:
    """Mathematics, printed arithmetic, and experiments that are not judged, counted in words; empty for none."""
    parts = []
    for kind, name in (APART | {"experiment": "experiments"}).items():
        counts = Counter(claim["verdict"] for claim in claims if claim["kind"] == kind)
        said = ", ".join(f"{counts[word]} {word}" for word in OTHER_VERDICTS if counts[word])
        parts += [f"{name}: {said}"] if said else []
    return f"Not counted above: {'; '.join(parts)}." if parts else ""


def short(value: str) -> str:
    """A number of a csv in three digits, an en dash for none; the csv keeps the others."""
    return number(float(value), "") if value else "–"


def _value(value: str, unit: str) -> str:
    return number(float(value), unit) if value else "–"
