"""Claims of natural_bias about figures, one function each; see `reporting/claims/evidence.py` for their return values.

`papers/natural_bias/bias_starts.py` counts data sets. Thresholds marked as ours are tolerances that the paper does not
state.
"""

import math
from collections.abc import Callable

import numpy as np

from rarepapers.papers.natural_bias.bias_starts import (
    BLEU,
    BLEU_AREA,
    C4,
    CHRF,
    CHRF_AREA,
    IWSLT14,
    NONE,
    UNIGRAM,
    WHOLE_AREA,
    WMT14,
    ZERO,
    Values,
    above_best,
    conjunction,
    data_sets,
    each,
    margin,
    mean,
    measured,
    most,
    unigram_text,
)
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.claims.evidence import Evidence, Found
from rarepapers.reporting.claims.truths import Missing, Truth, Undefined, all_of, at_least, greater, known
from rarepapers.reporting.statistics.over_seeds import mean_text

REGULARISED = "regularised"  # prefix of the methods of figure 11
PRINTED_STEPS = 50_000  # printed length of training, to which the paper's steps refer (footnote 10)
MATCHED_BY = 2000  # figure 1
EARLY = 10_000  # ours: figure 5, the first fifth of training
STAYS = 0.05  # ours: figures 13 and 14


def f1_unigram_early(evidence: Evidence) -> Found:
    """The zero start is nearest to the unigram distribution early, and nearer to it than to the other two."""

    def judge(here: Evidence) -> dict[int, Truth]:
        latest = translation_metrics.scaled(
            here.definition, here.definition.methods[ZERO].experiment, MATCHED_BY, PRINTED_STEPS
        )
        names = ("steps", "unigram", "uniform", "empirical")
        series = [here.array(ZERO, f"divergence.{name}") for name in names]
        return here.per_seed(lambda *values: _matched(latest, *values), *series)

    parts, without = each(evidence, list(evidence.definition.settings), judge)
    return conjunction(parts, without), None, f"zero bias; {MATCHED_BY:,} of {PRINTED_STEPS:,} steps, scaled{without}"


def _matched(latest: float, steps, unigram, uniform, empirical) -> Truth:
    place = int(np.argmin([known(value) for value in unigram]))
    before, after = (float(steps[min(max(place + side, 0), len(steps) - 1)]) for side in (-1, 1))
    if before < latest < after:
        raise Undefined(f"the minimum lies between the observations at steps {before:g} and {after:g}")
    others = [greater(float(values[place]), float(unigram[place])) for values in (uniform, empirical)]
    # The last step counts as one to spare, because a difference of 0 can never be told from chance.
    spare = math.floor(latest) + 1 - float(steps[place])
    return all_of([greater(spare / latest, 0), *others])


def f2_bleu_5of6(evidence: Evidence) -> Found:
    """Test BLEU of the log-unigram start is as good as the others', on five of six data sets."""
    return most(evidence, BLEU)


def f3_alc_5of6(evidence: Evidence) -> Found:
    """The area under the early validation curve is larger, on five of six data sets."""
    return most(evidence, BLEU_AREA)


def f9_10_chrf(evidence: Evidence) -> Found:
    """Figures 2 and 3 come out the same way with chrF."""
    text, areas = most(evidence, CHRF), most(evidence, CHRF_AREA)
    note = f"figure 9: {text[2]}; figure 10: {areas[2]}"
    return conjunction([text[0], areas[0]]), None, note


def f7_8_wmt(evidence: Evidence) -> Found:
    """Figures 2 and 3 come out the same way on WMT14 De-En."""
    here = evidence.within(WMT14)
    margins = (margin(here, values) for values in (BLEU, BLEU_AREA))
    truths = conjunction([{seed: greater(value, 0) for seed, value in of.items()} for of in margins])
    return truths, None, ""


def f4a_slopes(evidence: Evidence) -> Found:
    """The whole model gives frequent tokens more probability, from both starts."""
    slopes, note = _slopes(evidence, (ZERO, UNIGRAM), translation_metrics.WITH_BIAS)
    truths = evidence.per_seed(lambda *values: all_of(greater(value, 0) for value in values), *slopes)
    return truths, None, note


def f4b_zero_slope(evidence: Evidence) -> Found:
    """Without its bias, the model that started at zero still gives frequent tokens more probability."""
    slopes, note = _slopes(evidence, (ZERO,), translation_metrics.WITHOUT_BIAS)
    return evidence.per_seed(lambda value: greater(value, 0), *slopes), None, note


def f4b_unigram_slope(evidence: Evidence) -> Found:
    """Without its bias, the model that started at the unigram distribution gives frequent tokens less probability."""
    slopes, note = _slopes(evidence, (UNIGRAM,), translation_metrics.WITHOUT_BIAS)
    return evidence.per_seed(lambda value: greater(0, value), *slopes), None, note


def _slopes(evidence: Evidence, methods: tuple[str, ...], group: str) -> tuple[list[dict[int, float]], str]:
    """Slopes through the figure's bins by seed, for each method, and a note with those through all tokens.

    The two can differ in sign: a bin of three tokens weighs as much as one of thousands.
    """
    here, said = evidence.of("figure4"), []
    by_bin, by_token = (
        [here.metric(method, metric, group) for method in methods]
        for metric in (translation_metrics.BIN_SLOPE, translation_metrics.TOKEN_SLOPE)
    )
    for method, bins, tokens in zip(methods, by_bin, by_token, strict=True):
        said.append(f"{method} {mean(bins):+.2f} by bin, {mean(tokens):+.2f} by token")
    return by_bin, "; ".join(said)


def f5_curves(evidence: Evidence) -> Found:
    """Early in training, the log-unigram start's validation BLEU is above the others', on most data sets."""

    def early(here: Evidence, name: str) -> dict[int, float]:
        method = here.definition.methods[name]
        until = translation_metrics.scaled(here.definition, method.experiment, EARLY, PRINTED_STEPS)
        found = {}
        for seed, arrays in here.results.seeds_with_arrays(method):
            curve = translation_metrics.curve(arrays)
            if curve is not None and (curve[0] <= until).any():
                found[seed] = float(curve[1][curve[0] <= until].mean())
        if not found:
            raise Missing(f"{name} was not validated in the first steps of {method.experiment}")
        return found

    truths, _, note = most(evidence, early)
    return (
        truths,
        None,
        f"mean validation score of the first {EARLY:,} of {PRINTED_STEPS:,} steps, scaled (ours); {note}",
    )


def f6_alc_full(evidence: Evidence) -> Found:
    """Over all of training, the area differs in the same direction as over the first steps."""

    def judge(here: Evidence) -> dict[int, Truth]:
        return here.per_seed(_same_sign, *(margin(here, values) for values in (BLEU_AREA, WHOLE_AREA)))

    parts, without = each(evidence, data_sets(evidence), judge)
    note = "log-unigram start minus the better of the others"
    return conjunction(parts, without), None, f"{note}{without}"


def _same_sign(first: float, second: float) -> Truth:
    return greater(math.copysign(1.0, first * second) * min(abs(first), abs(second)), 0)


def f11_regularise(evidence: Evidence) -> Found:
    """No model that is regularised away from the unigram distribution early in training ends with a higher BLEU."""
    here = evidence.of("figure11")
    names = [name for name in here.definition.figures["figure11"]["methods"] if name.startswith(REGULARISED)]
    plain = here.metric(ZERO, translation_metrics.BLEU)
    grids = {name: translation_metrics.in_domain(here.results, here.definition.methods[name]) for name in names}
    run = [values for values in grids.values() if values]
    if not run:
        raise Missing("no regularised model was run")
    truths = {seed: at_least(value, 0) for seed, value in above_best(plain, run).items()}
    return truths, None, f"{len(run)} of {len(names)} pairs of strength and steps were run"


def f12_ood(evidence: Evidence) -> Found:
    """Out-of-domain BLEU is reported for each start; the text claims no order."""
    said = []

    def judge(here: Evidence) -> list[dict[int, Truth]]:
        experiment, truths = here.definition.methods[NONE].experiment, []
        corpus = here.definition.corpus_title(experiment)
        domains = translation_metrics.test_domains(here.results, experiment)
        if not domains:
            raise Missing("no other domain was translated")
        for domain in domains:
            values = [_ood(domain)(here, name) for name in (NONE, ZERO, UNIGRAM)]
            truths.append(here.per_seed(lambda *_: Truth(True, 0.0), *values))
            means = ", ".join(mean_text(of, ".2f") for of in values)
            said.append(f"{corpus} on {here.definition.title_of(domain)} {means}")
        return truths

    parts, without = each(evidence, list(evidence.definition.settings), judge)
    note = f"no bias, zero, log-unigram: {'; '.join(said)}{without}; the paper claims no order"
    return conjunction([truth for part in parts for truth in part], without), None, note


def _ood(domain: str) -> Values:
    return measured(translation_metrics.out_of_domain, f"domain {domain}", domain=domain)


def f13_divergence(evidence: Evidence) -> Found:
    """The bias's divergence from the unigram distribution changes little during training.

    The log-unigram start begins at 0, so both changes are relative to a bias of zeros, KL(unigram || uniform).
    """

    def judge(zero: np.ndarray, unigram: np.ndarray) -> Truth:
        moved = np.max([np.max(np.abs(values - values[0])) for values in (zero, unigram)])  # NaN if one is
        return greater(STAYS, float(moved) / float(zero[0]))

    note = f"largest change of both starts below {STAYS:.0%} (ours) of KL(unigram || uniform)"
    return _of_biases(evidence, "divergence", judge, note)


def f14_norm(evidence: Evidence) -> Found:
    """The bias keeps its norm; that of the zero start stays small."""

    def judge(zero: np.ndarray, unigram: np.ndarray) -> Truth:
        start = float(unigram[0])
        moved = float(np.max(np.abs(unigram - start)))
        return all_of(greater(STAYS, value / start) for value in (moved, float(np.max(zero))))

    note = f"below {STAYS:.0%} (ours) of the log-unigram bias's norm at the start"
    return _of_biases(evidence, "norm", judge, note)


def _of_biases(evidence: Evidence, key: str, judge: Callable[..., Truth], note: str) -> Found:
    """`judge(zero, unigram)` on an observation of both starts' bias along training, on all data sets."""
    parts, without = each(
        evidence,
        list(evidence.definition.settings),
        lambda here: here.per_seed(judge, *(here.array(name, f"output_bias.{key}") for name in (ZERO, UNIGRAM))),
    )
    return conjunction(parts, without), None, f"{note}{without}"


def f16_c4_ood(evidence: Evidence) -> Found:
    """With a start from C4's unigrams, the IWSLT14 model translates another domain better."""
    here = evidence.within(IWSLT14)
    found = translation_metrics.validation_domains(evidence.results, IWSLT14)
    if not found:
        raise Missing("no other domain was translated")
    pairs = [[_ood(domain)(here, name) for name in (C4, UNIGRAM)] for domain in found]
    parts = [here.per_seed(greater, *pair) for pair in pairs]
    text = unigram_text(evidence.definition, IWSLT14)
    note = f"on {', '.join(found)} (the paper: WMT14's validation text); unigrams of {text}"
    return conjunction(parts), None, note


def abs_efficiency(evidence: Evidence) -> Found:
    """Conjunction of f3.alc_5of6 and f5.curves."""
    return _both(f3_alc_5of6(evidence), f5_curves(evidence))


def abs_performance(evidence: Evidence) -> Found:
    """Conjunction of f2.bleu_5of6 and f7_8.wmt."""
    return _both(f2_bleu_5of6(evidence), f7_8_wmt(evidence))


def _both(*claims: Found) -> Found:
    return conjunction([truths for truths, _, _ in claims]), None, ""


FIXED = {"natural_bias.f12.ood"}
# Claims that are conjunctions of other claims.
TOGETHER = {
    "natural_bias.abs.efficiency": ("natural_bias.f3.alc_5of6", "natural_bias.f5.curves"),
    "natural_bias.abs.performance": ("natural_bias.f2.bleu_5of6", "natural_bias.f7_8.wmt"),
}
# Trainings that a claim compares, if its figures show more.
NEEDS = {"natural_bias.f16.c4_ood": ((IWSLT14, UNIGRAM), (IWSLT14, C4))}
