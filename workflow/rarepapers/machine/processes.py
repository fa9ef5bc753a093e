"""The number of this process among those that train a run; a single process is the first of one."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """The processes that train a run: this one's number (from 0), their number, and the id of the parent process."""

    rank: int = 0
    size: int = 1
    parent: int = 0


# Set by `rarepapers.training.distributed.joined`.
group = Group()


def rank() -> int:
    """Number of this process, from 0."""
    return group.rank


def size() -> int:
    """Number of processes that train the run."""
    return group.size


def is_first() -> bool:
    """Whether this process writes the files and the log."""
    return group.rank == 0


def launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1
