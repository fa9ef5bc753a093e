"""Which of the processes that train one run this one is; a process alone is the first of one."""

import os
from dataclasses import dataclass

from raretok.core.errors import UserError


@dataclass(frozen=True)
class Group:
    """The processes of a training: this one's number (from 0), how many there are, and who started this one."""

    rank: int = 0
    size: int = 1
    parent: int = 0


# Set by `raretok.training.distributed.joined`.
group = Group()


def rank() -> int:
    """Number of this process, from 0."""
    return group.rank


def size() -> int:
    """How many processes train the run."""
    return group.size


def is_first() -> bool:
    """Whether this process is the one that writes files and the log."""
    return group.rank == 0


def launched() -> bool:
    """Whether torchrun started this process as one of several."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1


def own_gpu(number: int) -> int:
    """Which of this machine's `number` GPUs is this process's; UserError where there are too few."""
    local, processes = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if processes > number:
        raise UserError(
            f"{processes} processes need a GPU each, but torch sees {number} here; start fewer, or ask for more GPUs"
        )
    return local
