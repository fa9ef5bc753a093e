"""Claims of stop_jostling about figures and proofs; see `reporting/claims/evidence.py` for their return values."""

import numpy as np

from rarepapers.reporting.claims.evidence import Evidence, Found
from rarepapers.reporting.claims.truths import Diverged, Missing, Truth, all_of, at_least, greater
from rarepapers.reporting.statistics.over_seeds import mean_of

PROPOSED = "threshold_m2"  # figures 3 and 4 name no margin; the authors' notebook uses 2 (deviations, S4)
SEPARATED = "threshold_m0.6_se"
BASELINE = "baseline"
# Property tests: their seeds, and the number of random cases per seed.
PROPERTY_SEEDS = range(1, 6)
PROPERTY_CASES = 400


def random_numbers(row: str) -> bool:
    """Which random numbers the authors' code trained a printed row with.

    Models with separated embeddings draw more of them when they are made, so that all of these have other initial
    weights and another order of batches than all others, with the same seed (deviations, S1).
    """
    return "+SE" in row


def f3_roa14(evidence: Evidence) -> Found:
    """Ratio of Average is below 1 exactly for the 14 least frequent low-resource characters."""
    below = {}

    def judge(ratio, counts):
        ratio = low_resource(ratio, counts)
        below[len(below)] = int((ratio < 1).sum())
        rarest = np.argsort(counts, kind="stable")[:14]
        others = np.setdiff1d(np.arange(len(counts)), rarest)
        return all_of([greater(1, ratio[rarest].max()), at_least(ratio[others].min(), 1)])

    ratios = evidence.array(BASELINE, "gradients.ratio_of_average")
    truths = evidence.per_seed(judge, ratios, evidence.array(BASELINE, "counts"))
    numbers = ", ".join(map(str, below.values()))
    return truths, None, f"low-resource characters below 1, by seed: {numbers} (printed 14)"


def f3_aor_all(evidence: Evidence) -> Found:
    """The baseline's Average of Ratio is below 1 for every low-resource character."""

    def judge(ratio, counts):
        return greater(1, low_resource(ratio, counts).max())

    ratios = evidence.array(BASELINE, "gradients.average_of_ratio")
    truths = evidence.per_seed(judge, ratios, evidence.array(BASELINE, "counts"))
    return truths, None, ""


def _quotients(evidence: Evidence, ratio: str) -> dict[int, np.ndarray]:
    """The proposed method's ratio divided by the baseline's, for each low-resource character, by seed.

    Not finite for a character that never occurred (ratio 0 for both) or was never marginalised (infinite).
    """

    def divide(proposed, baseline, counts):
        with np.errstate(divide="ignore", invalid="ignore"):
            return low_resource(proposed, counts) / low_resource(baseline, counts)

    return evidence.per_seed(
        divide,
        evidence.array(PROPOSED, f"gradients.{ratio}"),
        evidence.array(BASELINE, f"gradients.{ratio}"),
        evidence.array(BASELINE, "counts"),
    )


def _gains(quotients: dict[int, np.ndarray]) -> dict[int, float]:
    """Mean over the characters with a quotient, by seed; raises Missing if there are none."""
    known = {seed: values[np.isfinite(values)] for seed, values in quotients.items()}
    if not all(len(values) for values in known.values()):
        raise Missing("no low-resource character occurred in training")
    return {seed: float(values.mean()) for seed, values in known.items()}


def _gain(evidence: Evidence, ratio: str, printed: str) -> Found:
    quotients = _quotients(evidence, ratio)
    truths = {seed: at_least(gain, 1) for seed, gain in _gains(quotients).items()}
    left_out = [int((~np.isfinite(values)).sum()) for values in quotients.values()]
    gain = _printed_gain(evidence, printed)
    note = "margin 2"
    if any(left_out):
        note += f"; characters without a quotient, left out, by seed: {', '.join(map(str, left_out))}"
    return truths, gain - 1, note


def _printed_gain(evidence: Evidence, printed: str) -> float:
    return 1 + evidence.printed["text:fig3", "Proposed vs Baseline", printed, "LR"].value / 100


def f3_aor_gain(evidence: Evidence) -> Found:
    """Average of Ratio of the proposed method divided by the baseline's, by the text's rule (S3).

    The note gives the quotient by both rules for steps without a marginal gradient, and the printed one.
    """
    column = "Average of Ratio increase"
    truths, slack, note = _gain(evidence, "average_of_ratio", column)
    text, notebook = (
        mean_of(_gains(_quotients(evidence, ratio)).values())
        for ratio in ("average_of_ratio", "average_of_ratio_dropped")
    )
    shown = f"by the text's rule {text:.3f}, by the notebook's {notebook:.3f}"
    return truths, slack, f"{shown}, printed {_printed_gain(evidence, column):.2f}; {note}"


def f3_roa_gain(evidence: Evidence) -> Found:
    """Ratio of Average of the proposed method divided by the baseline's."""
    return _gain(evidence, "ratio_of_average", "Ratio of Average increase")


def t2_related(evidence: Evidence) -> Found:
    """At least 8 of the 12 neighbours of A and a are related characters, for the baseline at most 2."""

    def judge(separated, baseline):
        return all_of([at_least(separated, 8), at_least(2, baseline)])

    truths = evidence.of_means(
        judge,
        evidence.metric(SEPARATED, "related_neighbours", "Aa"),
        evidence.metric(BASELINE, "related_neighbours", "Aa"),
    )
    printed = [
        evidence.printed["text:4.6", row, "related characters among top-3 neighbours", ""].value
        for row in ("Proposed+SE (margin=0.6)", "Baseline")
    ]
    shares = [
        mean_of(evidence.metric(method, "related_neighbours", "letters").values()) for method in (SEPARATED, BASELINE)
    ]
    note = f"over all 52 letters of both languages {shares[0]:.0%} are related, for the baseline {shares[1]:.0%}"
    return truths, judge(*printed), note


def f4_tail(evidence: Evidence) -> Found:
    """The proposed method has more tail mass and a lower P(target), and ranks no worse."""
    names = ("tail_mass", "target_probability", "mean_rank")
    values = [evidence.metric(method, name, "HR") for name in names for method in (PROPOSED, BASELINE)]

    def judge(tail_proposed, tail_baseline, target_proposed, target_baseline, rank_proposed, rank_baseline):
        return all_of(
            [
                greater(tail_proposed, tail_baseline),
                greater(target_baseline, target_proposed),
                at_least(rank_baseline, rank_proposed),
            ]
        )

    return evidence.of_means(judge, *values), None, "over the high-resource validation text; margin 2"


def f5_clusters(evidence: Evidence) -> Found:
    """T, C and T+C stand out more than for the baseline, LR-LR less."""
    groups = ("T", "C", "T+C", "off", "LR-LR")
    values = [evidence.metric(method, "mask_cosine", group) for method in (SEPARATED, BASELINE) for group in groups]

    def judge(*cosines):
        separated, baseline = cosines[:5], cosines[5:]
        contrasts = [
            greater(separated[k] - separated[3], baseline[k] - baseline[3])  # relative to the mean off the mask
            for k in range(3)
        ]
        return all_of([*contrasts, greater(baseline[4], separated[4])])

    return evidence.of_means(judge, *values), None, ""


def f6_pca(evidence: Evidence) -> Found:
    """The two versions of a character are nearer to each other in the plane of the first two components.

    Distances are relative to those of all character pairs across languages, since they scale with the embeddings.
    """
    relative, plain = (
        [evidence.metric(method, name) for method in (BASELINE, SEPARATED)]
        for name in ("pca_distance_relative", "pca_distance")
    )
    truths = evidence.of_means(greater, *relative)
    relative, plain = ([mean_of(values.values()) for values in both] for both in (relative, plain))
    note = (
        "mean distance over that of all HR-LR pairs, baseline and Proposed+SE (margin=0.6): "
        f"{relative[0]:.3f} and {relative[1]:.3f}; not divided {plain[0]:.3f} and {plain[1]:.3f}"
    )
    return truths, None, note


def f7_8_min(evidence: Evidence) -> Found:
    """Perplexity curves have their minimum at T_best, which falls with the margin, in both languages."""
    margins = ("threshold_m8", "threshold_m4", "threshold_m2", "threshold_m1", "threshold_m0.5")
    groups = ("HR", "LR")
    best = [evidence.metric(method, "best_temperature", group) for group in groups for method in margins]
    curves = [evidence.array(method, f"best.perplexity.{group}") for group in groups for method in margins]
    grids = [evidence.array(method, "temperatures") for group in groups for method in margins]

    def judge(*values):
        temperatures, curves, grids = (values[k : k + len(best)] for k in range(0, len(values), len(best)))
        gap = max(
            abs(grid[_lowest(curve)] - temperature)
            for temperature, curve, grid in zip(temperatures, curves, grids, strict=True)
        )
        if gap > 0.005:  # half a step of the grid
            return Truth(False, -float(gap))
        steps = len(margins)
        return all_of(
            greater(temperatures[k], temperatures[k + 1]) for k in range(len(temperatures) - 1) if (k + 1) % steps
        )

    printed = {
        (row, group): evidence.printed[table, row, "T_best", group].value
        for group in groups
        for table, rows in (
            ("table1", [f"Proposed (margin={m})" for m in (8, 4, 2, 1)]),
            ("table5", ["Proposed (margin=0.5)"]),
        )
        for row in rows
    }
    ordered = list(printed.values())
    published = all_of(greater(ordered[k], ordered[k + 1]) for k in range(len(ordered) - 1) if (k + 1) % len(margins))
    return evidence.per_seed(judge, *best, *curves, *grids), published, ""


def _lowest(curve: np.ndarray) -> int:
    """The place of a curve's minimum; raises Diverged if it is nowhere finite."""
    if not np.isfinite(curve).any():
        raise Diverged("a perplexity is infinite at every temperature")
    return int(np.nanargmin(curve))


def lemma3(evidence: Evidence) -> Found:
    """Thresholded tokens are outside the top-p set, on random cases."""
    from raretok.metrics.sampler_margins import check_lemma3

    return _property(lambda seed: no_violation(check_lemma3(seed, PROPERTY_CASES)))


def min_p(evidence: Evidence) -> Found:
    """Thresholded tokens are outside the min-p set, if the sign is corrected (S2)."""
    from raretok.metrics.sampler_margins import check_min_p

    def judge(seed):
        printed_sign = check_min_p(seed, PROPERTY_CASES, printed_sign=True)
        return all_of([no_violation(check_min_p(seed, PROPERTY_CASES)), greater(printed_sign, 0)])

    return _property(judge)


def no_violation(count: int) -> Truth:
    """Truth of a property test: no case failed; the slack is minus the number of failed cases."""
    return Truth(count == 0, -float(count))


def _property(judge) -> Found:
    truths = {seed: judge(seed) for seed in PROPERTY_SEEDS}
    return truths, None, f"{PROPERTY_CASES} random cases for each of {len(truths)} seeds; no model is involved"


def low_resource(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The entries of the second language, whose ids follow those of the first; NaN (no gradient) becomes 0."""
    return np.nan_to_num(np.asarray(values, dtype=float)[len(counts) : 2 * len(counts)], nan=0.0, posinf=np.inf)


FIXED = {"stop_jostling.lemma3", "stop_jostling.min_p"}
