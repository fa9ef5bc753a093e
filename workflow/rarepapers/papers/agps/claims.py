"""Claims of agps about figures and derivations; see `reporting/claims/evidence.py` for their return values.

The paper's figures show translation models. If those were not run, or if their low-frequency group has no word of the
target language, claims that the language model can answer are judged on it, and the note says so. Thresholds marked as
ours are tolerances that the paper does not state.
"""

from collections.abc import Callable
from functools import partial, wraps

import numpy as np

from rarepapers.reporting import translation_metrics
from rarepapers.reporting.claims.evidence import Evidence, Found
from rarepapers.reporting.claims.figure_claims import LEFT, beside_cited, rare_first, until
from rarepapers.reporting.claims.other_language import of_one_stem, of_other_language
from rarepapers.reporting.claims.truths import Missing, Undefined, all_of, at_least, greater

# Translation methods, and the language model's methods that replace them.
BASELINE, COSREG, AGPS = "translator", "cosreg_translation", "agps_translation"
FREEZE, FREEZE_UNTIL = "freeze_translation", "freeze_until_8k_translation"
LANGUAGE_MODEL = {BASELINE: "baseline", COSREG: "cosreg", AGPS: "agps", FREEZE_UNTIL: "freeze_until_8k"}
CLOSE = 0.1  # ours: a correlation up to this size is close to 0
HIGH, MID, LOW = 0, 1, 2  # columns of the groups
ALMOST_ALL = 0.9  # ours: the share of negative w_r . h
SOON = 0.1  # ours: share of the steps after rare rows start training
LATE = 0.5  # ours: "from some step on" is tested over the last half of the steps after the freeze
SEPARABLE, MIXED = 0.9, 0.75  # ours: groups are separable from this balanced accuracy; not separable up to this one
COUNTERPART = "on the language model; the paper shows a translation model"


def either(judge: Callable[..., Found]) -> Callable[[Evidence], Found]:
    """`judge(evidence, names)` on translation or, if that was not run, on the language model; the note then says so.

    names: the method that is judged for each translation method.
    """

    @wraps(judge)
    def judged(evidence: Evidence) -> Found:
        try:
            return judge(evidence, dict(zip(LANGUAGE_MODEL, LANGUAGE_MODEL, strict=True)))
        except Missing as missing:
            try:
                truths, published, note = judge(evidence, LANGUAGE_MODEL)
            except Missing:
                raise missing from None
            return truths, published, f"{COUNTERPART}; {note}"

    return judged


def with_low_words(evidence: Evidence, name: str) -> None:
    """Raise Undefined if the low-frequency group of a method has no type that was ever a target.

    Ids are ordered by counts of the target side, so words of the source language have the last ones. A small text may
    have so many of them that they fill the group.
    """
    counts, bounds = evidence.array(name, "counts"), evidence.array(name, "bounds")
    if not all(counts[seed][bounds[seed][-1] :].any() for seed in counts):
        raise Undefined("the low-frequency group has no word of the target language")


@either
def f1_low_first(evidence: Evidence, names: dict[str, str]) -> Found:
    """The low-frequency group is the first to leave the bulk in the PCA projection."""
    name = names[BASELINE]
    with_low_words(evidence, name)
    planes, bounds = evidence.array(name, "snapshots.pca"), evidence.array(name, "bounds")
    truths = evidence.per_seed(partial(rare_first, balanced=True), planes, bounds)
    note = (
        f"left the bulk: centroid {LEFT:g} x the spread from the centre, with equal weight for each group, since most "
        "types are rare"
    )
    return truths, None, note


@either
def f2_follow(evidence: Evidence, names: dict[str, str]) -> Found:
    """Inner products within the high and mid groups rise faster once rare rows are trained."""
    name = names[FREEZE_UNTIL]
    with_low_words(evidence, name)
    freeze = until(evidence, name)

    def judge(steps, products):
        before = steps <= freeze
        after = steps >= steps[before].max(initial=0)
        if before.sum() < 2 or after.sum() < 2:
            raise Missing("fewer than two snapshots on one side of the freeze's end")
        return all_of(
            greater(*(_slope(steps[side], products[side, group]) for side in (after, before))) for group in (HIGH, MID)
        )

    steps, products = (evidence.array(name, f"snapshots.{key}") for key in ("steps", "inner_product"))
    return evidence.per_seed(judge, steps, products), None, "least-squares slopes"


def _slope(steps: np.ndarray, values: np.ndarray) -> float:
    return float(np.polyfit(steps / 1000, values.astype(float), 1)[0])


@either
def eq8_sign(evidence: Evidence, names: dict[str, str]) -> Found:
    """Soon after rare words start training, w_r . h is negative at almost all positions."""
    name = names[FREEZE_UNTIL]
    freeze = until(evidence, name)

    def judge(steps, share, mean):
        # A scaled run may have no observation in so short a time; then the first one after the freeze is used.
        after = steps > freeze
        if not after.any():
            raise Missing("nothing was observed after the freeze")
        soon = after & (steps <= max(freeze + SOON * (steps[-1] - freeze), steps[after][0]))
        return all_of([greater(float(share[soon].mean()), ALMOST_ALL), greater(0, float(mean[soon].mean()))])

    keys = ("steps", "negative_share", "mean")
    values = [evidence.array(name, f"rare_alignment.{key}") for key in keys]
    note = f"over the first {SOON:.0%} of the steps after the freeze"
    return evidence.per_seed(judge, *values), None, note


@either
def eq7_pairs(evidence: Evidence, names: dict[str, str]) -> Found:
    """From some step on, the mean inner product of pairs of rare embeddings increases.

    If it does so from some step on, it does in the last part. Frozen rows have an inner product of their own.
    """
    name = names[FREEZE_UNTIL]
    with_low_words(evidence, name)
    freeze = until(evidence, name)

    def judge(steps, products):
        late = steps >= freeze + LATE * (steps[-1] - freeze)
        if late.sum() < 3:
            raise Missing("fewer than three snapshots in the last part of training")
        return greater(_slope(steps[late], products[late, LOW]), 0)

    steps, products = (evidence.array(name, f"snapshots.{key}") for key in ("steps", "inner_product"))
    return (
        evidence.per_seed(judge, steps, products),
        None,
        "least-squares slope over the second half of the steps after the freeze",
    )


@either
def f4_frequency_agnostic(evidence: Evidence, names: dict[str, str]) -> Found:
    """Groups are separable in the PCA plane for the baseline and CosReg, not for AGPS."""
    methods = (names[method] for method in (BASELINE, COSREG, AGPS))
    with_low_words(evidence, names[BASELINE])
    baseline, cosreg, agps = (evidence.metric(name, "separability", "pca") for name in methods)

    def judge(*accuracies):
        return all_of([*(at_least(a, SEPARABLE) for a in accuracies[:2]), at_least(MIXED, accuracies[2])])

    note = f"balanced accuracy: separable if at least {SEPARABLE}, not separable if at most {MIXED} (ours)"
    return evidence.of_means(judge, baseline, cosreg, agps), None, note


def f3_spread(evidence: Evidence) -> Found:
    """With rare words frozen, S(w) is lower and the PCA projection wider."""
    evidence = evidence.of("figure3")
    cosines = [evidence.metric(name, "mean_cosine", "total") for name in (BASELINE, FREEZE)]
    planes = [evidence.array(name, "best.pca") for name in (BASELINE, FREEZE)]

    def judge(baseline, frozen, *planes):
        widths = [float(np.sqrt(plane.astype(float).var(axis=0).sum())) for plane in planes]
        return all_of([greater(baseline, frozen), greater(widths[1] / widths[0], 1)])

    note = "width: root mean square distance of the points from their centre"
    return evidence.per_seed(judge, *cosines, *planes), None, note


def t10_12_related(evidence: Evidence) -> Found:
    """AGPS has neighbours in the other language, CosReg has related words, the baseline neither."""
    methods = (BASELINE, COSREG, AGPS)
    counted = [of_other_language(evidence, name) for name in methods]
    alike = [of_one_stem(evidence, name) for name in (BASELINE, COSREG)]

    def judge(baseline, cosreg, agps, alike_baseline, alike_cosreg):
        return all_of(
            [
                at_least(float(agps.min()), 1),
                *(greater(float(agps.sum()), float(others.sum())) for others in (baseline, cosreg)),
                greater(alike_cosreg, alike_baseline),
            ]
        )

    note = (
        "a type's language: the side of the training text with the larger share of it; related: the same first four "
        "letters (both ours). Compared: with AGPS every query has a neighbour in the other language, and there are "
        "more of these than with CosReg and the baseline; CosReg has more related neighbours than the baseline"
    )
    return evidence.per_seed(judge, *counted, *alike), None, note


def f5_7_bias(evidence: Evidence) -> Found:
    """For the baseline and CosReg, rarer words are nearer to each query; for AGPS frequency does not matter."""
    biased = [*rank_correlations(evidence, BASELINE), *rank_correlations(evidence, COSREG)]
    values = [*biased, *rank_correlations(evidence, AGPS)]

    def judge(*means):
        falling, level = means[: len(biased)], means[len(biased) :]
        return all_of([*(greater(rho, 0) for rho in falling), *(at_least(CLOSE, abs(rho)) for rho in level)])

    note = f"Spearman correlation for each query, over the types that occur; close to 0: at most {CLOSE} away (ours)"
    return evidence.of_means(judge, *values), None, note


def rank_correlations(evidence: Evidence, method: str) -> list[dict[int, float]]:
    """Spearman's correlation of index and cosine by seed, for each query; raises Missing."""
    queries = translation_metrics.rank_correlations(evidence.results, evidence.definition.methods[method])
    if not queries:
        raise Missing(f"{method} was not run (cosines of queries)")
    return list(queries.values())


# Functions that return a note on the verdict of a claim about tables.
BESIDE = {f"agps.t2.gain_{size}": partial(beside_cited, "table2", size, AGPS, BASELINE) for size in ("base", "big")}
