"""A verdict on every claim of a paper.

A claim's effect is its slack (predicates.py) with its 95% t interval over seeds, each seed against itself: methods of
one seed saw the same batches. Of claims about numbers it is the slack on their means (jackknife.py), of claims about
what is seen in one run (a curve, a plane) the mean slack. The interval says how far another seed would move the result,
not how far another validation text would.

`alone` is the verdict that the interval gives a claim by itself. Of the many claims of one paper some would hold
by chance, so `verdict` is what stands after Holm's correction for all its claims that training seeds can decide.
Proofs, and numbers of the data or of fixed weights, have no p value, and stay. Seeds without spread decide nothing.
"""

import argparse
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

from raretok.reporting.arguments import add_report_arguments
from raretok.reporting.definition import Definition, parse_definition
from raretok.reporting.intervals import t_interval
from raretok.reporting.named import agg, agps, natural_bias, stop_jostling
from raretok.reporting.named.evidence import Evidence, Partial
from raretok.reporting.predicates import Missing, Truth, Undefined
from raretok.reporting.results import Results, printed_numbers, read_published, read_results
from raretok.reporting.rows import csv_number, write_rows
from raretok.reporting.significance import LEVEL, holm, two_sided_p
from raretok.reporting.table_claims import (
    expected_seeds,
    has_seeds,
    left_out_groups,
    of_this_scale,
    printed_truth,
    truths_of_means,
)

CLAIMS = agg.CLAIMS | agps.CLAIMS | natural_bias.CLAIMS | stop_jostling.CLAIMS
FIXED = natural_bias.FIXED | stop_jostling.FIXED
BESIDE = agg.BESIDE | agps.BESIDE
# What is said of a verdict that does not stand after the correction: the verdict, how many claims it is for.
ALONE = "alone it would be {}, but not after Holm's correction for the {} claims of the paper that seeds can decide"
# Why several seeds decide nothing.
NO_SPREAD = "no spread over seeds: nothing to test against"
INFINITE = "infinite in some seeds: no interval"
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
    "p",
    "p_holm",
    "alone",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `claims`."""
    results = read_results(arguments.results)
    rows = [
        row
        for text in arguments.definitions
        for row in judge_paper(parse_definition(text), results, arguments.published)
    ]
    write_rows(arguments.output, COLUMNS, rows)


def judge_paper(definition: Definition, results: Results, published: Path) -> list[dict]:
    """One row of claims.csv for each claim of the paper, in the order of config/published/claims.csv."""
    printed = printed_numbers(published, definition.paper)
    claims = read_published(published, "claims", definition.paper)
    evidence = Evidence(definition, results, printed, dict(zip(claims["id"], claims["predicate"], strict=True)))
    found = [(judge_table if claim.kind == "table" else judge_named)(claim, evidence) for claim in claims.itertuples()]
    family = sum(is_testable(claim, definition) for claim in claims.itertuples())
    scale = "" if definition.comparable else definition.scale_note()
    return [
        {
            "paper": definition.paper,
            "id": claim.id,
            "predicate": claim.predicate,
            "where": claim.where,
            "kind": claim.kind,
            "published": csv_number(finding.published),
            "effect": csv_number(finding.effect),
            "lower": csv_number(finding.lower),
            "upper": csv_number(finding.upper),
            "seeds": finding.seeds,
            "verdict": finding.verdict,
            "note": "; ".join(filter(None, [_own_note(claim), finding.note, scale])),
            "p": csv_number(finding.p),
            "p_holm": csv_number(finding.p_holm),
            "alone": alone.verdict,
        }
        for claim, alone, finding in zip(claims.itertuples(), found, corrected(found, family), strict=True)
    ]


def is_testable(claim, definition: Definition) -> bool:
    """Whether training seeds can decide a claim, run or not, as they cannot decide proofs and numbers of the data."""
    return has_seeds(claim.predicate, definition) if claim.kind == "table" else claim.id not in FIXED


@dataclass(frozen=True)
class Finding:
    """What was found about a claim. `published`: the slack on the printed numbers, where they decide it.

    p, p_holm: of a t test over seeds, by itself and after the correction for the paper's claims; None for no test.
    """

    verdict: str
    published: float | None = None
    effect: float | None = None
    lower: float | None = None
    upper: float | None = None
    seeds: int = 0
    note: str = ""
    p: float | None = None
    p_holm: float | None = None


def corrected(findings: list[Finding], family: int) -> list[Finding]:
    """The findings on one paper's claims after Holm's correction for all `family` of them that seeds can decide.

    Those of one seed, or not run, count as well, as if their p were 1: a verdict does not depend on how much was run.
    """
    tested = [place for place, finding in enumerate(findings) if finding.p is not None]
    after = list(findings)
    untested = [1.0] * (family - len(tested))
    ps = holm([findings[place].p for place in tested] + untested)[: len(tested)]
    for place, p in zip(tested, ps, strict=True):
        finding = replace(findings[place], p_holm=p)
        if p >= LEVEL and finding.verdict != "inconclusive":
            note = "; ".join(filter(None, [finding.note, ALONE.format(finding.verdict, family)]))
            finding = replace(finding, verdict="inconclusive", note=note)
        after[place] = finding
    return after


def judge(truths: dict[int, Truth], published: float | None, note: str, fixed: bool = False) -> Finding:
    """The verdict on a claim by itself, whose truth is known per seed.

    `fixed`: no training seed decides it (weights that someone else trained, formulas), so that it is its own interval.
    Of data sets of which some were not run, truths decide nothing.
    """
    slacks = [truth.slack for truth in truths.values()]
    holds = [truth.holds for truth in truths.values()]
    effect, lower, upper = t_interval(slacks)
    p = None
    if fixed:
        lower = upper = effect
    elif len(slacks) > 1 and lower is None:
        note = "; ".join(filter(None, [note, NO_SPREAD if all(map(math.isfinite, slacks)) else INFINITE]))
    elif not isinstance(truths, Partial):
        p = two_sided_p(slacks)
    # At a bound of exactly 0 the truths decide: a tie reproduces `<=`, not `<`.
    if isinstance(truths, Partial):
        verdict = "inconclusive"
    elif lower is not None and (lower > 0 or (lower == 0 and all(holds))):
        verdict = "reproduced"
    elif upper is not None and (upper < 0 or (upper == 0 and not any(holds))):
        verdict = "not reproduced"
    else:
        verdict = "inconclusive"
    return Finding(verdict, published, effect, lower, upper, len(truths), note, p)


def judge_table(claim, evidence: Evidence) -> Finding:
    """The verdict on a claim about numbers of tables."""
    published = printed_truth(claim.predicate, evidence.printed).slack
    try:
        truths, seeded = truths_of_means(claim.predicate, evidence.definition, evidence.results)
    except Missing as missing:
        return _unjudged(missing, published)
    notes = [_beside(claim, evidence)]
    if of_this_scale(claim.predicate, evidence.definition) != claim.predicate:
        missing = dict.fromkeys(experiment for *_, experiment in left_out_groups(evidence.definition))
        notes.append(f"without {', '.join(missing)}, left out at this scale")
    if not seeded:
        notes.append("of fixed weights or of the data: there is no seed, the value is its own interval")
        return replace(judge(truths, published, "; ".join(filter(None, notes)), fixed=True), seeds=0)
    expected = expected_seeds(claim.predicate, evidence.definition)
    if len(truths) < expected:
        notes.append(f"{len(truths)} of {expected} seeds")
    return judge(truths, published, "; ".join(filter(None, notes)))


def _unjudged(reason: Missing, published: float | None = None) -> Finding:
    """What is found where a claim has no truth: its numbers are not there, or they are and have none."""
    return Finding("inconclusive" if isinstance(reason, Undefined) else "not run", published, note=str(reason))


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
        return _unjudged(missing)
    return judge(truths, published, note, fixed=claim.id in FIXED and len(truths) > 1)


def _own_note(claim) -> str:
    """The inventory's note on a claim, with a word on the printed numbers where they refute it."""
    if claim.holds_on_printed_numbers != "no":
        return claim.note
    refuted = "fails on the printed numbers"
    # Most notes say already that and where it fails.
    if re.search(r"\bfails\b", claim.note):
        return re.sub(r"\bfails\b", refuted, claim.note, count=1)
    return "; ".join(filter(None, [refuted, claim.note]))
