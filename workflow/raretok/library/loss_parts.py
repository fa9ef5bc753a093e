"""The parts of a training loss, by the names that their papers give them: what `raretok.OutputLoss` is made of.

Each is one of the pipeline's parts (`raretok/methods`, where its reference stands beside it) with its parameters
described for those who choose them. Wrong values raise ValueError.
"""

from raretok.methods import adversarial, agg, agps, contrastive, cosreg, cross_entropy, freeze, softminus, threshold
from raretok.methods import unigram as _unigram
from raretok.methods import unlikelihood as _unlikelihood

__all__ = [
    "AGG",
    "AGPS",
    "Adversarial",
    "Contrastive",
    "CosReg",
    "CrossEntropy",
    "Freeze",
    "Softminus",
    "Threshold",
    "UnigramDivergence",
    "Unlikelihood",
]


class CrossEntropy(cross_entropy.Loss):
    """Loss: maximum likelihood, -log softmax(z)[y].

    Args:
        label_smoothing: mass given to all V types in equal parts, from 0 (default) to below 1.
    """


class Threshold(threshold.Loss):
    """Loss: cross-entropy over the logits that are at least the target's less a margin (stop_jostling, Algorithm 1).

    Logits below are dropped in training, so that types that are no option at a position get no gradient there. Such
    models are best at a temperature below 1: `raretok.best_temperature`.

    Args:
        margin: in logits, at least 0, the same at every position; or
        alpha: the margin as a share of ||h|| ||w_y||, at least 0 (Appendix B).
        detach_under: keep the logits below, and cut their gradient alone (G.2).
    """


class Softminus(softminus.Loss):
    """Loss: cross-entropy over logits that fall off smoothly towards the threshold (stop_jostling, G.1).

    z' = C log(exp((z - theta) / C) - 1) + theta above theta = z_y - margin, and -inf below.

    Args:
        margin: in logits, above 0.
        c: C, above 0; 1 (default) subtracts exp(theta) from every unnormalised probability.
        detach_threshold: no gradient through theta.
    """


class Contrastive(contrastive.Loss):
    """Loss: the other targets of the micro-batch are the only negatives (contrastive weight tying, Godey et al. 2024).

    It does not combine with gates.
    """


class AGG(agg.Gate):
    """Gate: adaptive gradient gating (agg, Eqs. 5 to 10), from counts of the last K updates.

    A type is rare while its mean count per update is below alpha; then what pushes its row of the output embedding
    away, from positions with other targets, is scaled down by how often it occurred. Its own positions, the hidden
    vectors and frequent types get their full gradient.

    Args:
        alpha: mean count per update below which a type is rare; `raretok.agg_alpha` finds it for a share of the types.
        memory: K, in updates; None (default): those of one epoch, as the counts and the size of an update tell. The
            targets of K updates are kept, 4 bytes each.
        g1, g2: whether positions with a frequent and with another rare target are gated.
        static: counts stay as they are at the end of the first epoch.
        divisor: `elapsed` (default) divides counts by min(update, K), as the authors' code does, `memory` by K, as
            printed.
    """


class AGPS(agps.Gate):
    """Gate: adaptive gradient partial scaling (agps, Eqs. 10 to 15), from counts of the whole training text.

    Rare types that are no target of the update get min(count / mu_1, 1) of the gradient from targets that are not
    rare, and min(count / mu_2, 1) of that from rare ones. Either is refused where it is one number for all rare types.

    Args:
        rare_from: i_r, the rank by falling count from which types are rare, at least 1.
        mu_1, mu_2: counts, above that of the rarest type that occurs.
        reading: `eq15` (default) as that equation, `alg1` as Algorithm 1 computes, which differs.
        touches: for scaled runs of the pipeline, which derive mu from it; of no effect here.
    """


class Freeze(freeze.Gate):
    """Gate: parts of the gradient of rare rows are left out altogether (agg, sections 3.2 and 3.3).

    Args:
        part: `b` leaves out what comes from positions with a frequent target, `c` from positions with another rare
            target, `bc` both. (`all`, whole rows, is for the pipeline's own optimiser.)
        share: the rarest share of the types is rare, above 0 and below 1 (default 0.2). Types that never occur are
            always rare; or
        rare_from: the rank by falling count from which types are rare.
        share_of: `occurring` (default), of the types that occur in training, special ones left out, or `all`, of V.
        until: number of updates after which nothing is left out any more; None: never.
    """


class CosReg(cosreg.Penalty):
    """Penalty: the mean cosine of all pairs of rows of the output embedding (Gao et al. 2019).

    Args:
        gamma: weight of the penalty (default 1).
    """


class Unlikelihood(_unlikelihood.Penalty):
    """Penalty: -alpha log(1 - p(c)), summed over the tokens c of the sequence so far (Welleck et al. 2020).

    It needs `inputs` at every call.

    Args:
        alpha: weight of the penalty, at least 0 (default 1).
    """


class UnigramDivergence(_unigram.Penalty):
    """Penalty: -strength KL(unigram || p), which drives a model away from the unigram distribution (natural_bias, A.4).

    Args:
        strength: weight of the penalty, at least 0.
        until: number of updates after which there is none any more; None: never.
        maximum: in nats, above 0 (default 10): the divergence is cut there, since it is unbounded.
    """


class Adversarial(adversarial.Perturbation):
    """Perturbation: the target's logit less alpha ||w_y|| ||h||, the worst case nearby (Wang, Gong, Liu 2019).

    Args:
        alpha: radius of the perturbation as a share of the embedding's norm, at least 0.
    """
