"""Claims of agg about figures, one function each; see `reporting/claims/evidence.py` for their return values.

Thresholds marked as ours are tolerances that the paper does not state.
"""

from functools import partial

import numpy as np

from rarepapers.reporting.claims.evidence import Evidence, Found
from rarepapers.reporting.claims.figure_claims import LEFT, at, beside_cited, rare_first, rises, until
from rarepapers.reporting.claims.jackknife import mean_of
from rarepapers.reporting.claims.other_language import of_other_language
from rarepapers.reporting.claims.table_claims import common_seeds
from rarepapers.reporting.claims.truths import Missing, Truth, Undefined, all_of, at_least, greater
from rarepapers.reporting.statistics.over_seeds import mean_text

# Figure 5: printed alpha by method; a scaled run derives its own from it.
ALPHAS = {"agg_a0.01": 0.01, "agg_a0.02": 0.02, "agg": 0.03, "agg_a0.04": 0.04, "agg_a0.05": 0.05}
SELECTED = "agg"
# Figure 2: the printed step until which a method freezes rare rows.
FREEZE_UNTIL = {"freeze_until_7k": 7000, "freeze_until_18k": 18000, "freeze_until_29k": 29000}
WINDOW = 2000  # steps after the freeze, at the printed length of training (deviations, agg.f2)
DROP = 0.7  # ours: upper bound of I(W_rare) by then, as a share of its value at the end of the freeze
STARTS = 0.95  # ours: a drop starts below this share of the value at the end of the freeze
FREQUENT, RARE = 0, 2  # columns of the groups
NEAR_PERFECT, CLEARLY = 0.95, 0.1  # ours: accuracy for MLE; by how much AGG must be lower
INITIAL = 5  # figure 4: the first fifth of the steps (200 of 1,000) is compared with the last


def f1_rare_first(evidence: Evidence) -> Found:
    """The rare group is the first of the three to leave the bulk in the SVD projection."""
    evidence = evidence.of("figure1")
    truths = evidence.per_seed(rare_first, evidence.array("mle", "snapshots.svd"), evidence.array("mle", "bounds"))
    return truths, None, f"left the bulk: centroid {LEFT:g} x the global spread from the centre"


def f2_rare_I_drop(evidence: Evidence) -> Found:
    """I(W_rare) falls steeply once rare rows are trained."""

    def judge(steps, isotropy, freeze, scale):
        later = at(steps, isotropy[:, RARE], freeze + WINDOW * scale, after=True)
        return greater(DROP * at(steps, isotropy[:, RARE], freeze), later)

    return _along_freezes(evidence, "snapshots.isotropy_sign_free", judge), None, f"{WINDOW:,} steps, scaled"


def f2_freq_I_follows(evidence: Evidence) -> Found:
    """I(W_freq) also falls after the freeze, and not before I(W_rare)."""

    def judge(steps, isotropy, freeze, scale):
        starts = [_start_of_drop(steps, isotropy[:, group], freeze) for group in (FREQUENT, RARE)]
        if starts[0] < starts[1]:
            return Truth(False, (starts[0] - starts[1]) / len(steps))
        return greater(at(steps, isotropy[:, FREQUENT], freeze), float(isotropy[-1, FREQUENT]))

    return _along_freezes(evidence, "snapshots.isotropy_sign_free", judge), None, ""


def f2_sim_rises(evidence: Evidence) -> Found:
    """The mean cosine of rare and frequent embeddings is higher at the end than when the freeze ends."""

    def judge(steps, cosine, freeze, scale):
        return greater(float(cosine[-1]), at(steps, cosine, freeze))

    return _along_freezes(evidence, "snapshots.cosine_rare_frequent", judge), None, ""


def _along_freezes(evidence: Evidence, key: str, judge) -> dict[int, Truth]:
    """`judge(steps, values, freeze, scale)` for the three methods of figure 2, by seed; scale: our steps / printed."""
    evidence = evidence.of("figure2")
    freezes = {method: until(evidence, method) for method in FREEZE_UNTIL}
    names = ("snapshots.steps", key)
    series = [evidence.array(method, name) for method in FREEZE_UNTIL for name in names]

    def judge_seed(*values):
        pairs = zip(freezes.items(), values[::2], values[1::2], strict=True)
        return all_of(
            judge(steps, found, freeze, freeze / FREEZE_UNTIL[method]) for (method, freeze), steps, found in pairs
        )

    return evidence.per_seed(judge_seed, *series)


def _start_of_drop(steps: np.ndarray, values: np.ndarray, freeze: int) -> int:
    """Index of the first snapshot after the freeze at which the drop has started; their number if it never does."""
    fallen = (steps > freeze) & (values < STARTS * at(steps, values, freeze))
    return int(np.argmax(fallen)) if fallen.any() else len(steps)


def f3_disjoint(evidence: Evidence) -> Found:
    """Rare and frequent tokens are separable in the SVD plane for MLE, clearly less for AGG."""
    evidence = evidence.of("figure3")
    mle, agg = (evidence.metric(method, "separability", "svd") for method in ("mle", "agg"))

    def judge(baseline, ours):
        return all_of([at_least(baseline, NEAR_PERFECT), at_least(baseline - ours, CLEARLY)])

    note = f"balanced accuracy: near perfect is at least {NEAR_PERFECT}, clearly less is at least {CLEARLY} less (ours)"
    return evidence.of_means(judge, mle, agg), None, note


def f3_singular(evidence: Evidence) -> Found:
    """The singular values of AGG decay more slowly: their sum divided by the largest is greater."""
    evidence = evidence.of("figure3")
    agg, mle = (evidence.metric(method, "singular_sum", "total") for method in ("agg", "mle"))
    return evidence.of_means(greater, agg, mle), None, ""


def f4_fluctuates(evidence: Evidence) -> Found:
    """The size of the rare group varies more in the first steps than in the last, in both directions."""
    evidence = evidence.of("figure4")
    alpha = evidence.training("agg")["derived"]["alpha"]

    def judge(sizes):
        sizes = np.asarray(sizes, dtype=float)
        part = len(sizes) // INITIAL
        # A type seen once turns rare 1/alpha steps later; before, none can.
        if part * alpha < 1:
            raise Undefined(
                f"a fifth of the {len(sizes)} observed steps is shorter than 1/alpha, {1 / alpha:.0f} steps"
            )
        first, last = _variation(sizes[:part]), _variation(sizes[-part:])
        moves = np.diff(sizes)
        moves = moves[moves != 0]
        against = min((moves > 0).mean(), (moves < 0).mean()) if len(moves) else 0.0
        return all_of([greater(first, last), greater(float(against), 0)])

    truths = evidence.per_seed(judge, evidence.array("agg", "rare_types.sizes"))
    return truths, None, ""


def _variation(values: np.ndarray) -> float:
    return float(values.std() / values.mean()) if values.mean() else 0.0


def f5_rare_joint(evidence: Evidence) -> Found:
    """Over alpha, rare Uniq and rare I(W) rise together up to some alpha*, then fall together."""
    evidence = evidence.of("figure5")
    curves = [evidence.metric(method, name, "rare") for name in ("uniq", "isotropy_sign_free") for method in ALPHAS]
    seeds = common_seeds(curves)
    means = np.array([[mean_of(curve, seeds) for curve in curves[k : k + len(ALPHAS)]] for k in (0, len(ALPHAS))])
    # Curves are divided by their means before they are added. An alpha at an end of the grid lacks a rise or a fall.
    inner = (means / means.mean(1, keepdims=True)).sum(0)[1:-1]
    peak = 1 + int(inner.argmax())

    def judge(*values):
        pair = values[: len(ALPHAS)], values[len(ALPHAS) :]
        return all_of(greater(curve[peak], curve[end]) for curve in pair for end in (0, -1))

    note = f"alpha* is {list(ALPHAS.values())[peak]}, where the sum of both mean curves is highest (ours)"
    return evidence.of_means(judge, *curves), None, note


def f5_nonrare_tradeoff(evidence: Evidence) -> Found:
    """Beyond the alpha with the highest rare Uniq, total Uniq and PPL rise and total I(W) falls.

    The panels show all tokens, the text discusses non-rare ones (A23): the verdict uses all, the note gives the others.
    """
    evidence = evidence.of("figure5")
    truths = _tradeoff(evidence, "total")
    note = (
        "alpha* has the highest rare Uniq; smallest Spearman correlation of alpha, from alpha* on, with total Uniq, "
        "I(W) (reversed) and PPL; 0 if alpha* is the largest alpha"
    )
    try:
        others = _tradeoff(evidence, "nonrare")
    except Missing:
        return truths, None, note
    held = sum(truth.holds for truth in others.values())
    return truths, None, f"{note}; for non-rare tokens it holds in {held} of {len(others)} seeds"


def _tradeoff(evidence: Evidence, group: str) -> dict[int, Truth]:
    asked = (("uniq", "rare"), ("uniq", group), ("isotropy_sign_free", group), ("perplexity", group))
    curves = [evidence.metric(method, *name) for name in asked for method in ALPHAS]
    none_beyond = []

    def judge(*values):
        rare, uniq, isotropy, perplexity = np.array(values).reshape(len(asked), len(ALPHAS))
        best = int(rare.argmax())
        if best == len(ALPHAS) - 1:
            none_beyond.append(best)
            return Truth(False, 0.0)
        alphas = list(ALPHAS.values())[best:]
        signs = ((uniq, 1), (isotropy, -1), (perplexity, 1))
        return all_of(rises(alphas, sign * curve[best:]) for curve, sign in signs)

    truths = evidence.per_seed(judge, *curves)
    if len(none_beyond) == len(truths):
        raise Missing("rare Uniq is highest at the largest alpha: no alpha beyond it was run")
    return truths


def f5_alpha_choice(evidence: Evidence) -> Found:
    """Of the five alphas, 0.03 has the lowest perplexity on the validation text."""
    evidence = evidence.of("figure5")
    others = [method for method in ALPHAS if method != SELECTED]
    curves = [evidence.metric(method, "perplexity_plain", "total", "valid@best") for method in [SELECTED, *others]]

    def judge(selected, *rest):
        return at_least(min(rest), selected)

    note = "by total perplexity of the validation text (ours: the paper does not name its criterion)"
    return evidence.of_means(judge, *curves), None, note


def t13_frequency_bias(evidence: Evidence) -> Found:
    """With AGG fewer of the nearest neighbours of rare tokens are rare."""
    evidence = evidence.of("table13")
    mle, agg = (evidence.metric(method, "rare_neighbours", "rare") for method in ("mle", "agg"))
    return evidence.of_means(greater, mle, agg), None, ""


def mean_of_prefixes(evidence: Evidence) -> str:
    """Note on t15.uniq: distinct tokens of a continuation, mean over all test prefixes."""
    evidence = evidence.of("table15")
    methods = evidence.definition.methods
    means = {methods[name].label: evidence.metric(name, "generated_uniq", "mean") for name in ("agg", "mle")}
    texts = [f"{label} {mean_text(values, '.1f')}" for label, values in means.items()]
    return f"mean over all test prefixes: {', '.join(texts)}"


def t14_cross_lingual(evidence: Evidence) -> Found:
    """With AGG every query has a neighbour in the other language, with MLE none has."""
    evidence = evidence.of("table14")
    mle, agg = (of_other_language(evidence, method) for method in ("transformer", "agg_translation"))

    def judge(baseline, ours):
        return all_of([at_least(float(ours.min()), 1), at_least(0, float(baseline.max()))])

    note = "a type belongs to the language whose side of the training text has the larger share of it"
    return evidence.per_seed(judge, mle, agg), None, note


def abs_all_tasks(evidence: Evidence) -> Found:
    """Uniq, I(W), word similarity and BLEU are all better with AGG."""
    claims = TOGETHER["agg.abs.all_tasks"]
    return evidence.tables(*claims), None, f"together: {', '.join(name.removeprefix('agg.') for name in claims)}"


# Claims that are conjunctions of other claims.
TOGETHER = {"agg.abs.all_tasks": ("agg.t3.uniq_total", "agg.t3.I_W", "agg.t6.all", "agg.t7.best")}
# Functions that return a note on the verdict of a claim about tables.
BESIDE = {"agg.t15.uniq": mean_of_prefixes} | {
    f"agg.t7.gain_{size}": partial(beside_cited, "table7", size, "agg_translation", "transformer")
    for size in ("base", "big")
}
