"""Claims of agps about figures and derivations, on its language model; what they return: `named/evidence.py`.

The paper's own figures are of translation models; what a language model can answer is answered on it, and the
note says so. Thresholds marked as ours are tolerances that the paper does not state.
"""

from functools import partial

import numpy as np

from raretok.reporting.named.evidence import Evidence, Found, translation
from raretok.reporting.named.shared import LEFT, rare_first, rises, until
from raretok.reporting.predicates import Missing, Truth, all_of, at_least, greater

BASELINE, COSREG, AGPS = "baseline", "cosreg", "agps"
FREEZE_UNTIL = "freeze_until_8k"
HIGH, MID, LOW = 0, 1, 2  # columns of the groups
ALMOST_ALL = 0.9  # ours: the share of negative w_r . h
SOON = 0.1  # ours: of the updates after rare rows start training, this part
SEPARABLE, MIXED = 0.9, 0.75  # ours: balanced accuracy from which groups are separable; up to which they are not
COUNTERPART = "on the language model; the paper shows a translation model"


def low_first(evidence: Evidence) -> Found:
    """f1.low_first: the low-frequent group is the first to leave the bulk in the PCA projection."""
    evidence = evidence.of("figure1-lm")
    planes, bounds = evidence.array(BASELINE, "snapshots.pca"), evidence.array(BASELINE, "bounds")
    truths = evidence.per_seed(partial(rare_first, balanced=True), planes, bounds)
    note = (
        f"left the bulk: centroid {LEFT:g} x the spread from the centre, every group counting alike, since most types "
        "are rare (ours); slack in checkpoints"
    )
    return truths, None, f"{COUNTERPART}; {note}"


def others_follow(evidence: Evidence) -> Found:
    """f2.follow: inner products within the high and mid groups rise faster once rare rows are trained."""
    evidence = evidence.of("figure2-lm")
    freeze = until(evidence, FREEZE_UNTIL)

    def judge(steps, products):
        before, after = steps <= freeze, steps >= freeze
        if before.sum() < 2 or after.sum() < 2:
            raise Missing("fewer than two snapshots on one side of the freeze's end")
        return all_of(
            greater(*(_slope(steps[side], products[side, group]) for side in (after, before))) for group in (HIGH, MID)
        )

    steps, products = (evidence.array(FREEZE_UNTIL, f"snapshots.{key}") for key in ("steps", "inner_product"))
    note = "slack: least-squares slope per 1,000 updates after the freeze minus before, the lesser of high and mid"
    return evidence.per_seed(judge, steps, products), None, f"{COUNTERPART}; {note}"


def _slope(steps: np.ndarray, values: np.ndarray) -> float:
    return float(np.polyfit(steps / 1000, values.astype(float), 1)[0])


def negative_alignment(evidence: Evidence) -> Found:
    """eq8.sign: soon after rare words start training, w_r . h is negative for almost all positions."""
    evidence = evidence.of("figure2-lm")
    freeze = until(evidence, FREEZE_UNTIL)

    def judge(steps, share, mean):
        # No look falls into so short a time where a scaled run looks rarely: then the first one after the freeze.
        after = steps > freeze
        if not after.any():
            raise Missing("nothing was observed after the freeze")
        soon = after & (steps <= max(freeze + SOON * (steps[-1] - freeze), steps[after][0]))
        return all_of([greater(float(share[soon].mean()), ALMOST_ALL), greater(0, float(mean[soon].mean()))])

    keys = ("steps", "negative_share", "mean")
    values = [evidence.array(FREEZE_UNTIL, f"rare_alignment.{key}") for key in keys]
    note = (
        f"over the first {SOON:.0%} of the updates after the freeze (ours); slack: share minus {ALMOST_ALL}, or -mean"
    )
    return evidence.per_seed(judge, *values), None, f"{COUNTERPART}; {note}"


def rare_pairs(evidence: Evidence) -> Found:
    """eq7.pairs: from some step on, the mean inner product of pairs of rare embeddings increases."""
    evidence = evidence.of("figure2-lm")

    def judge(steps, products):
        rare = products[:, LOW].astype(float)
        start = int(rare.argmin())
        if start > len(rare) - 3:  # falls to the end
            return Truth(False, -1.0)
        return rises(steps[start:], rare[start:])

    steps, products = (evidence.array(FREEZE_UNTIL, f"snapshots.{key}") for key in ("steps", "inner_product"))
    note = "slack: Spearman of step and inner product from its minimum on; -1 where it falls to the end"
    return evidence.per_seed(judge, steps, products), None, f"{COUNTERPART}; {note}"


def frequency_agnostic(evidence: Evidence) -> Found:
    """f4.frequency_agnostic: groups are separable in the PCA plane for the baseline and CosReg, not for AGPS."""
    baseline, cosreg, agps = (evidence.metric(name, "separability", "pca") for name in (BASELINE, COSREG, AGPS))

    def judge(*accuracies):
        return all_of([*(at_least(a, SEPARABLE) for a in accuracies[:2]), at_least(MIXED, accuracies[2])])

    note = f"balanced accuracy, separable from {SEPARABLE}, not up to {MIXED} (ours)"
    return evidence.per_seed(judge, baseline, cosreg, agps), None, f"{COUNTERPART}; {note}"


CLAIMS = {
    "agps.f1.low_first": low_first,
    "agps.f2.follow": others_follow,
    "agps.eq8.sign": negative_alignment,
    "agps.eq7.pairs": rare_pairs,
    "agps.f3.spread": translation,
    "agps.f4.frequency_agnostic": frequency_agnostic,
    "agps.t10_12.related": translation,
    "agps.f5_7.bias": translation,
}
