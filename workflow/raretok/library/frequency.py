"""How often types are targets of a training text, and what follows from it: groups, bounds, the start of a bias."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from raretok.core.errors import UserError
from raretok.data.text.frequency_groups import bounds
from raretok.methods.counting import SHARE_OF, bound_of_share, checked_special
from raretok.methods.unigram import log_unigram as _log_unigram
from raretok.metrics.group_statistics import Groups, distinct, group_perplexities

__all__ = ["FrequencyGroups", "agg_alpha", "count_targets", "log_unigram", "start_bias"]

# Types, frequent to rare (agg, section 3).
SHARES = (0.3, 0.5, 0.2)
NAMES = ("frequent", "medium", "rare")


def count_targets(texts: Iterable, types: int, ignore_index: int = -100) -> np.ndarray:
    """How often each type occurs in texts.

    Args:
        texts: an iterable of token ids: tensors, arrays or lists, of any shape each.
        types: V, the number of rows of the output embedding.
        ignore_index: ids of this value are left out.

    Returns V whole numbers, int64. Raises ValueError for another id that is below 0 or not below V, or no whole number.
    """
    counts = np.zeros(types, dtype=np.int64)
    for text in texts:
        ids = to_numpy(text).ravel()
        if len(ids) and ids.dtype.kind not in "iu":
            raise ValueError(f"a text is of type {ids.dtype}; give token ids, whole numbers")
        ids = ids[ids != ignore_index].astype(np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < types:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(f"a text has the id {wrong}, but there are {types} types; give the rows of the embedding")
        counts += np.bincount(ids, minlength=types)
    return counts


def agg_alpha(
    counts: Sequence[int] | np.ndarray,
    targets_per_step: float,
    share: float = 0.2,
    special: Iterable[int] = (),
    share_of: str = "occurring",
) -> float:
    """The alpha with which AGG holds about a share of the types rare, over training text of these counts.

    alpha is a mean count per step, so a paper's value is for its own batch and corpus; in agg 0.03 goes with 0.2.
    Types that never occur are rare whatever alpha is.

    Args:
        counts: how often each type is a target in the training text, V.
        targets_per_step: targets of a step of the optimiser, over all micro-batches and processes.
        share: of the types, above 0 and below 1. Many types may have one count: what is nearest is taken.
        special: ids that are never rare, and are left out of the share.
        share_of: `occurring` (default), the types that occur in training, as in the paper, or `all`, V, where types
            that never occur are the rarest.

    Returns a float. Raises ValueError for a share that is none, a special id that is none, and where fewer than two
    different counts occur.
    """
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; it must be above 0 and below 1")
    _check_share_of(share_of)
    counts = to_numpy(counts).astype(np.int64)
    plain = np.delete(counts, list(checked_special(special, len(counts))))
    occurring = plain[plain > 0]
    if len(np.unique(occurring)) < 2:
        raise ValueError("counts must have two different values at least, or no type is rarer than another")
    unused = len(plain) - len(occurring) if share_of == "all" else 0
    bound = bound_of_share(occurring, share * (len(occurring) + unused) - unused)
    return bound * targets_per_step / int(counts.sum())


class FrequencyGroups:
    """The types of a vocabulary in three groups by how often they occur in training: frequent, medium, rare.

    Ids may stand in any order; types of one count are told apart by their id, the lower one as the more frequent.
    A vocabulary may have types that never occur in training, which those of the papers have not. They are no members of
    a group and count for no share; where one is a target of another text, it is a rare one.

    Args:
        counts: how often each type occurs in the training text, V whole numbers.
        shares: the groups' shares of the types (default: 0.3, 0.5, 0.2, as in agg), or
        masses: the groups' shares of the training tokens; the smallest first groups that reach theirs.
        share_of: `occurring` (default), the types that occur in training, or `all`, V: then types that never occur are
            the rarest members of the rare group.

    Raises ValueError where both are given, or not three of them, or a group would be empty; methods, for an id that
    the vocabulary has not, such as the -100 of padding: leave those positions out.

    Results are dictionaries from `frequent`, `medium`, `rare` and, where it makes sense, `total`.
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
        counts = to_numpy(counts).astype(np.int64)
        self.order = np.argsort(-counts, kind="stable")
        types = len(counts) if share_of == "all" else int((counts > 0).sum())
        kind, parts = ("masses", masses) if masses is not None else ("shares", SHARES if shares is None else shares)
        rule = {kind: [float(part) for part in parts]}
        if len(rule[kind]) != len(NAMES):
            raise ValueError(f"{kind} are {len(rule[kind])} numbers; give {len(NAMES)}, of {', '.join(NAMES)}")
        try:
            limits = bounds(rule, counts[self.order[:types]])
        except UserError as error:
            raise ValueError(str(error)) from None
        # Rank of each id by falling count: groups are ranges of ranks.
        self.ranks = np.empty(len(counts), dtype=np.int64)
        self.ranks[self.order] = np.arange(len(counts))
        self.groups = Groups(NAMES, limits, types)

    def of(self, ids) -> np.ndarray:
        """The group of each id, 0 (frequent), 1 or 2 (rare).

        Args:
            ids: token ids, any shape; the result has it too.
        """
        return self.groups.of(self._ranks_of(ids))

    def members(self) -> dict[str, np.ndarray]:
        """The ids of each group's types, the most frequent first: rows of an embedding, for instance."""
        return {name: self.order[part] for name, part in zip(NAMES, self.groups.parts, strict=True)}

    def perplexity(self, nll, targets) -> dict[str, float]:
        """Perplexity of the targets of each group, and of all (agg, section 3); NaN of a group without any.

        Args:
            nll: negative log likelihoods in nats, any shape (`raretok.token_nll`).
            targets: their ids, in the same shape.
        """
        values, ranks = to_numpy(nll).astype(np.float64).ravel(), self._ranks_of(targets).ravel()
        values, _ = group_perplexities(values, ranks, self.groups)
        return _named(values)

    def mean(self, values, targets) -> dict[str, float]:
        """The mean of a value per position over the targets of each group, and over all; NaN of a group without any.

        Args:
            values: numbers, such as whether a prediction is right, or 1 / rank, any shape.
            targets: ids, in the same shape.
        """
        values, of = to_numpy(values).astype(np.float64).ravel(), self.of(targets).ravel()
        numbers = np.bincount(of, minlength=3)
        sums = np.bincount(of, weights=values, minlength=3)
        with np.errstate(invalid="ignore"):
            return _named(np.append(sums, sums.sum()) / np.append(numbers, len(values)))

    def distinct(self, ids) -> dict[str, int]:
        """Uniq: how many different types of each group occur, and of all (agg, section 5.1).

        Args:
            ids: token ids, any shape: the likeliest type of every position, or of a generated text.
        """
        return _named(distinct(self._ranks_of(ids).ravel(), self.groups))

    def _ranks_of(self, ids) -> np.ndarray:
        """The rank of each id, in the shape of ids; numpy would take a negative one from the end."""
        ids = to_numpy(ids)
        wrong = (ids < 0) | (ids >= len(self.ranks))
        if wrong.any():
            raise ValueError(
                f"an id is {ids[wrong][0]}, but there are {len(self.ranks)} types; leave positions without a target out"
            )
        return self.ranks[ids.astype(np.int64)]


def log_unigram(counts: Sequence[int] | np.ndarray) -> torch.Tensor:
    """Log relative frequencies of types, V in 64 bits (natural_bias, section 4.1).

    One is added to every count, since types that never occur have no finite logarithm.

    Args:
        counts: how often each type is a target in the training text, V.
    """
    return _log_unigram(to_numpy(counts))


def start_bias(head: torch.nn.Linear, counts: Sequence[int] | np.ndarray) -> None:
    """Let the bias of an output layer start at the log-unigram distribution (natural_bias, section 4.1), in place.

    Do it before the first step, and before an optimiser is made: a layer without a bias gets one, as a parameter.

    Args:
        head: the layer from hidden vectors to logits, d to V, such as `model.get_output_embeddings()`.
        counts: how often each type is a target in the training text, V.

    Raises ValueError where the counts are of another number of types than the layer has.
    """
    values = log_unigram(counts)
    if len(values) != len(head.weight):
        raise ValueError(f"counts are of {len(values)} types, but the layer has {len(head.weight)} outputs")
    values = values.to(head.weight)
    if head.bias is None:
        head.bias = torch.nn.Parameter(values)
    else:
        with torch.no_grad():
            head.bias.copy_(values)


def _check_share_of(share_of: str) -> None:
    if share_of not in SHARE_OF:
        raise ValueError(f"share_of is {share_of!r}; it is one of {', '.join(SHARE_OF)}")


def to_numpy(values) -> np.ndarray:
    """A tensor (of any device, with a gradient, of bfloat16 too), array or list as an array."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def _named(values) -> dict:
    return dict(zip((*NAMES, "total"), values.tolist(), strict=True))
