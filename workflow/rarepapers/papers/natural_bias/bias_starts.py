"""Comparison of the starts of the output bias by data set, as claims of natural_bias count them.

The paper counts data sets. A scale may have fewer than its six; then the same share of them, rounded up, must hold. The
slack of `at least k of n` is that of the data set with the k-th largest of the n means over seeds. If some data sets of
the scale were not run, the effect is that of the others, the note names the missing ones, and nothing is decided.

The best of several starts is the one with the best mean over seeds, as in claims about tables. With the best of each
seed, luck would count: of equal starts, each would lose against the better of two others.
"""

import math
from collections.abc import Callable
from typing import TypeVar

from rarepapers.reporting import translation_metrics
from rarepapers.reporting.claims.evidence import Evidence, Found, Partial
from rarepapers.reporting.claims.jackknife import mean_of
from rarepapers.reporting.claims.table_claims import common_seeds
from rarepapers.reporting.claims.truths import (
    Missing,
    Truth,
    Undefined,
    all_of,
    difference,
    greater,
    known,
    naming_seeds,
    of_seed,
)
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.statistics import over_seeds

NONE, ZERO, UNIGRAM, C4 = "none", "zero", "unigram", "c4"
# The experiment of figures 4 and 11 and the first with a C4 start; and the one with its own figures.
IWSLT14, WMT14 = "iwslt14_de-en", "wmt14_de-en"
# The paper's text of other unigrams; a corpus of another language pair has a replacement.
PUBLISHED_TEXT = "C4"
MOST = 5 / 6  # share of the data sets

Values = Callable[[Evidence, str], dict[int, float]]
Judged = TypeVar("Judged")


def data_sets(evidence: Evidence) -> list[str]:
    """The scale's experiments on the paper's data sets, without WMT14. Raises Missing if there are none."""
    found = [experiment for experiment in evidence.definition.settings if experiment != WMT14]
    if not found:
        raise Missing("no data set of the paper's six is run at this scale")
    return found


def unigram_text(definition: Definition, experiment: str) -> str:
    """Name of the text whose unigrams start a bias in place of the training text's: C4, or its replacement."""
    return definition.unigrams.get(definition.corpus(experiment), {}).get(C4, PUBLISHED_TEXT)


def each(evidence: Evidence, experiments: list[str], judge: Callable[[Evidence], Judged]) -> tuple[list[Judged], str]:
    """`judge` on the evidence of each experiment, and a note on those that were not run or are undefined (or "").

    If none has a value, raises the first experiment's Missing.
    """
    found, missing = [], {}
    for experiment in experiments:
        try:
            found.append(judge(evidence.within(experiment)))
        except Missing as reason:
            missing[evidence.definition.corpus_title(experiment)] = reason
    if not found:
        raise next(iter(missing.values()), Missing("no data set of the paper is run at this scale"))
    undefined = [f"{name} is undefined: {why}" for name, why in missing.items() if isinstance(why, Undefined)]
    not_run = [name for name, why in missing.items() if not isinstance(why, Undefined)]
    said = [f"undecided without runs on {', '.join(not_run)}"] if not_run else []
    return found, "".join(f"; {one}" for one in said + undefined)


def measured(values: Callable[..., dict[int, float]], what: str, **choice) -> Values:
    """An accessor of `translation_metrics` that raises Missing where it has no values.

    what: its metric in words. choice: its further arguments.
    """

    def known(here: Evidence, name: str) -> dict[int, float]:
        method = here.definition.methods[name]
        found = values(here.results, method, **choice)
        if not found:
            raise Missing(f"{name} was not run in {method.experiment} ({what})")
        return found

    return known


BLEU, CHRF = (measured(translation_metrics.in_domain, name, metric=name) for name in translation_metrics.ALC)
# Areas under the validation curve: over the first steps, and over all.
BLEU_AREA, CHRF_AREA = (
    measured(translation_metrics.area, what, metric=name) for name, what in translation_metrics.ALC.items()
)
WHOLE_AREA = measured(translation_metrics.area, translation_metrics.ALC[translation_metrics.BLEU], whole=True)


def margin(here: Evidence, values: Values) -> dict[int, float]:
    """The difference of the log-unigram start from the better of the others, by seed; see `above_best`."""
    unigram, zero, none = (values(here, name) for name in (UNIGRAM, ZERO, NONE))
    return above_best(unigram, [zero, none])


def above_best(ours: dict[int, float], others: list[dict[int, float]]) -> dict[int, float]:
    """The difference of `ours` from the one of `others` with the highest mean, by common seed.

    The claim's margin says which negative difference still counts as "comparable". Raises Missing without a common
    seed, and Diverged if a mean or difference is undefined.
    """
    seeds = common_seeds([ours, *others])
    best = max(others, key=lambda of: naming_seeds(known, [of], mean_of(of, seeds)))
    return {seed: of_seed(seed, difference, ours[seed], best[seed]) for seed in seeds}


def mean(values: dict[int, float]) -> float:
    """Mean over seeds."""
    return over_seeds.mean_of(values.values())


def most(evidence: Evidence, values: Values) -> Found:
    """The difference of the log-unigram start from the better of the others, on five of six data sets."""
    names = data_sets(evidence)
    margins, without = each(evidence, names, lambda here: margin(here, values))
    needed = math.ceil(MOST * len(margins))
    ordered = sorted(margins, key=lambda of: naming_seeds(known, [of], mean(of)), reverse=True)
    truths = {seed: greater(ordered[needed - 1][seed], 0) for seed in common_seeds(margins)}
    truths = Partial(truths) if without else truths
    above = sum(mean(one) > 0 for one in margins)
    note = (
        f"it must hold on {needed} of the {len(margins)} data set{'s' * (len(margins) > 1)} run here; by means "
        f"over seeds, the log-unigram start is above both others on {above}{without}"
    )
    return truths, None, note


def conjunction(parts: list[dict[int, Truth]], without: str = "") -> dict[int, Truth]:
    """Conjunction by common seed; raises Missing if there is none. without: the note of `each`."""
    truths = {seed: all_of(part[seed] for part in parts) for seed in common_seeds(parts)}
    return Partial(truths) if without or any(isinstance(part, Partial) for part in parts) else truths
