"""The starts of the output bias held against each other, data set by data set: what claims of natural_bias count.

The paper counts data sets; a scale can have fewer than its six, and the same share of them, rounded up, must hold. The
slack of `at least k of n` is the k-th largest slack of the n, on the means over seeds. Where some data sets of the
scale were not run, the effect is that of the others, the note names those without, and nothing is decided.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from raretok.reporting import intervals, translated
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import Method
from raretok.reporting.jackknife import mean_of, shares
from raretok.reporting.named.evidence import Evidence, Found, Partial
from raretok.reporting.predicates import Missing, Truth, all_of, at_least, difference, greater
from raretok.reporting.table_claims import common_seeds

NONE, ZERO, UNIGRAM, C4 = "none", "zero", "unigram", "c4"
# The experiment of figures 4 and 11, the first of the two with a C4 start, and the one that has figures of its own.
IWSLT14, WMT14 = "iwslt14_de-en", "wmt14_de-en"
MOST = 5 / 6  # of the data sets

Values = Callable[[Evidence, str], dict[int, float]]
Judged = TypeVar("Judged")


def data_sets(evidence: Evidence) -> list[str]:
    """The experiments of the figures that count data sets: all of the scale but WMT14. Raises Missing for none."""
    found = [experiment for experiment in evidence.definition.settings if experiment != WMT14]
    if not found:
        raise Missing("no data set of the paper's six is run at this scale")
    return found


def each(evidence: Evidence, experiments: list[str], judge: Callable[[Evidence], Judged]) -> tuple[list[Judged], str]:
    """`judge` of the evidence of each experiment that was run, and a note that names the others, empty for none.

    Raises Missing, as the first did, where none was run.
    """
    found, missing = [], {}
    for experiment in experiments:
        try:
            found.append(judge(evidence.within(experiment)))
        except Missing as reason:
            missing[corpus_title(evidence.definition.corpus(experiment))] = reason
    if not found:
        raise next(iter(missing.values()), Missing("no data set of the paper is run at this scale"))
    return found, f"; undecided without {', '.join(missing)}, not run" if missing else ""


def bleu(metric: str) -> Values:
    """BLEU or chrF of the test text."""
    return lambda here, name: measured(here, name, lambda m: translated.in_domain(here.results, m, metric), metric)


def area(metric: str, *, whole: bool = False) -> Values:
    """Area under the validation curve, over the first updates or over all."""

    def values(here: Evidence, name: str) -> dict[int, float]:
        what = translated.ALC[metric]
        return measured(here, name, lambda m: translated.area(here.results, m, metric, whole=whole), what)

    return values


def measured(here: Evidence, name: str, values: Callable[[Method], dict[int, float]], what: str) -> dict[int, float]:
    """What one method was measured at; raises Missing for nothing."""
    method = here.definition.method(name)
    found = values(method)
    if not found:
        raise Missing(f"{name} was not run in {method.experiment} ({what})")
    return found


@dataclass(frozen=True)
class Margin:
    """By how much the log-unigram start is above the better of the others, from values by seed; `spare` is added."""

    unigram: dict[int, float]
    others: tuple[dict[int, float], ...]
    spare: float

    @property
    def seeds(self) -> list[int]:
        """Those that all starts have; raises Missing where there is none."""
        return common_seeds([self.unigram, *self.others])

    def on(self, seeds: list[int]) -> float:
        """Of the means over some seeds."""
        return difference(mean_of(self.unigram, seeds) + self.spare, max(mean_of(of, seeds) for of in self.others))


def margin(here: Evidence, values: Values, *, tolerant: bool = False) -> Margin:
    """The margin in one data set; tolerant: with its standard error over seeds to spare, which one seed has none of."""
    unigram, *others = (values(here, name) for name in (UNIGRAM, ZERO, NONE))
    spare = standard_error(list(unigram.values())) or 0.0 if tolerant else 0.0
    return Margin(unigram, tuple(others), spare)


def standard_error(values: list[float]) -> float | None:
    """Of the mean of `values`; None for fewer than two."""
    return intervals.standard_error(values) if len(values) > 1 else None


@dataclass(frozen=True)
class OnMeans:
    """A claim about means over seeds: its truth on those over some of `seeds`. partial: of some of its data sets."""

    seeds: list[int]
    on: Callable[[list[int]], Truth]
    note: str = ""
    partial: bool = False

    def found(self, note: str) -> Found:
        """What a claim's function returns."""
        truths = shares(self.seeds, self.on)
        return Partial(truths) if self.partial else truths, None, note


def jointly(*claims: OnMeans) -> OnMeans:
    """All of them hold, of the seeds that all have; raises Missing where there is none."""
    seeds = common_seeds([dict.fromkeys(claim.seeds) for claim in claims])
    return OnMeans(
        seeds, lambda some: all_of(claim.on(some) for claim in claims), partial=any(claim.partial for claim in claims)
    )


def most(evidence: Evidence, values: Values, *, tolerant: bool = False) -> OnMeans:
    """The log-unigram start is above both others on five of six data sets; tolerant: a tie counts."""
    names = data_sets(evidence)
    margins, without = each(evidence, names, lambda here: margin(here, values, tolerant=tolerant))
    needed = math.ceil(MOST * len(margins))
    judge = at_least if tolerant else greater
    held = sum(judge(one.on(one.seeds), 0).holds for one in margins)
    note = (
        f"of {len(margins)} data set{'s' * (len(margins) > 1)} of this scale {needed} must hold, on the means over "
        f"seeds {held} do{'es' * (held == 1)}{without}; slack: the difference in the one of rank {needed}"
    ) + ("; a tie within one standard error of the mean (ours)" if tolerant else "")
    return OnMeans(
        common_seeds([dict.fromkeys(one.seeds) for one in margins]),
        lambda some: judge(sorted((one.on(some) for one in margins), reverse=True)[needed - 1], 0),
        note,
        bool(without),
    )


def conjunction(parts: list[dict[int, Truth]], without: str = "") -> dict[int, Truth]:
    """All hold, by seed, of the seeds that all have; raises Missing where there is none. without: of `each`."""
    truths = {seed: all_of(part[seed] for part in parts) for seed in common_seeds(parts)}
    return Partial(truths) if without else truths
