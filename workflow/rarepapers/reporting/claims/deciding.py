"""Runs that would decide a claim: number of further seeds, runs and cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, nctdtr, stdtrit

from rarepapers.reporting.claims.claim_parts import Bound, Part
from rarepapers.reporting.claims.claim_runs import (
    Price,
    Prices,
    RunName,
    Trained,
    finished_seeds,
    measured_prices,
    price_of,
    rests_on,
)
from rarepapers.reporting.claims.verdicts import NOT_RUN, UNDECIDED, Finding
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.results import Results
from rarepapers.reporting.statistics.moderated_t import Estimate
from rarepapers.reporting.statistics.significance import LEVEL

POWER = 0.8
# scipy's noncentral t is exact up to this shift, and wrong or undefined far above it.
LARGEST_SHIFT = 30.0
# A claim that needs more seeds than this gets no plan.
MOST_SEEDS = 100
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COLUMNS = ["more_seeds", "decides", "runs", "minutes"]


@dataclass(frozen=True)
class Decision:
    """The runs that would decide one claim.

    says: the decision as text. more_seeds: number of further seeds for each training that the claim compares; None if
    no number is known to decide it. runs: the missing ones, with their price.
    """

    says: str
    more_seeds: int | None = None
    runs: tuple[RunName, ...] = ()
    price: Price | None = None

    def columns(self) -> dict:
        """Its cells in claims.csv."""
        return {
            "more_seeds": "" if self.more_seeds is None else self.more_seeds,
            "decides": self.says,
            "runs": " ".join(f"{experiment}/{method}/seed{seed}" for experiment, method, seed in self.runs),
            "minutes": f"{self.price.minutes:.3g}" if self.price else "",
        }


NOTHING = Decision("")
NO_RUN = Decision("runs that this scale leaves out: see the note")
MEASURE_AGAIN = Decision("no new run: finished runs lack a number; evaluate them again")


def decisions(found: list[tuple], family: int, definition: Definition, results: Results) -> list[Decision]:
    """The Decision for each of a paper's claims (with its Finding), in order; NOTHING for claims that need none.

    family: number of tests for Holm's correction.
    """
    prices = measured_prices(results, definition.paper)
    seeds = finished_seeds(results)
    decided = sum(finding.p_holm is not None and finding.p_holm < LEVEL for _, finding in found)
    # Holm's next step
    level = LEVEL / max(1, family - decided)
    claims = {claim.id: claim for claim, _ in found}
    needed = []
    for claim, finding in found:
        is_open = finding.verdict in (UNDECIDED, NOT_RUN) and claim.direction
        trainings = trainings_of(claim, finding, claims, definition) if is_open else ()
        left_out = is_open and not trainings and claim.kind == "experiment"
        needed.append(NO_RUN if left_out else _decision(finding, trainings, level, seeds, prices))
    return needed


def trainings_of(claim, finding: Finding, claims: dict, definition: Definition) -> tuple[Trained, ...]:
    """The trainings that an experiment's claim compares; none if no run at this scale decides it. claims: by id."""
    if claim.kind != "experiment":
        return ()
    if finding.parts and not finding.asked:
        return tuple(dict.fromkeys(training for part in finding.parts for training in part.methods))
    return rests_on(claim, claims, finding.asked, definition)


def _decision(finding: Finding, trainings: tuple[Trained, ...], level: float, seeds: dict, prices: Prices) -> Decision:
    if not trainings:
        return NOTHING
    if any(not seeds.get(training) for training in trainings):
        return _priced("a first seed of the missing runs", None, cheapest_runs(trainings, 1, seeds, prices), prices)
    if not finding.parts:
        return MEASURE_AGAIN if finding.verdict == NOT_RUN else NOTHING
    more = seeds_to_decide(finding.parts, level)
    if more is None:
        stuck = [part for part in finding.parts if part.estimate.sd is None and part.estimate.seeds > 1]
        if diverged := next((part.estimate.diverged for part in stuck if part.estimate.diverged), ""):
            return Decision(f"no number of seeds: {diverged}")
        if any(part.slack == 0 for part in stuck):
            return Decision("no number of seeds: the effect is exactly at its bound in all of them")
        if all(part.estimate.sd is not None or part.estimate.seeds > 1 for part in finding.parts):
            return Decision(f"more than {MOST_SEEDS} seeds: the effect is small compared with their spread")
        runs = cheapest_runs(trainings, 1, seeds, prices)
        return _priced("one more seed, to see how far seeds differ", 1, runs, prices)
    runs = cheapest_runs(trainings, more, seeds, prices)
    words = f"{WORDS[more] if more < len(WORDS) else more} more seed{'s' if more > 1 else ''}"
    return _priced(words, more, runs, prices)


def seeds_to_decide(parts: tuple[Part, ...], level: float) -> int | None:
    """Number of further seeds that decide a conjunction with power 0.8, if the observed effects are the true ones.

    None beyond MOST_SEEDS, for effects of 0, and if the spread of seeds is unknown. To reproduce a conjunction, every
    comparison needs a power such that all together have 0.8 if they are independent. One failing comparison refutes it,
    at the level divided by the number of comparisons.
    """
    failed = [part for part in parts if part.slack < 0]
    if failed:
        needed = [_seeds_of(part, level / len(parts), POWER) for part in failed]
        known = [number for number in needed if number is not None]
        return min(known) if known else None
    power = POWER ** (1 / len(parts))
    needed = [_seeds_of(part, level, power) for part in parts]
    return None if None in needed else max(needed)


def _seeds_of(part: Part, level: float, power: float) -> int | None:
    """Number of further seeds that decide one comparison: the maximum over its informative bounds."""
    mean = part.estimate.mean
    bounds = [bound for bound in part.bounds if (bound.slack(mean) < 0) == (part.slack < 0)]
    needed = [more_seeds(part.estimate, bound, level, power) for bound in bounds]
    return None if not needed or None in needed else max(needed)


def more_seeds(estimate: Estimate, bound: Bound, level: float, power: float = POWER) -> int | None:
    """Number of further seeds, at least one, until a two-sided t test at `level` has `power`.

    Assumes that the observed mean and spread are the true ones, which is a rough guess for few seeds. Seeds that are
    all equal are judged by a sign test (verdicts.py). None beyond MOST_SEEDS.
    """
    effect = abs(estimate.mean - bound.value)
    if not effect or estimate.diverged or (estimate.sd is None and estimate.seeds < 2):
        return None
    if estimate.sd is None:
        return max(1, math.floor(math.log2(1 / level)) + 2 - estimate.seeds)
    known = estimate.prior.df if estimate.prior else 0.0
    for seeds in range(max(2, estimate.seeds + 1), MOST_SEEDS + 1):
        if power_of(effect / estimate.sd, seeds, known + seeds - 1, level) >= power:
            return seeds - estimate.seeds
    return None


def power_of(effect: float, seeds: int, df: float, level: float) -> float:
    """Power of a two-sided t test with `df` degrees of freedom for an effect in standard deviations over seeds."""
    shift = effect * math.sqrt(seeds)
    beyond = float(stdtrit(df, 1 - level / 2))
    if shift <= LARGEST_SHIFT:
        return 1 - float(nctdtr(df, shift, beyond))
    # t is above `beyond` if the estimated standard deviation, which is that of a chi distribution, is below
    # (shift + z) / beyond; mean over the standard normal z, here on a grid, whose error is far below rounding.
    z = np.linspace(-10, 10, 401)
    weights = np.exp(-(z**2) / 2)
    share = chdtr(df, df * ((shift + z) / beyond) ** 2)
    return float(np.average(share, weights=weights))


def cheapest_runs(trainings: Iterable[Trained], more: int, seeds: dict, prices: Prices) -> tuple[RunName, ...]:
    """The runs that give all `trainings` this many more common seeds; seeds that some already have come first."""
    trainings = list(trainings)
    had = [seeds.get(training, set()) for training in trainings]
    common = set.intersection(*had)
    highest = max((max(each, default=0) for each in had), default=0) + more

    def cost(seed: int) -> float:
        wanted = [prices(*training) for training, each in zip(trainings, had, strict=True) if seed not in each]
        return sum(1.0 if price is None else price.minutes for price in wanted)

    chosen = sorted((seed for seed in range(1, highest + 1) if seed not in common), key=lambda seed: (cost(seed), seed))
    return tuple(
        (*training, seed)
        for seed in sorted(chosen[:more])
        for training, each in zip(trainings, had, strict=True)
        if seed not in each
    )


def _priced(words: str, more: int | None, runs: tuple[RunName, ...], prices: Prices) -> Decision:
    price = price_of(runs, prices)
    return Decision(f"{words}, {price.in_words()}" if price else words, more, runs, price)
