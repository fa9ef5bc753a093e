"""The claims as the page shows them: one table of all papers, each with what it is about and where we departed."""

from collections import Counter

from raretok.reporting.definition import Definition
from raretok.reporting.deviations import Deviation, items_of, of_claim

VERDICTS = ("reproduced", "not reproduced", "inconclusive", "not run")


def claims_of(definition: Definition, claims: list[dict], deviations: list[Deviation]) -> list[dict]:
    """A paper's claims, each with its `items` (those that the paper has) and `deviations`."""
    return [
        claim
        | {
            "items": [item for item in items_of(claim) if item in definition.tables or item in definition.figures],
            "deviations": of_claim(deviations, claim),
        }
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


def verdicts(claims: list[dict]) -> Counter:
    """How many claims have each verdict."""
    return Counter(claim["verdict"] for claim in claims)


def short(value: str) -> str:
    """A number of a csv in three digits, an en dash for none; the csv keeps the others."""
    return f"{float(value):.3g}" if value else "–"
