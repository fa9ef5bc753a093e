"""Counts and ranks of target types, shared by the gates."""

from collections.abc import Iterable
from dataclasses import dataclass

# Base of a share: the types that occur in training, as in the papers, or all rows of the vocabulary.
SHARE_OF = ("occurring", "all")


def check_not_negative(part, name: str) -> None:
    """Raises ValueError unless a number of a part is at least 0 and finite; NaN is neither."""
    if not 0 <= getattr(part, name) < float("inf"):
        raise ValueError(f"{name} must be at least 0 and finite")


def frequency_ranks(facts):
    """Rank of every type by decreasing training count, V integers: special types first, ties by id.

    Ids of a language corpus are in this order already; in a joint vocabulary of two languages the target side's counts
    decide (docs/deviations.md, G6).
    """
    import numpy as np

    counts = np.asarray(facts.counts, dtype=np.int64)
    plain = np.ones(len(counts), dtype=bool)
    plain[list(facts.special)] = False
    order = np.lexsort((np.arange(len(counts)), -counts, plain))
    ranks = np.empty(len(counts), dtype=np.int64)
    ranks[order] = np.arange(len(counts))
    return ranks


def first_rare_rank(rare_from: int, facts) -> int:
    """The rank from which types are rare: `rare_from`, or its counterpart if the run is scaled.

    In a scaled run, types from that rank on make up at most `rare.mass` of the training tokens; it is the smallest such
    rank (docs/deviations.md, Scaled runs). Raises ValueError if no type, or every one that is not special, would be
    rare.
    """
    import numpy as np

    counts = np.asarray(facts.counts, dtype=np.int64)
    if facts.rare is not None:
        by_rank = counts[np.argsort(frequency_ranks(facts))]
        tails = by_rank[::-1].cumsum()[::-1]
        rare_from = int((tails > facts.rare["mass"] * counts.sum()).sum())
    if not len(facts.special) < rare_from < len(counts):
        raise ValueError(
            f"rare_from is {rare_from} in a vocabulary of {len(counts)} types, "
            f"{len(facts.special)} of them special: that makes no word rare or leaves no other"
        )
    return rare_from


def checked_counts(counts):
    """Counts (tensor, array or list) as V 64-bit integers; raises ValueError if they are none."""
    import numpy as np

    array = np.asarray(counts.cpu() if hasattr(counts, "cpu") else counts)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or not array.any():
        raise ValueError("counts must be V whole numbers, one per type, at least 0 and not all 0")
    return array.astype(np.int64)


def checked_special(special: Iterable[int], types: int) -> tuple[int, ...]:
    """Special ids as integers; raises ValueError for one outside the vocabulary, such as None for missing padding."""
    ids = listed(special)
    for token in ids:
        if not hasattr(token, "__index__") or not 0 <= int(token) < types:
            raise ValueError(f"special has {token}, which is no id; they are from 0 to below {types}")
    # Padding and the end of a text are often the same id.
    return tuple(dict.fromkeys(int(token) for token in ids))


def listed(special: Iterable[int]) -> tuple:
    """Special ids as a tuple; raises ValueError for a single number."""
    if not hasattr(special, "__iter__") or getattr(special, "ndim", 1) == 0:
        raise ValueError(f"special is {special}; give a list of ids, such as [{special}]")
    return tuple(special)


def bound_of_share(counts, wanted: float) -> float:
    """The count below which about `wanted` types lie: of all midpoints between occurring counts, the nearest."""
    import numpy as np

    values, types = np.unique(counts, return_counts=True)
    if len(values) == 1:
        return float(values[0])
    below = np.cumsum(types)[:-1]
    nearest = int(np.abs(below - wanted).argmin())
    return float(values[nearest] + values[nearest + 1]) / 2


@dataclass(frozen=True)
class Group:
    """Processes with different targets, which are counted together.

    handle: a `torch.distributed.ProcessGroup`.
    """

    handle: object

    def __deepcopy__(self, memo):
        # torch copies no process group.
        return self


def step_counts(targets, types: int, group: Group | None = None):
    """How often each type is a target of a step, `types` integers, summed over processes.

    targets: this process's share, any shape, on the CPU. group: the processes; None: all.
    """
    return summed(targets.flatten().bincount(minlength=types), group)


def summed(tensor, group: Group | None = None):
    """The tensor summed over processes (None: all), in place; unchanged for a single process."""
    from torch import distributed

    handle = None if group is None else group.handle

    if not (distributed.is_available() and distributed.is_initialized()):
        return tensor
    if tensor.device.type == "cpu" and distributed.get_backend(handle) == "nccl":
        # NCCL alone sums nothing on a CPU.
        on_gpu = tensor.cuda()
        distributed.all_reduce(on_gpu, group=handle)
        return tensor.copy_(on_gpu)
    distributed.all_reduce(tensor, group=handle)
    return tensor
