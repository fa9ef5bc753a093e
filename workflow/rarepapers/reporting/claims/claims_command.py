"""The command `claims`: a verdict on every claim of a paper, by direction and size of its quantities over seeds.

A claim is one comparison or a conjunction of several (claim_parts.py). Each comparison has a quantity by seed: a ratio
or a difference of methods that saw the same batches. Its interval covers training seeds, not validation texts.
verdicts.py and docs/statistics.md define the verdicts.

Claims have three kinds: an *experiment* is decided by training seeds, *mathematics* by random cases of a formula, and
*printed arithmetic* by the printed numbers alone. Experiments on synthetic text have effects but no verdicts.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from rarepapers.reporting.claims.claim_parts import Part, bounds_of, holds, in_unit, is_ratio, seen, slacks
from rarepapers.reporting.claims.claim_runs import record_lookups
from rarepapers.reporting.claims.claim_text import claim_sentence, shown_numbers
from rarepapers.reporting.claims.deciding import COLUMNS as DECIDING
from rarepapers.reporting.claims.deciding import decisions, trainings_of
from rarepapers.reporting.claims.evidence import Evidence, Partial, of_paper
from rarepapers.reporting.claims.quantities import comparisons, in_scale, left_out_groups, of_this_scale
from rarepapers.reporting.claims.table_claims import compared, expected_seeds, has_seeds, printed_quantities
from rarepapers.reporting.claims.truths import Missing, Truth, Undefined
from rarepapers.reporting.claims.verdicts import (
    AGAINST,
    AGREES,
    CORRECTED,
    DISAGREES,
    FAILS,
    HOLDS,
    NO_LARGER,
    NOT_JUDGED,
    NOT_RUN,
    OPEN,
    TOWARDS,
    UNDECIDED,
    WORDS,
    Finding,
    corrected,
    judge,
)
from rarepapers.reporting.csv_rows import csv_number
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.report_options import add_report_arguments, write_for_papers
from rarepapers.reporting.results import Results, printed_numbers, read_published
from rarepapers.reporting.statistics.moderated_t import estimate

EXPERIMENT, MATHEMATICS, ARITHMETIC = "experiment", "mathematics", "printed_arithmetic"
STATED = "stated"  # in the column `size` of config/papers/<paper>/claims.csv
SYNTHETIC = "not judged on synthetic text"
UNPAIRED = "the paper's rows have different random numbers, so its size is compared with runs of different seeds"
NOTHING_CLAIMED = "the paper claims no direction"
SIZE_ALONE = "not judged: it adds a size to {}, and this scale's sizes are not compared with the paper's"
DEPENDS = "the verdict depends on the definition: {} by {}, {} by {}"
ADDED = "rests on seeds that were added later: {} with the planned ones alone"
FAILS_PRINTED = "fails on the printed numbers"
COLUMNS = [
    *("paper", "id", "kind", "sentence", "says", "quantity", "part", "unit", "printed", "ours", "lower", "upper"),
    *("predict_lower", "predict_upper", "seeds", "direction", "size", "lean", "p", "p_holm", "p_size", "p_none"),
    *("excluded", "verdict"),
    *("alone", "planned_verdict", *DECIDING, "command", "note", "measured_by", "where", "predicate"),
]
# Columns that are copied: from config/papers/<paper>/claims.csv, and from the Finding.
OF_CLAIM = ("paper", "id", "kind", "sentence", "quantity", "unit", "measured_by", "where", "predicate")
# What two claims with the same test share.
OF_TEST = ("quantity", "unit", "null", "direction", "margin")
OF_FINDING = ("seeds", "direction", "size", "lean", "verdict", "alone")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_report_arguments(parser, "the csv to write")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `claims`."""
    write_for_papers(arguments, judge_paper, COLUMNS)


def judge_paper(definition: Definition, results: Results, published: Path) -> list[dict]:
    """The rows of claims.csv for a paper, in the order of config/papers/<paper>/claims.csv."""
    found = findings(definition, results, published)
    planned = planned_verdicts(found, definition, results, published)
    scale = "" if definition.comparable else definition.scale_note()
    needed = decisions(found, family_size([claim for claim, _ in found], definition), definition, results)
    claims = {claim.id: claim for claim, _ in found}
    return [
        _row(claim, finding, scale, verdict)
        | need.columns()
        | {"command": _command(claim, finding, claims, definition)}
        for (claim, finding), need, verdict in zip(found, needed, planned, strict=True)
    ]


def planned_verdicts(found: list[tuple], definition: Definition, results: Results, published: Path) -> list[str]:
    """The verdict on each claim with the seeds that the scale plans; seeds that were added later are left out.

    A claim that was nearly decided gets more seeds than others, each of which is another chance to be decided by luck.
    """
    planned = definition.with_planned_seeds()
    if planned == definition:
        return [finding.verdict for _, finding in found]
    seeds = {name: method.planned for name, method in definition.methods.items() if method.planned is not None}
    first = findings(planned, results.of_seeds(seeds), published)
    return [finding.verdict for _, finding in first]


def _command(claim, finding: Finding, claims: dict, definition: Definition) -> str:
    """The command that retrains what a claim compares; empty if the scale trains nothing for it. claims: by id."""
    if not claim.direction or not trainings_of(claim, finding, claims, definition):
        return ""
    return f"python -m rarepapers verify {claim.id} --scale {definition.scale}"


def findings(definition: Definition, results: Results, published: Path) -> list[tuple]:
    """Each claim of the paper, a row of config/papers/<paper>/claims.csv, with its Finding."""
    evidence = evidence_of(definition, results, published)
    rows = list(evidence.claims.values())
    family = family_size(rows, definition)
    by_first = [finding_of(claim, evidence) for claim in rows]
    other = replace(evidence, definition=definition.by_other_definitions())
    twice_defined = [definition_names(claim, definition) for claim in rows]
    by_other = [
        finding_of(claim, other) if names else finding
        for claim, finding, names in zip(rows, by_first, twice_defined, strict=True)
    ]
    both = zip(corrected(by_first, family), corrected(by_other, family), twice_defined, strict=True)
    return refuted_together([(claim, by_both(*found)) for claim, found in zip(rows, both, strict=True)])


def definition_names(claim, definition: Definition) -> tuple[str, str] | None:
    """The column of a claim about tables whose quantity has another definition, and that one's column; else None."""
    if claim.measured_by != "table" or claim.kind != EXPERIMENT:
        return None
    for key in (key for comparison in comparisons(claim.quantity) for key in comparison.keys):
        how = definition.tables.get(key.table, {}).get("columns", {}).get(key.column, {})
        if "other" in how:
            return key.column, how["other"]["column"]
    return None


def by_both(first: Finding, other: Finding, names: tuple[str, str] | None) -> Finding:
    """The finding by the paper's definition of the quantity, undecided if another definition gives another verdict.

    names: of both definitions; None if there is one, though other claims' p values can change its correction.
    """
    verdicts = {first.verdict, other.verdict}
    if names is None or len(verdicts) == 1 or not verdicts <= {*AGREES, *DISAGREES, NO_LARGER, UNDECIDED}:
        return first
    says = DEPENDS.format(first.verdict, names[0], other.verdict, names[1])
    note = "; ".join(filter(None, [first.note, says]))
    return replace(first, verdict=UNDECIDED, direction=OPEN, lean=first.lean or first.direction, note=note)


def refuted_together(found: list[tuple]) -> list[tuple]:
    """The claims with findings, where a conjunction of claims is refuted with one of them.

    A part has its own seeds and pool, which the conjunction's joint test does not.
    """
    refuted = {claim.id for claim, finding in found if finding.verdict in DISAGREES}
    after = []
    for claim, finding in found:
        parts = [part for part in of_paper(claim.paper, "TOGETHER").get(claim.id, ()) if part in refuted]
        if parts and finding.verdict == UNDECIDED:
            note = "; ".join(filter(None, [finding.note, f"refuted with {', '.join(parts)}"]))
            verdict = WORDS[finding.comparable][AGAINST]
            finding = replace(finding, verdict=verdict, direction=AGAINST, lean="", note=note)
        after.append((claim, finding))
    return after


def evidence_of(definition: Definition, results: Results, published: Path) -> Evidence:
    """The evidence for a paper's claims."""
    claims = {claim.id: claim for claim in read_published(published, "claims", definition.paper).itertuples()}
    return Evidence(definition, results, printed_numbers(published, definition.paper), claims)


def family_size(claims: list, definition: Definition) -> int:
    """The number of tests that training seeds can decide, run or not: each claim's direction and each stated size."""
    testable = [claim for claim in claims if is_testable(claim, definition) and not _twin(claim, claims, definition)]
    return len(testable) + sum(states_size(claim, definition) for claim in testable)


def is_testable(claim, definition: Definition) -> bool:
    """Whether training seeds can decide a claim, unlike formulas, printed sums and fixed weights."""
    if claim.kind != EXPERIMENT or not claim.direction or definition.synthetic:
        return False
    return claim.measured_by != "table" or has_seeds(claim.quantity, definition)


def states_size(claim, definition: Definition) -> bool:
    """Whether the paper's text states the size of an effect, and this scale's numbers are comparable with it."""
    return claim.size == STATED and definition.comparable


def _twin(claim, claims: list, definition: Definition) -> str:
    """The claim about the same direction, if only its size makes `claim` another one and sizes are not compared."""
    if claim.size != STATED or definition.comparable or claim.measured_by != "table":
        return ""
    test = [getattr(claim, name) for name in OF_TEST]
    twins = (one.id for one in claims if one.size != STATED and [getattr(one, name) for name in OF_TEST] == test)
    return next(twins, "")


def _why_not_judged(claim, evidence: Evidence) -> str:
    """Why a measured claim about an experiment has no verdict; empty if it has one."""
    if not claim.direction:
        return NOTHING_CLAIMED
    if evidence.definition.synthetic:
        return SYNTHETIC
    twin = _twin(claim, list(evidence.claims.values()), evidence.definition)
    return SIZE_ALONE.format(twin) if twin else ""


def finding_of(claim, evidence: Evidence) -> Finding:
    """The finding on one claim, before Holm's correction."""
    if claim.kind == ARITHMETIC:
        return _arithmetic(claim, evidence)
    try:
        finding = (judge_table if claim.measured_by == "table" else judge_named)(claim, evidence)
    except Missing as missing:
        return _unmeasured(claim, evidence, missing)
    if claim.kind == MATHEMATICS:
        kept = finding.direction == TOWARDS
        verdict = FAILS if not kept else HOLDS if claim.holds_on_printed_numbers != "no" else CORRECTED
        return Finding(verdict, verdict, finding.parts, finding.binding, note=finding.note)
    if why := _why_not_judged(claim, evidence):
        note = "; ".join(filter(None, [finding.note, why]))
        return Finding(NOT_JUDGED, NOT_JUDGED, finding.parts, finding.binding, finding.seeds, note=note)
    return finding


def judge_table(claim, evidence: Evidence) -> Finding:
    """The finding on a claim about numbers of tables, by its own tests; raises Missing."""
    definition, asked = evidence.definition, comparisons(claim.quantity)
    found = compared(claim.quantity, claim.unit, definition, evidence.results)
    printed = printed_quantities(of_this_scale(asked, definition), claim.unit, evidence.printed)
    parts = tuple(
        Part(
            label=one.label,
            estimate=estimate(one.values, one.pool, one.paired),
            bounds=bounds_of(claim, place),
            printed=printed[place],
            log=is_ratio(claim),
            methods=one.methods,
            single=one.single if _draw_apart(one.rows, claim.paper) else None,
        )
        for place, one in enumerate(found)
    )
    notes = [_beside(claim, evidence)]
    if len(found) < len(asked):
        missing = dict.fromkeys(experiment for *_, experiment in left_out_groups(definition))
        notes.append(f"without {', '.join(missing)}, which this scale leaves out")
    if definition.comparable and any(part.single for part in parts):
        notes.append(UNPAIRED)
    kept = None
    if not any(one.seeded for one in found):
        kept = holds(claim, [part.estimate.mean for part in parts])
        notes.append("a property of fixed weights or of the data, without seeds")
    else:
        seeds, expected = min(part.estimate.seeds for part in parts), expected_seeds(claim.quantity, definition)
        notes += [f"{seeds} of {expected} seeds"] if seeds < expected else []
    note = "; ".join(filter(None, notes))
    sized = states_size(claim, definition)
    return judge(parts, note, kept, (), definition.comparable, sized, definition.equivalence)


def _draw_apart(rows: tuple[str, ...], paper: str) -> bool:
    """Whether the paper's rows were trained with different random numbers, so that its runs are not paired as ours."""
    random_numbers = of_paper(paper, "random_numbers")
    return bool(random_numbers) and len({random_numbers(row) for row in rows}) > 1


def judge_named(claim, evidence: Evidence) -> Finding:
    """The finding on a claim about figures or formulas, measured by the function with its name; raises Missing."""
    measure = of_paper(claim.paper, claim.id.removeprefix(f"{claim.paper}.").replace(".", "_"))
    if not measure:
        raise Missing("no function measures this claim")
    results = record_lookups(evidence.results)
    try:
        truths, published, note = measure(replace(evidence, results=results))
    except Missing as missing:
        missing.asked = tuple(results.asked)
        raise
    found, methods = seen(claim, truths), tuple(results.found)
    printed = _printed_parts(claim, published, len(found))
    parts = tuple(
        Part(label, estimate(values, (), False), bounds_of(claim, place), printed[place], is_ratio(claim), methods)
        for place, (label, values) in enumerate(found)
    )
    definition = evidence.definition
    kept = all(truth.holds for truth in truths.values()) if claim.id in of_paper(claim.paper, "FIXED") else None
    asked = tuple(results.asked) if isinstance(truths, Partial) else ()
    sized = states_size(claim, definition)
    return judge(parts, note, kept, asked, definition.comparable, sized, definition.equivalence)


def _printed_parts(claim, published: Truth | float | None, number: int) -> list[float | None]:
    """The printed value of each comparison, from the slack of the printed numbers that a claim's function returns."""
    if published is None:
        return [None] * number
    if isinstance(published, Truth):
        slacks = [part.slack for part in published.parts or (published,)]
    else:
        slacks = [published]
    if len(slacks) != number:
        return [None] * number
    sign = -1 if claim.direction == "<" else 1
    values = [float(claim.null) + sign * slack for slack in slacks]
    return [in_scale(value, claim.unit) for value in values]


def _arithmetic(claim, evidence: Evidence) -> Finding:
    """The finding on printed arithmetic: whether the paper's own numbers add up."""
    values = printed_quantities(comparisons(claim.quantity), claim.unit, evidence.printed)
    verdict = HOLDS if holds(claim, values) else FAILS
    return Finding(verdict, verdict, printed=_printed(claim, evidence), note="checked on the printed numbers only")


def _unmeasured(claim, evidence: Evidence, reason: Missing) -> Finding:
    """The finding on a claim without a quantity: its numbers are missing or undefined."""
    synthetic = evidence.definition.synthetic
    verdict = UNDECIDED if isinstance(reason, Undefined) and not synthetic else NOT_RUN
    return Finding(verdict, verdict, printed=_printed(claim, evidence), note=str(reason), asked=reason.asked)


def _printed(claim, evidence: Evidence) -> float | None:
    """The printed quantity of a claim that was not run; of several comparisons the one nearest to its bound."""
    if claim.measured_by != "table":
        return None
    values = printed_quantities(comparisons(claim.quantity), claim.unit, evidence.printed)
    if None in values:
        return None
    kept = slacks(claim, values)
    return in_unit(values[kept.index(min(kept))], is_ratio(claim))


def _beside(claim, evidence: Evidence) -> str:
    """A remark next to a verdict, if there is one and its numbers were measured."""
    beside = of_paper(claim.paper, "BESIDE")
    try:
        return beside[claim.id](evidence) if claim.id in beside else ""
    except Missing:
        return ""


def _row(claim, finding: Finding, scale: str, planned: str) -> dict:
    added = ADDED.format(planned) if finding.verdict != planned and finding.verdict != UNDECIDED else ""
    shown = shown_numbers(finding)
    ours = f"ours, not the paper's: {claim.ours}" if claim.ours else ""
    fails = FAILS_PRINTED if claim.holds_on_printed_numbers == "no" else ""
    if claim.kind != EXPERIMENT:
        fails = scale = ""
    numbers = shown | {name: getattr(finding, name) for name in ("p", "p_holm", "p_size", "p_none")}
    return {
        **{name: getattr(claim, name) for name in OF_CLAIM},
        **{name: getattr(finding, name) for name in OF_FINDING},
        **{name: csv_number(value) for name, value in numbers.items()},
        "says": claim_sentence(claim, finding, shown),
        "part": finding.binding.label if finding.binding else "",
        "planned_verdict": planned,
        "note": "; ".join(filter(None, [fails, claim.note, finding.note, added, ours, scale])),
    }
