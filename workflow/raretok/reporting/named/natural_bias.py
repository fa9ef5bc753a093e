"""Claims of natural_bias about figures, one function each; what they return: `named/evidence.py`.

The paper counts data sets; a scale can have fewer than its six, and the same share of them, rounded up, must hold. The
slack of `at least k of n` is the k-th largest slack of the n, each seed against itself. Thresholds marked as ours are
tolerances that the paper does not state.
"""

import math
from collections.abc import Callable

import numpy as np

from raretok.reporting import translated
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import Method
from raretok.reporting.named.evidence import Evidence, Found
from raretok.reporting.predicates import Missing, Truth, all_of, at_least, difference, greater
from raretok.reporting.table_claims import common_seeds

NONE, ZERO, UNIGRAM, C4 = "none", "zero", "unigram", "c4"
REGULARISED = "regularised"  # how the names of the methods of figure 11 begin
# The experiment of figures 4 and 11, those with a C4 start, and the one that has figures of its own.
IWSLT14, WMT14 = "iwslt14_de-en", "wmt14_de-en"
MOST = 5 / 6  # of the data sets
UPDATES = 50_000  # the length of training at which the paper prints numbers of updates (footnote 10)
MATCHED_BY = 2000  # figure 1
EARLY = 10_000  # ours: figure 5, the first fifth of training
STAYS = 0.05  # ours: figures 13 and 14

Values = Callable[[Evidence, str], dict[int, float]]


def data_sets(evidence: Evidence) -> list[str]:
    """The experiments of the figures that count data sets: all of the scale but WMT14. Raises Missing for none."""
    found = [experiment for experiment in evidence.definition.settings if experiment != WMT14]
    if not found:
        raise Missing("no data set of the paper's six is run at this scale")
    return found


def unigram_early(evidence: Evidence) -> Found:
    """f1.unigram_early: the model is nearest to the unigram distribution early, and nearer than to the other two."""
    parts = []
    for experiment in evidence.definition.settings:
        here = evidence.within(experiment)
        latest = translated.scaled(evidence.definition, experiment, MATCHED_BY, UPDATES)
        names = ("steps", "unigram", "uniform", "empirical")
        series = [here.array(ZERO, f"divergence.{name}") for name in names]
        parts.append(here.per_seed(lambda *values, latest=latest: _matched(latest, *values), *series))
    note = (
        f"zero bias; {MATCHED_BY:,} of {UPDATES:,} updates, scaled; slack: updates to spare as a share of those, or "
        "nats; the least of all data sets"
    )
    return _all(parts), None, note


def _matched(latest: float, steps, unigram, uniform, empirical) -> Truth:
    place = int(np.nanargmin(unigram))
    others = [greater(float(values[place]), float(unigram[place])) for values in (uniform, empirical)]
    return all_of([at_least((latest - float(steps[place])) / latest, 0), *others])


def bleu_of_most(evidence: Evidence) -> Found:
    """f2.bleu_5of6: test BLEU of the log-unigram start is as good as the others', on five of six data sets."""
    return _most(evidence, _bleu(translated.BLEU), tolerant=True)


def alc_of_most(evidence: Evidence) -> Found:
    """f3.alc_5of6: the area under the early validation curve is larger, on five of six data sets."""
    return _most(evidence, _area(translated.BLEU))


def chrf(evidence: Evidence) -> Found:
    """f9_10.chrf: figures 2 and 3 come out the same way by chrF."""
    text, areas = _most(evidence, _bleu(translated.CHRF), tolerant=True), _most(evidence, _area(translated.CHRF))
    return _all([text[0], areas[0]]), None, f"figure 9: {text[2]}; figure 10: {areas[2]}; slack: the lesser of both"


def wmt(evidence: Evidence) -> Found:
    """f7_8.wmt: figures 2 and 3 come out the same way on WMT14 De-En."""
    here = evidence.within(WMT14)
    text = _margin(here, _bleu(translated.BLEU), tolerant=True)
    areas = _margin(here, _area(translated.BLEU))
    truths = _all([_at_least_zero(text), {seed: greater(value, 0) for seed, value in areas.items()}])
    return truths, None, "slack: the lesser of both, in BLEU; a tie of test BLEU within one standard error (ours)"


def _bleu(metric: str) -> Values:
    return lambda here, name: _measured(here, name, lambda m: translated.in_domain(here.results, m, metric), metric)


def _area(metric: str, *, whole: bool = False) -> Values:
    def values(here: Evidence, name: str) -> dict[int, float]:
        what = translated.ALC[metric]
        return _measured(here, name, lambda m: translated.area(here.results, m, metric, whole=whole), what)

    return values


def _measured(here: Evidence, name: str, values: Callable[[Method], dict[int, float]], what: str) -> dict[int, float]:
    """What one method was measured at; raises Missing for nothing."""
    method = here.definition.method(name)
    found = values(method)
    if not found:
        raise Missing(f"{name} was not run in {method.experiment} ({what})")
    return found


def _margin(here: Evidence, values: Values, *, tolerant: bool = False) -> dict[int, float]:
    """By how much the log-unigram start is above the better of the others, by seed.

    tolerant: with its standard error over seeds to spare, which one seed has none of.
    """
    unigram, zero, none = (values(here, name) for name in (UNIGRAM, ZERO, NONE))
    spare = standard_error(list(unigram.values())) or 0.0 if tolerant else 0.0
    return {
        seed: difference(unigram[seed] + spare, max(zero[seed], none[seed]))
        for seed in common_seeds([unigram, zero, none])
    }


def standard_error(values: list[float]) -> float | None:
    """Of the mean of `values`; None for fewer than two."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def _most(evidence: Evidence, values: Values, *, tolerant: bool = False) -> Found:
    names = data_sets(evidence)
    margins = [_margin(evidence.within(experiment), values, tolerant=tolerant) for experiment in names]
    needed = math.ceil(MOST * len(names))
    judge = at_least if tolerant else greater
    truths = {
        seed: judge(sorted((margin[seed] for margin in margins), reverse=True)[needed - 1], 0)
        for seed in common_seeds(margins)
    }
    held = sum(judge(float(np.mean(list(margin.values()))), 0).holds for margin in margins)
    note = (
        f"of {len(names)} data set{'s' * (len(names) > 1)} of this scale {needed} must hold, on the means over seeds "
        f"{held} do{'es' * (held == 1)}; slack: the difference in the one of rank {needed}"
    )
    return truths, None, note + ("; a tie within one standard error of the mean (ours)" if tolerant else "")


def _at_least_zero(margin: dict[int, float]) -> dict[int, Truth]:
    return {seed: at_least(value, 0) for seed, value in margin.items()}


def _all(parts: list[dict[int, Truth]]) -> dict[int, Truth]:
    """The conjunction of truths by seed, of the seeds that all have; raises Missing for none of either."""
    if not parts:
        raise Missing("no data set of the paper is run at this scale")
    return {seed: all_of(part[seed] for part in parts) for seed in common_seeds(parts)}


def full_slopes(evidence: Evidence) -> Found:
    """f4a.slopes: the whole model gives frequent tokens more probability, from both starts."""
    slopes = [_slope(evidence, name, translated.WITH_BIAS) for name in (ZERO, UNIGRAM)]
    truths = evidence.per_seed(lambda *values: all_of(greater(value, 0) for value in values), *slopes)
    return truths, None, "slack: the lesser slope"


def zero_slope(evidence: Evidence) -> Found:
    """f4b.zero_slope: without its bias, the model that started at zero still does."""
    slopes = _slope(evidence, ZERO, translated.WITHOUT_BIAS)
    return evidence.per_seed(lambda value: greater(value, 0), slopes), None, "slack: slope"


def unigram_slope(evidence: Evidence) -> Found:
    """f4b.unigram_slope: without its bias, the one that started at the unigram distribution does the opposite."""
    slopes = _slope(evidence, UNIGRAM, translated.WITHOUT_BIAS)
    return evidence.per_seed(lambda value: greater(0, value), slopes), None, "slack: minus the slope"


def _slope(evidence: Evidence, method: str, group: str) -> dict[int, float]:
    return evidence.of("figure4").metric(method, translated.SLOPE, group)


def early_curves(evidence: Evidence) -> Found:
    """f5.curves: early in training, the log-unigram start's validation BLEU is above the others', on most data sets."""

    def early(here: Evidence, name: str) -> dict[int, float]:
        method = here.definition.method(name)
        until = translated.scaled(here.definition, method.experiment, EARLY, UPDATES)
        found = {}
        for seed, arrays in here.results.seeds_with_arrays(method):
            curve = translated.curve(arrays)
            if curve is not None and (curve[0] <= until).any():
                found[seed] = float(curve[1][curve[0] <= until].mean())
        if not found:
            raise Missing(f"{name} was not validated in the first updates of {method.experiment}")
        return found

    truths, _, note = _most(evidence, early)
    return truths, None, f"mean of the validations in the first {EARLY:,} of {UPDATES:,} updates, scaled (ours); {note}"


def alc_full(evidence: Evidence) -> Found:
    """f6.alc_full: over all of training, the area differs in the same direction as over the first updates."""
    parts = []
    for experiment in data_sets(evidence):
        here = evidence.within(experiment)
        first, whole = _margin(here, _area(translated.BLEU)), _margin(here, _area(translated.BLEU, whole=True))
        parts.append(here.per_seed(_same_sign, first, whole))
    note = "log-unigram minus the better of the others; slack: the lesser difference, negative where signs differ"
    return _all(parts), None, note


def _same_sign(first: float, second: float) -> Truth:
    return greater(math.copysign(1.0, first * second) * min(abs(first), abs(second)), 0)


def regularise(evidence: Evidence) -> Found:
    """f11.regularise: no model that was kept from the unigram distribution at first ends with a higher BLEU."""
    here = evidence.of("figure11")
    names = [name for name in here.definition.figures["figure11"]["methods"] if name.startswith(REGULARISED)]
    plain = here.metric(ZERO, translated.BLEU)
    spare = standard_error(list(plain.values())) or 0.0
    grids = {name: translated.in_domain(here.results, here.definition.method(name)) for name in names}
    run = [values for values in grids.values() if values]
    if not run:
        raise Missing("no regularised model was run")
    truths = here.per_seed(lambda base, *others: all_of(at_least(base + spare, v) for v in others), plain, *run)
    note = "against zero bias, with its standard error to spare (one seed has none); slack: the least, in BLEU"
    return truths, None, f"{len(run)} of {len(names)} pairs of strength and updates were run; {note}"


def out_of_domain(evidence: Evidence) -> Found:
    """f12.ood: out-of-domain BLEU is reported for each start; the text says nothing on which is higher."""
    said, parts = [], []
    for experiment in evidence.definition.settings:
        here = evidence.within(experiment)
        for domain in translated.domains(evidence.results, experiment):
            values = [_ood(here, name, domain) for name in (NONE, ZERO, UNIGRAM)]
            parts.append(here.per_seed(lambda *_: Truth(True, 0.0), *values))
            means = ", ".join(f"{float(np.mean(list(of.values()))):.2f}" for of in values)
            said.append(f"{corpus_title(evidence.definition.corpus(experiment))} on {domain} {means}")
    if not parts:
        raise Missing("no other domain was translated")
    return _all(parts), None, f"no bias, zero, log-unigram: {'; '.join(said)}; nothing is claimed of their order"


def _ood(here: Evidence, name: str, domain: str) -> dict[int, float]:
    return _measured(here, name, lambda m: translated.out_of_domain(here.results, m, domain), f"domain {domain}")


def divergence_stays(evidence: Evidence) -> Found:
    """f13.divergence: the bias's divergence from the unigram distribution changes little from where it starts.

    That of the log-unigram start begins at 0: both are measured by that of a bias of zeros, KL(unigram || uniform).
    """
    parts = []
    for experiment in evidence.definition.settings:
        here = evidence.within(experiment)
        zero, unigram = (here.array(name, "output_bias.divergence") for name in (ZERO, UNIGRAM))

        def judge(zero, unigram):
            moved = max(float(np.nanmax(np.abs(values - values[0]))) for values in (zero, unigram))
            return greater(STAYS, moved / float(zero[0]))

        parts.append(here.per_seed(judge, zero, unigram))
    note = f"largest change below {STAYS:.0%} (ours) of KL(unigram || uniform), of both starts; slack: share to spare"
    return _all(parts), None, note


def norm_stays(evidence: Evidence) -> Found:
    """f14.norm: the bias keeps its norm; that of the zero start stays small."""
    parts = []
    for experiment in evidence.definition.settings:
        here = evidence.within(experiment)
        zero, unigram = (here.array(name, "output_bias.norm") for name in (ZERO, UNIGRAM))

        def judge(zero, unigram):
            start = float(unigram[0])
            moved = float(np.nanmax(np.abs(unigram - start)))
            return all_of(greater(STAYS, value / start) for value in (moved, float(np.nanmax(zero))))

        parts.append(here.per_seed(judge, zero, unigram))
    note = f"below {STAYS:.0%} (ours) of the log-unigram bias's norm at the start; slack: share to spare"
    return _all(parts), None, note


def c4_out_of_domain(evidence: Evidence) -> Found:
    """f16.c4_ood: started from C4's unigrams, the IWSLT14 model translates another domain better."""
    here = evidence.within(IWSLT14)
    found = translated.domains(evidence.results, IWSLT14)
    if not found:
        raise Missing("no other domain was translated")
    pairs = [[_ood(here, name, domain) for name in (C4, UNIGRAM)] for domain in found]
    parts = [here.per_seed(greater, *pair) for pair in pairs]
    note = f"test text of {', '.join(found)} (the paper: the other corpus's validation text); slack in BLEU"
    return _all(parts), None, note


def efficiency(evidence: Evidence) -> Found:
    """abs.efficiency: f3.alc_5of6 and f5.curves."""
    return _all([alc_of_most(evidence)[0], early_curves(evidence)[0]]), None, "slack: the lesser of both, in BLEU"


def performance(evidence: Evidence) -> Found:
    """abs.performance: f2.bleu_5of6 and f7_8.wmt."""
    return _all([bleu_of_most(evidence)[0], wmt(evidence)[0]]), None, "slack: the lesser of both, in BLEU"


CLAIMS = {
    "natural_bias.f1.unigram_early": unigram_early,
    "natural_bias.f2.bleu_5of6": bleu_of_most,
    "natural_bias.f3.alc_5of6": alc_of_most,
    "natural_bias.f4a.slopes": full_slopes,
    "natural_bias.f4b.zero_slope": zero_slope,
    "natural_bias.f4b.unigram_slope": unigram_slope,
    "natural_bias.f5.curves": early_curves,
    "natural_bias.f6.alc_full": alc_full,
    "natural_bias.f7_8.wmt": wmt,
    "natural_bias.f9_10.chrf": chrf,
    "natural_bias.f11.regularise": regularise,
    "natural_bias.f12.ood": out_of_domain,
    "natural_bias.f13.divergence": divergence_stays,
    "natural_bias.f14.norm": norm_stays,
    "natural_bias.f16.c4_ood": c4_out_of_domain,
    "natural_bias.abs.efficiency": efficiency,
    "natural_bias.abs.performance": performance,
}
