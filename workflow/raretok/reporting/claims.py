"""A verdict on every claim of a paper.

A claim's effect is its slack (predicates.py) averaged over seeds, each seed against itself: methods of one
seed saw the same batches. The interval is the 95% t interval over seeds; it says how far another seed would
move the result, not how far another validation text would.
"""

import argparse
import csv
import re
from dataclasses import dataclass
from pathlib import Path

from raretok.files import atomic_path
from raretok.reporting.definition import Definition, parse_definition
from raretok.reporting.intervals import t_interval
from raretok.reporting.named import agg, agps, natural_bias, stop_jostling
from raretok.reporting.named.evidence import Evidence, Partial
from raretok.reporting.predicates import Missing, Truth, evaluate
from raretok.reporting.results import Printed, Results, printed_numbers, read_published, read_results
from raretok.reporting.table_claims import left_out_groups, of_this_scale, table_truths

CLAIMS = agg.CLAIMS | agps.CLAIMS | natural_bias.CLAIMS | stop_jostling.CLAIMS
BESIDE = agg.BESIDE | agps.BESIDE
COLUMNS = [
    "paper",
    "id",
    "predicate",
    "where",
    "kind",
    "published",
    "effect",
    "lower",
    "upper",
    "seeds",
    "verdict",
    "note",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--definitions", nargs="+", required=True, help="one JSON of runs.py for each paper")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with metrics.csv")
    parser.add_argument("--published", type=Path, default=Path("config/published"))
    parser.add_argument("--output", type=Path, required=True, help="the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `claims`."""
    results = read_results(arguments.results)
    rows = [
        row
        for text in arguments.definitions
        for row in judge_paper(parse_definition(text), results, arguments.published)
    ]
    with (
        atomic_path(arguments.output) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def judge_paper(definition: Definition, results: Results, published: Path) -> list[dict]:
    """One row of claims.csv for each claim of the paper, in the order of config/published/claims.csv."""
    printed = printed_numbers(published, definition.paper)
    rows = []
    claims = read_published(published, "claims", definition.paper)
    evidence = Evidence(definition, results, printed, dict(zip(claims["id"], claims["predicate"], strict=True)))
    for claim in claims.itertuples():
        finding = (judge_table if claim.kind == "table" else judge_named)(claim, evidence)
        notes = [_own_note(claim), finding.note]
        if not definition.comparable:
            notes.append(definition.scale_note())
        rows.append(
            {
                "paper": definition.paper,
                "id": claim.id,
                "predicate": claim.predicate,
                "where": claim.where,
                "kind": claim.kind,
                "published": _number(finding.published),
                "effect": _number(finding.effect),
                "lower": _number(finding.lower),
                "upper": _number(finding.upper),
                "seeds": finding.seeds,
                "verdict": finding.verdict,
                "note": "; ".join(filter(None, notes)),
            }
        )
    return rows


@dataclass(frozen=True)
class Finding:
    """What was found about a claim. `published`: the slack on the printed numbers, where they decide it."""

    verdict: str
    published: float | None = None
    effect: float | None = None
    lower: float | None = None
    upper: float | None = None
    seeds: int = 0
    note: str = ""


def judge(truths: dict[int, Truth], published: float | None, note: str, exact: bool = False) -> Finding:
    """The verdict on a claim whose truth is known per seed.

    `exact`: the value has no seed (weights that someone else trained), so that it is its own interval. Of data sets of
    which some were not run, truths decide nothing.
    """
    effect, lower, upper = t_interval([truth.slack for truth in truths.values()])
    if exact:
        lower = upper = effect
    holds = [truth.holds for truth in truths.values()]
    # At a bound of exactly 0 the truths decide: a tie reproduces `<=`, not `<`.
    if isinstance(truths, Partial):
        verdict = "inconclusive"
    elif lower is not None and (lower > 0 or (lower == 0 and all(holds))):
        verdict = "reproduced"
    elif upper is not None and (upper < 0 or (upper == 0 and not any(holds))):
        verdict = "not reproduced"
    else:
        verdict = "inconclusive"
    seeds = 0 if exact else len(truths)
    return Finding(verdict, published, effect, lower, upper, seeds, note)


def judge_table(claim, evidence: Evidence) -> Finding:
    """The verdict on a claim about numbers of tables."""
    published = evaluate(claim.predicate, _printed_lookup(evidence.printed)).slack
    try:
        truths, seeded = table_truths(claim.predicate, evidence.definition, evidence.results)
    except Missing as missing:
        return Finding("not run", published, note=str(missing))
    notes = [_beside(claim, evidence)]
    if of_this_scale(claim.predicate, evidence.definition) != claim.predicate:
        missing = dict.fromkeys(experiment for *_, experiment in left_out_groups(evidence.definition))
        notes.append(f"without {', '.join(missing)}, left out at this scale")
    if not seeded:
        notes.append("of fixed weights or of the data: there is no seed, the value is its own interval")
    return judge(truths, published, "; ".join(filter(None, notes)), exact=not seeded)


def _beside(claim, evidence: Evidence) -> str:
    """What is said beside a verdict, where there is anything to say and it was measured."""
    try:
        return BESIDE[claim.id](evidence) if claim.id in BESIDE else ""
    except Missing:
        return ""


def judge_named(claim, evidence: Evidence) -> Finding:
    """The verdict on a claim about a figure or a proof, by the function of its name."""
    if claim.id not in CLAIMS:
        return Finding("not run", note="nothing measures this claim")
    try:
        truths, published, note = CLAIMS[claim.id](evidence)
    except Missing as missing:
        return Finding("not run", note=str(missing))
    return judge(truths, published, note)


def _printed_lookup(printed: dict[tuple, Printed]):
    def look_up(table, row, column, group=""):
        return printed[table, row, column, group].value

    return look_up


def _own_note(claim) -> str:
    """The inventory's note on a claim, with a word on the printed numbers where they refute it."""
    if claim.holds_on_printed_numbers != "no":
        return claim.note
    refuted = "fails on the printed numbers"
    # Most notes say already that and where it fails.
    if re.search(r"\bfails\b", claim.note):
        return re.sub(r"\bfails\b", refuted, claim.note, count=1)
    return "; ".join(filter(None, [refuted, claim.note]))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.6g}"  # + 0.0: no minus before a zero
