"""Metrics of language models with a focus on rare tokens, for tensors or arrays of any model.

For predictions: `token_nll` from hidden vectors and `perplexity` (by frequency group with `raretok.FrequencyGroups`);
metrics of target ranks; the best temperature; the mass of the unreliable tail. For embedding matrices: isotropy, mean
cosine, agreement with word alignment.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from raretok.checks import check_tensors
from raretok.frequency import to_ids, to_numpy
from raretok.methods.counting import checked_counts
from raretok.metrics import align_similarity as _alignment
from raretok.metrics import isotropy as _isotropy
from raretok.metrics import mean_similarity, ranking
from raretok.metrics import perplexity as _perplexity
from raretok.metrics import tail_mass as tail
from raretok.metrics.co_occurrences import CoOccurrences
from raretok.metrics.sampler_margins import min_p_margin, nucleus_margin

__all__ = [
    "accuracy",
    "align_similarity",
    "best_temperature",
    "isotropy",
    "mean_cosine",
    "mean_reciprocal_rank",
    "min_p_margin",
    "nucleus_margin",
    "perplexity",
    "recall",
    "tail_mass",
    "target_ranks",
    "token_nll",
]

# Number of logits in memory at a time.
CELLS = 2**24


@torch.no_grad()
def token_nll(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    logit_scale: float = 1.0,
    soft_cap: float | None = None,
) -> torch.Tensor:
    """-ln softmax(h W^T + b)[y] of each position, in nats; computed in chunks, so that N x V is never allocated.

    Args:
        hidden: input of the output layer, B x T x d or N x d.
        weight: the output embedding, V x d.
        targets: ids, B x T or N; leave out positions without a target.
        bias: of the output layer, V, or None.
        logit_scale, soft_cap: of the model, as in `OutputLoss`; `patch` finds them.

    Returns float64, shaped like targets. Raises ValueError for wrong types and shapes, and for targets outside the
    vocabulary.
    """
    check_tensors(hidden=hidden, weight=weight, targets=targets, bias=weight if bias is None else bias)
    if hidden.dim() < 2 or hidden.shape[:-1] != targets.shape:
        raise ValueError(
            f"hidden has shape {tuple(hidden.shape)} and targets {tuple(targets.shape)}; each vector needs one target"
        )
    types, width = len(weight), hidden.shape[-1]
    if weight.shape != (types, width) or (bias is not None and bias.shape != (types,)):
        shown = "" if bias is None else f" and bias {tuple(bias.shape)}"
        raise ValueError(f"weight has shape {tuple(weight.shape)}{shown}; they must be V x {width} and V")
    flat, goals = hidden.flatten(0, -2), _checked_ids(targets, types).flatten()
    bias = None if bias is None else bias.to(weight.dtype)
    rows = max(1, CELLS // types)
    parts = []
    for h, y in zip(flat.split(rows), goals.split(rows), strict=True):
        logits = torch.nn.functional.linear(h.to(weight.dtype), weight, bias).double() * logit_scale
        logits = logits if soft_cap is None else soft_cap * (logits / soft_cap).tanh()
        parts.append(_perplexity.negative_log_likelihood(logits, y))
    return torch.cat(parts).view(targets.shape)


def perplexity(nll) -> float:
    """exp of the mean; inf on overflow, NaN without values or if one is NaN.

    Args:
        nll: negative log likelihoods in nats, any shape.
    """
    return _perplexity.perplexity(to_numpy(nll).astype(np.float64).ravel())


class BestTemperature(NamedTuple):
    """The result of `best_temperature`."""

    perplexity: float
    temperature: float


def best_temperature(logits: torch.Tensor | Iterable[torch.Tensor], targets) -> BestTemperature:
    """The lowest perplexity over the temperatures 0.01, 0.02, ..., 2.00, and that temperature (stop_jostling, 4.3).

    Thresholded models are badly calibrated at temperature 1: fit the temperature on a validation split and use it for
    the test split.

    Args:
        logits: N x V, or an iterable of such parts, for texts whose logits do not fit into memory.
        targets: ids, N, or those of each part.

    Returns `perplexity` and `temperature`, in this order; both are NaN without targets. Raises ValueError for wrong
    shapes and for targets outside the vocabulary.
    """
    if isinstance(logits, torch.Tensor | np.ndarray):
        logits, targets = [logits], [targets]
    total, number = np.zeros(_perplexity.GRID), 0
    for part, goals in zip(logits, targets, strict=True):
        part, goals = _positions(part, goals)
        total += _perplexity.sweep(part, goals)
        number += len(goals)
    if not number:
        return BestTemperature(np.nan, np.nan)
    return BestTemperature(*_perplexity.best_temperature(_perplexity.from_mean(total / number)))


def target_ranks(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Rank of each target among all types, N; 1 is best. Ties go to the lower id, NaN counts against the target.

    Args:
        logits: N x V.
        targets: ids, N.

    Raises ValueError for wrong shapes and for targets outside the vocabulary.
    """
    return ranking.target_ranks(*_positions(logits, targets))


def accuracy(ranks) -> float:
    """Share of positions whose target ranks first; NaN without positions.

    Args:
        ranks: ranks of the targets, N (`target_ranks`).

    Raises ValueError for anything but whole numbers from 1 on.
    """
    return ranking.accuracy(_checked_ranks(ranks))


def recall(ranks, k: int) -> float:
    """Share of positions whose target is among the k most probable types; NaN without positions.

    Args:
        ranks: ranks of the targets, N (`target_ranks`).
        k: number of types, at least 1.

    Raises ValueError for a smaller k, and for ranks other than whole numbers from 1 on.
    """
    if not k >= 1:
        raise ValueError(f"k is {k}; it must be at least 1")
    return ranking.recall(_checked_ranks(ranks), k)


def mean_reciprocal_rank(ranks) -> float:
    """Mean of 1 / rank; NaN without positions.

    Args:
        ranks: ranks of the targets, N (`target_ranks`).

    Raises ValueError for anything but whole numbers from 1 on.
    """
    return ranking.mean_reciprocal_rank(_checked_ranks(ranks))


def tail_mass(logits: torch.Tensor, likeliest: int = tail.LIKELIEST) -> torch.Tensor:
    """Probability outside the most probable types at each position, float64, N (stop_jostling, 4.4).

    Args:
        logits: N x V.
        likeliest: number of most probable types that do not belong to the tail, at least 0.

    Raises ValueError for another shape and a negative number.
    """
    logits = torch.as_tensor(logits)
    if logits.dim() != 2:
        raise ValueError(f"logits have shape {tuple(logits.shape)}; they must be N x V")
    if likeliest < 0:
        raise ValueError(f"likeliest is {likeliest}; it must be at least 0")
    return tail.tail_mass(logits, likeliest)


def isotropy(embeddings) -> float:
    """I(W) = min_a Z(a) / max_a Z(a), Z(a) = sum_i exp <w_i, a>, a over the unit eigenvectors of W^T W; in [0, 1].

    1 means the same in every direction (agg, Eq. 3, after Mu and Viswanath 2018). NaN if W is not finite. Both a and -a
    count. Code that uses only the sign that a library returns gives higher numbers, which differ between libraries.

    Args:
        embeddings: W, N x d, or the rows of a group of types (`raretok.FrequencyGroups.members`).
    """
    return _isotropy.isotropy(to_numpy(embeddings))


def mean_cosine(embeddings) -> float:
    """(1 / N^2) sum over i and j != i of cos(w_i, w_j) (agps, Eq. 9); near 1 if embeddings lie in a narrow cone.

    Args:
        embeddings: W, N x d.
    """
    return mean_similarity.mean_cosine(to_numpy(embeddings))


def align_similarity(embeddings, first, second, counts, tau: float = _alignment.TAU, device: str = "cpu") -> np.ndarray:
    """AlignSim of each type: whether types linked by word alignment have similar embeddings (agps, Eqs. 16 and 17).

    Args:
        embeddings: W for a joint vocabulary, N x d.
        first, second: ids of linked source and target types, P each; repeated pairs add up.
        counts: how often a word of type `first` is linked with one of type `second`, P whole numbers.
        tau: factor of the cosines in the softmax, above 0.
        device: device of the matrix products.

    Returns N numbers, float64, in [0, 1]; NaN for types without a link. Raises ValueError for ids that are no row of W,
    counts that are not whole numbers, different lengths, no links at all, and another tau.
    """
    if not 0 < tau < np.inf:
        raise ValueError(f"tau is {tau}; it must be above 0 and finite")
    if not len(counts):
        raise ValueError("there are no links; give at least one")
    matrix, first, second, counts = to_numpy(embeddings), to_ids(first), to_ids(second), checked_counts(counts)
    if not len(first) == len(second) == len(counts):
        raise ValueError(f"first, second and counts have {len(first)}, {len(second)} and {len(counts)} numbers")
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second).astype(np.int64)
    if low.min() < 0 or high.max() >= len(matrix):
        raise ValueError(
            f"an id is {low.min() if low.min() < 0 else high.max()}, but embeddings has {len(matrix)} rows"
        )
    keys, places = np.unique(low * len(matrix) + high, return_inverse=True)
    sums = np.bincount(places, weights=counts, minlength=len(keys)).astype(np.int64)
    low, high = keys // len(matrix), keys % len(matrix)
    # Links count in both directions, also those of a type to itself.
    gold = CoOccurrences(len(matrix), low, high, sums * np.where(low == high, 2, 1))
    return _alignment.align_similarity(matrix, gold, tau, device)


def _checked_ranks(ranks) -> np.ndarray:
    """Ranks as an array; raises ValueError for others than whole numbers from 1 on, such as logits."""
    ranks = to_numpy(ranks)
    if ranks.size and (ranks.dtype.kind not in "iu" or ranks.min() < 1):
        raise ValueError("ranks must be whole numbers from 1 on, as target_ranks returns them")
    return ranks


def _positions(logits, targets) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, N x V, and targets, N, as tensors on one device; checked, because other shapes would broadcast."""
    logits = torch.as_tensor(logits)
    targets = torch.as_tensor(targets, device=logits.device)
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and targets {tuple(targets.shape)}; they must be N x V and N"
        )
    return logits, _checked_ids(targets, logits.shape[1])


def _checked_ids(targets: torch.Tensor, types: int) -> torch.Tensor:
    """Targets as 64-bit integers; raises ValueError for other numbers and for ids outside the vocabulary."""
    if targets.numel() and (targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool):
        raise ValueError(f"targets are of type {targets.dtype}; give token ids, whole numbers")
    targets = targets.to(torch.int64)
    wrong = (targets < 0) | (targets >= types)
    if wrong.any():
        raise ValueError(
            f"a target is {targets[wrong][0]}, but there are {types} types; leave out positions without a target"
        )
    return targets
