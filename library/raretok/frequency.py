"""Target counts, and what is derived from them: frequency groups, AGG's alpha, bias initialisation."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from raretok.frequency_groups import bounds
from raretok.methods.counting import SHARE_OF, bound_of_share, checked_counts, checked_special
from raretok.methods.unigram import log_unigram as _log_unigram
from raretok.metrics.group_statistics import Groups, distinct, group_perplexities

__all__ = ["FrequencyGroups", "agg_alpha", "count_targets", "log_unigram", "start_bias"]

# Types, frequent to rare (agg, section 3).
SHARES = (0.3, 0.5, 0.2)
NAMES = ("frequent", "medium", "rare")


def count_targets(texts: Iterable, types: int, ignore_index: int = -100) -> np.ndarray:
    """How often each type occurs in texts.

    Args:
        texts: token ids, an iterable of tensors, arrays or lists of any shape.
        types: V, the number of rows of the output embedding.
        ignore_index: id that is not counted.

    Returns V integers, int64. Raises ValueError for ids that are not whole numbers from 0 to V - 1.
    """
    counts = np.zeros(types, dtype=np.int64)
    for text in texts:
        ids = to_ids(text).ravel()
        ids = ids[ids != ignore_index].astype(np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < types:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(
                f"a text has the id {wrong}, but types is {types}; it must be the number of rows of the embedding"
            )
        counts += np.bincount(ids, minlength=types)
    return counts


def agg_alpha(
    counts: Sequence[int] | np.ndarray,
    targets_per_step: float,
    share: float = 0.2,
    special: Iterable[int] = (),
    share_of: str = "occurring",
) -> float:
    """The alpha at which AGG treats about a given share of the types as rare, for a corpus with these counts.

    alpha is a mean count per step, so a published value only fits its own batch size and corpus; agg's 0.03 makes a
    share of 0.2 rare. Types that never occur are always rare.

    Args:
        counts: how often each type is a target in the training text, V.
        targets_per_step: number of targets per step of the optimiser, over all micro-batches and processes.
        share: share of the types, above 0 and below 1. Many types have equal counts, so the nearest possible share is
            used.
        special: ids that are never rare; the share does not include them.
        share_of: `occurring` (default): share of the types that occur in training, as in the paper; `all`: share of all
            V types, of which those that never occur are the rarest.

    Raises ValueError for an invalid argument, and if all types that occur have the same count.
    """
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; it must be above 0 and below 1")
    if not targets_per_step > 0:
        raise ValueError(f"targets_per_step is {targets_per_step}; it must be above 0")
    _check_share_of(share_of)
    counts = checked_counts(counts)
    plain = np.delete(counts, list(checked_special(special, len(counts))))
    occurring = plain[plain > 0]
    if len(np.unique(occurring)) < 2:
        raise ValueError("counts must have at least two different values, or no type is rarer than another")
    unused = len(plain) - len(occurring) if share_of == "all" else 0
    bound = bound_of_share(occurring, share * (len(occurring) + unused) - unused)
    return float(bound * targets_per_step / int(counts.sum()))


class FrequencyGroups:
    """The types of a vocabulary in three groups by training frequency: frequent, medium, rare.

    Ids can be in any order; of types with equal counts, the lower id counts as more frequent. Types that never occur in
    training (the papers' vocabularies have none) belong to no group and to no share; as targets of another text they
    count as rare.

    Args:
        counts: how often each type occurs in the training text, V whole numbers.
        shares: the groups' shares of the types (default: 0.3, 0.5, 0.2, as in agg), or
        masses: the groups' shares of the training tokens; the first groups are the smallest that reach their share.
        share_of: `occurring` (default): shares of the types that occur in training; `all`: shares of all V types, of
            which those that never occur are the rarest.

    Raises ValueError if both `shares` and `masses` are given, if they are not three numbers above 0 with the sum 1, or
    if a group would be empty. Methods raise it for ids outside the vocabulary, such as -100 for padding: leave out
    these positions.

    Results are dictionaries with the keys `frequent`, `medium`, `rare` and, where it makes sense, `total`.
    """

    def __init__(
        self,
        counts: Sequence[int] | np.ndarray,
        *,
        shares: Sequence[float] | None = None,
        masses: Sequence[float] | None = None,
        share_of: str = "occurring",
    ):
        if shares is not None and masses is not None:
            raise ValueError("give shares or masses, not both")
        _check_share_of(share_of)
        counts = checked_counts(counts)
        self.order = np.argsort(-counts, kind="stable")
        types = len(counts) if share_of == "all" else int((counts > 0).sum())
        kind, parts = ("masses", masses) if masses is not None else ("shares", SHARES if shares is None else shares)
        parts = [float(part) for part in parts]
        if len(parts) != len(NAMES):
            raise ValueError(f"{kind} has {len(parts)} numbers; give {len(NAMES)}, for {', '.join(NAMES)}")
        if not (min(parts) > 0 and abs(sum(parts) - 1) < 1e-6):
            raise ValueError(f"{kind} is {parts}; the numbers must be above 0 and their sum 1")
        try:
            limits = bounds({kind: parts}, counts[self.order[:types]])
        except ValueError:
            raise ValueError(
                f"{kind} is {parts}, which leaves a group of the {types} types empty; give other {kind}"
            ) from None
        # Rank of each id by decreasing count; groups are ranges of ranks.
        self.ranks = np.empty(len(counts), dtype=np.int64)
        self.ranks[self.order] = np.arange(len(counts))
        self.groups = Groups(NAMES, limits, types)

    def of(self, ids) -> np.ndarray:
        """The group of each id, 0 (frequent), 1 or 2 (rare).

        Args:
            ids: token ids of any shape, which is also that of the result.
        """
        return self.groups.of(self._ranks_of(ids))

    def members(self) -> dict[str, np.ndarray]:
        """The ids of each group's types, most frequent first; they index the rows of an embedding."""
        return {name: self.order[part] for name, part in zip(NAMES, self.groups.parts, strict=True)}

    def perplexity(self, nll, targets) -> dict[str, float]:
        """Perplexity of the targets of each group, and of all (agg, section 3); NaN for a group without targets.

        Args:
            nll: negative log likelihoods in nats, any shape (`raretok.token_nll`).
            targets: target ids, of the same shape; ValueError if it is not.
        """
        values, _ = group_perplexities(*self._with_ranks(nll, targets), self.groups)
        return _named(values)

    def mean(self, values, targets) -> dict[str, float]:
        """The mean of values over the targets of each group, and over all; NaN for a group without targets.

        Args:
            values: one number per position, any shape, such as 1 / rank.
            targets: target ids, of the same shape; ValueError if it is not.
        """
        values, ranks = self._with_ranks(values, targets)
        of = self.groups.of(ranks)
        numbers = np.bincount(of, minlength=3)
        sums = np.bincount(of, weights=values, minlength=3)
        with np.errstate(invalid="ignore"):
            return _named(np.append(sums, sums.sum()) / np.append(numbers, len(values)))

    def distinct(self, ids) -> dict[str, int]:
        """Uniq: the number of distinct types of each group, and of all (agg, section 5.1).

        Args:
            ids: token ids of any shape: the most probable type of every position, or a generated text.
        """
        return _named(distinct(self._ranks_of(ids).ravel(), self.groups))

    def _with_ranks(self, values, targets) -> tuple[np.ndarray, np.ndarray]:
        """Values and the ranks of their targets, N; checked, because transposed ones are as many."""
        values, ranks = to_numpy(values).astype(np.float64), self._ranks_of(targets)
        if values.shape != ranks.shape:
            raise ValueError(f"there are values of shape {values.shape} for targets of shape {ranks.shape}")
        return values.ravel(), ranks.ravel()

    def _ranks_of(self, ids) -> np.ndarray:
        """The rank of each id, in the shape of ids; checked, because numpy allows negative indices."""
        ids = to_ids(ids)
        wrong = (ids < 0) | (ids >= len(self.ranks))
        if wrong.any():
            raise ValueError(
                f"an id is {ids[wrong][0]}, but there are {len(self.ranks)} types; leave out positions without a target"
            )
        return self.ranks[ids.astype(np.int64)]


def log_unigram(counts: Sequence[int] | np.ndarray) -> torch.Tensor:
    """Log relative frequencies of types, V, float64 (natural_bias, section 4.1).

    One is added to every count, because types that never occur would have no finite logarithm.

    Args:
        counts: how often each type is a target in the training text, V whole numbers.

    Raises ValueError for other counts.
    """
    return _log_unigram(checked_counts(counts))


def start_bias(head: torch.nn.Linear, counts: Sequence[int] | np.ndarray) -> None:
    """Initialise the bias of an output layer with the log-unigram distribution (natural_bias, section 4.1), in place.

    Call this before creating the optimiser, because a layer without a bias gets one as a new parameter.

    Args:
        head: the layer from hidden vectors (d) to logits (V), such as `model.get_output_embeddings()`.
        counts: how often each type is a target in the training text, V.

    Raises ValueError if the layer is no `Linear`, or does not have one output per count.
    """
    if not isinstance(head, torch.nn.Linear):
        raise ValueError(f"head is of type {type(head).__name__}; give the torch.nn.Linear that computes the logits")
    values = log_unigram(counts)
    if len(values) != len(head.weight):
        raise ValueError(f"counts has {len(values)} types, but the layer has {len(head.weight)} outputs")
    values = values.to(head.weight)
    if head.bias is None:
        head.bias = torch.nn.Parameter(values)
    else:
        with torch.no_grad():
            head.bias.copy_(values)


def _check_share_of(share_of: str) -> None:
    if share_of not in SHARE_OF:
        raise ValueError(f"share_of is {share_of!r}; it must be one of {', '.join(SHARE_OF)}")


def to_numpy(values) -> np.ndarray:
    """A tensor (on any device, with or without gradient, also bfloat16), array or list as an array."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def to_ids(values) -> np.ndarray:
    """Ids as an array of integers; raises ValueError for other types."""
    ids = to_numpy(values)
    if ids.size and ids.dtype.kind not in "iu":
        raise ValueError(f"ids are of type {ids.dtype}; give token ids, whole numbers")
    # An empty list has no integers.
    return ids if ids.size else ids.astype(np.int64)


def _named(values) -> dict:
    return dict(zip((*NAMES, "total"), values.tolist(), strict=True))
