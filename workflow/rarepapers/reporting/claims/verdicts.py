"""Verdicts on claims: tests of direction, size and equivalence, Holm's correction, leans."""

import math
from dataclasses import dataclass, replace

from rarepapers.reporting.claims.claim_parts import Part
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.statistics.significance import LEVEL, holm

# Verdicts on experiments: on those of the paper's own size, on those of a reduced scale, and on both.
REPRODUCED, REFUTED = "reproduced", "not reproduced"
HOLDS_HERE, FAILS_HERE = "holds here", "fails here"
NO_LARGER, UNDECIDED, NOT_RUN = "no effect larger than X", "inconclusive", "not run"
VERDICTS = (REPRODUCED, REFUTED, HOLDS_HERE, FAILS_HERE, NO_LARGER, UNDECIDED, NOT_RUN)
AGREES, DISAGREES = (REPRODUCED, HOLDS_HERE), (REFUTED, FAILS_HERE)
# Verdicts on mathematics, printed arithmetic and synthetic text.
OTHER_VERDICTS = HOLDS, CORRECTED, FAILS, NOT_JUDGED = "holds", "holds corrected", "fails", "not judged"
TOWARDS, AGAINST, OPEN = "the paper's way", "against it", "undecided"
YES, NO, UNKNOWN = "yes", "no", "unknown"

# The verdict by the direction of an effect, for experiments of the paper's size and of a reduced scale.
WORDS = {
    True: {TOWARDS: REPRODUCED, AGAINST: REFUTED, OPEN: UNDECIDED},
    False: {TOWARDS: HOLDS_HERE, AGAINST: FAILS_HERE, OPEN: UNDECIDED},
}

ALONE = "{} by its own test, but not after Holm's correction for {} tests"
OUTSIDE = "the printed size lies outside our 95% prediction interval"
# Note on several seeds without a t test.
NO_SPREAD = "equal values in all seeds: judged by a sign test"


@dataclass(frozen=True)
class Finding:
    """The finding on a claim. binding: the deciding comparison; printed: its quantity if it was not run.

    p, p_size: p values of the tests that the effect is at its bound, and that the printed size is that of a new run of
    ours; None without a test. p_none: p of the two one-sided tests that exclude effects as large as `excluded`, a value
    on the scale of the binding comparison's test. comparable: whether the experiment has the paper's size. alone: the
    verdict before Holm's correction. size: whether the printed size lies in our
    95% prediction interval. lean: the direction of an undecided claim. asked: (experiment, method) that were looked up,
    if some were not run.
    """

    verdict: str
    alone: str = ""
    parts: tuple[Part, ...] = ()
    binding: Part | None = None
    seeds: int = 0
    direction: str = ""
    size: str = UNKNOWN
    lean: str = ""
    note: str = ""
    p: float | None = None
    p_holm: float | None = None
    p_size: float | None = None
    p_none: float | None = None
    excluded: float | None = None
    states_size: bool = False
    comparable: bool = False
    printed: float | None = None
    asked: tuple[tuple[str, str], ...] = ()


def judged(definition: Definition) -> tuple[str, ...]:
    """The verdicts that a paper's experiments can have at its scale, in order."""
    words = WORDS[definition.comparable]
    return words[TOWARDS], words[AGAINST], NO_LARGER, UNDECIDED, NOT_RUN


def judge(
    parts: tuple[Part, ...],
    note: str = "",
    kept: bool | None = None,
    asked: tuple[tuple[str, str], ...] = (),
    comparable: bool = False,
    states_size: bool = False,
    equivalence: float = 0.5,
) -> Finding:
    """The verdict on a claim of an experiment by its own tests.

    A conjunction is reproduced if every comparison is: its p is the largest (intersection-union test). It is refuted if
    one of its `k` comparisons is: its p is k times the smallest (Bonferroni). Source: Berger 1982.

    kept: whether the claim holds, if no training seed decides it (weights that others trained, formulas). asked: the
    (experiment, method) that it needs, if some of its data sets were not run. comparable: whether sizes can be compared
    with printed ones. states_size: whether the paper's text names the size, which the claim is then about. equivalence:
    share of the printed effect that the test of equivalence excludes.
    """
    binding, p = _binding(parts)
    slack = binding.slack
    seeds = min(part.estimate.seeds for part in parts)
    if kept is not None:
        direction = TOWARDS if kept else AGAINST
        verdict = WORDS[comparable][direction]
        return Finding(verdict, verdict, parts, binding, direction=direction, note=note, comparable=comparable)
    if asked or seeds < 2:
        p = None
    elif binding.estimate.sd is None:
        why = f"{binding.estimate.diverged}: no test" if binding.estimate.diverged else NO_SPREAD
        note = "; ".join(filter(None, [note, why]))
    p_size = _p_of_size(parts) if comparable and not asked and seeds > 1 else None
    p_none = _p_of_none(parts, equivalence) if not asked and seeds > 1 else None
    finding = Finding(
        verdict="",
        parts=parts,
        binding=binding,
        seeds=seeds,
        size=UNKNOWN if p_size is None else (NO if p_size < LEVEL else YES),
        lean=TOWARDS if slack > 0 else AGAINST if slack < 0 else "",
        note=note,
        p=p,
        p_size=p_size,
        p_none=p_none,
        excluded=None if p_none is None else _excluded(binding, equivalence),
        states_size=states_size,
        comparable=comparable,
        asked=asked,
    )
    alone, direction, _ = _decided(finding, p, p_size, p_none)
    return replace(finding, verdict=alone, alone=alone, direction=direction)


def corrected(findings: list[Finding], family: int) -> list[Finding]:
    """The findings on one paper's claims after Holm's correction over all `family` tests that seeds can decide.

    Claims with one seed, or not run, count with p = 1, so a verdict does not depend on how much was run.
    """
    tests = [(place, "p", one.p) for place, one in enumerate(findings) if one.p is not None]
    tests += [(place, "p_size", f.p_size) for place, f in enumerate(findings) if f.states_size and f.p_size is not None]
    ps = holm([p for *_, p in tests] + [1.0] * (family - len(tests)))[: len(tests)]
    held = {(place, which): p for (place, which, _), p in zip(tests, ps, strict=True)}
    # Of a claim's two null hypotheses, no effect and a large one, at most one is true, so tests of equivalence are a
    # family of the same size beside the first (docs/statistics.md has its error rate).
    known = [(place, one.p_none) for place, one in enumerate(findings) if one.p_none is not None]
    ps = holm([p for _, p in known] + [1.0] * (family - len(known)))[: len(known)]
    held |= {(place, "p_none"): p for (place, _), p in zip(known, ps, strict=True)}
    after = []
    for place, finding in enumerate(findings):
        if finding.p is None and finding.p_size is None and finding.p_none is None:
            after.append(finding)
            continue
        p_holm = held.get((place, "p"))
        verdict, direction, said = _decided(finding, p_holm, held.get((place, "p_size")), held.get((place, "p_none")))
        if verdict == UNDECIDED and finding.alone != UNDECIDED:
            said = ALONE.format(finding.alone, family)
        note = "; ".join(filter(None, [finding.note, said]))
        lean = finding.lean if verdict == UNDECIDED else ""
        after.append(replace(finding, verdict=verdict, direction=direction, lean=lean, p_holm=p_holm, note=note))
    return after


def _decided(finding: Finding, p: float | None, p_size: float | None, p_none: float | None) -> tuple[str, str, str]:
    """Verdict, direction and remark on the size, given the p values of all tests."""
    decided = p is not None and p < LEVEL
    direction = (TOWARDS if finding.binding.slack > 0 else AGAINST) if decided else OPEN
    if finding.states_size and p_size is not None and p_size < LEVEL and direction != AGAINST:
        return REFUTED, direction, OUTSIDE
    if finding.states_size and finding.size == NO and direction == TOWARDS:
        return UNDECIDED, direction, ""
    if direction == OPEN and p_none is not None and p_none < LEVEL:
        return NO_LARGER, direction, ""
    return WORDS[finding.comparable][direction], direction, ""


def _binding(parts: tuple[Part, ...]) -> tuple[Part, float | None]:
    """The deciding comparison of a conjunction, and the conjunction's two-sided p, None if it has none."""
    failed = [part for part in parts if part.slack < 0]
    if failed:
        known = [(p, part) for part in failed if (p := _p_of(part)) is not None]
        if not known:
            return min(failed, key=lambda part: part.slack), None
        p, part = min(known, key=lambda pair: pair[0])
        return part, min(1.0, len(parts) * p)
    known = [(p, part) for part in parts if (p := _p_of(part)) is not None]
    if len(known) < len(parts):
        return min(parts, key=lambda part: part.slack), None
    p, part = max(known, key=lambda pair: pair[0])
    return part, p


def _p_of(part: Part) -> float | None:
    """The two-sided p of the bound that a comparison keeps by the least margin, or breaks by the most.

    Seeds that are all equal, as counts and shares of few items can be, have no t. The exact sign test has p = 2^(1-n).
    """
    nearest = min(part.bounds, key=lambda bound: bound.slack(part.estimate.mean), default=None)
    if nearest is None:
        return None
    found = part.estimate
    if found.sd is None and found.seeds > 1 and not found.diverged:
        return 2.0 ** (1 - found.seeds) if part.slack else 1.0
    return found.p(nearest.value)


def _p_of_none(parts: tuple[Part, ...], share: float) -> float | None:
    """The p of the tests that every comparison's effect is smaller than this share of the printed one, either way.

    Two one-sided tests (Schuirmann 1987); of several comparisons the largest p counts. None for claims of no harm and
    of equality, and if a comparison has no printed effect in the claimed direction, or no spread.
    """
    ps = [
        part.estimate.p_within(part.bounds[0].value, share * size) if (size := printed_size(part)) else None
        for part in parts
    ]
    return None if None in ps else max(ps)


def printed_size(part: Part) -> float | None:
    """The printed effect of a comparison with one strict bound, on the scale of its test; None if it has none."""
    if part.printed is None or len(part.bounds) != 1 or not part.bounds[0].strict:
        return None
    size = part.bounds[0].slack(part.printed)
    return size if 0 < size < math.inf else None


def _excluded(part: Part, share: float) -> float:
    """The value of a comparison whose effect is this share of the printed one."""
    (bound,) = part.bounds
    return bound.value + bound.sign * share * printed_size(part)


def _p_of_size(parts: tuple[Part, ...]) -> float | None:
    """The p of the test that new runs of ours have all printed sizes (Bonferroni over them); None without any."""
    ps = [part.estimate.p_predicted(part.printed, part.single) for part in parts if part.printed is not None]
    known = [p for p in ps if p is not None]
    return min(1.0, len(known) * min(known)) if known else None
