"""Distributed training of one run: collective operations on the CPU, sharing of batches, averaging of gradients.

torchrun starts the processes (`rarepapers.machine.process_launcher` on one machine), each with its own device. Every
process draws the whole batch and works on its share of the rows; means over processes equal the results of a single
process. Small values (signals, decisions, random states) are exchanged on the CPU by gloo, gradients on their device.

A single process has rank 0 of 1 (`rarepapers.machine.processes`): every function then returns at once, and
torch.distributed is not imported.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

from rarepapers.core.errors import Interrupted, UserError
from rarepapers.machine import processes
from rarepapers.machine.processes import Group

# Timeout for the other processes, which may be writing a large state. The death of a process is noticed at once,
# because its connections close.
PATIENCE = timedelta(minutes=10)
# How long a failing process waits for the first one's message, to avoid repeating it.
SENTENCE_SECONDS = 10
# Messages of torch's backends about a lost process; these errors have no type of their own.
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed", "imed out")


@contextlib.contextmanager
def joined(device: str) -> Iterator[None]:
    """Join the processes that torchrun started, for the duration of the block.

    device: `cpu` or `cuda`. Raises UserError if another process is lost. If all processes fail for the same reason,
    only the first one raises; the others exit silently with the same status.
    """
    if not processes.launched():
        yield
        return
    from torch import distributed

    with _loss_in_words():
        store, number, size = next(distributed.rendezvous("env://", timeout=PATIENCE))
        backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        distributed.init_process_group(backend, store=store, rank=number, world_size=size, timeout=PATIENCE)
    processes.group = Group(number, size, os.getppid())
    try:
        with _loss_in_words():
            yield
    except (UserError, Interrupted) as error:
        # The process group is not destroyed: that would wait for processes that may be gone.
        if _said_by_first(store, f"{error.exit_status} {error}"):
            raise SystemExit(error.exit_status) from None
        raise
    else:
        distributed.destroy_process_group()
    finally:
        processes.group = Group()


def share(items):
    """This process's rows of an array, tensor or list, or of each one in a tuple; may be empty."""
    if isinstance(items, tuple):
        return tuple(share(part) for part in items)
    rank, size = processes.rank(), processes.size()
    return items[len(items) * rank // size : len(items) * (rank + 1) // size]


def gather(value) -> list:
    """The values of all processes, on every process, by rank."""
    if processes.size() == 1:
        return [value]
    from torch import distributed

    values = [None] * processes.size()
    distributed.all_gather_object(values, value)
    return values


def on_first(action: Callable):
    """The result of `action()` on the first process, returned on all of them; a UserError is raised on all, too."""
    if processes.size() == 1:
        return action()
    from torch import distributed

    outcome = [None, None]
    if processes.is_first():
        try:
            outcome[0] = action()
        except UserError as error:
            outcome[1] = str(error)
    distributed.broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise UserError(outcome[1])
    return outcome[0]


def agree(asked: str | None, due: bool) -> tuple[str | None, bool]:
    """The stop signal, or None, and whether to save the state now, agreed by all processes.

    asked: the signal that reached this process, if any. due: whether this process wants to save. A process whose parent
    is gone also asks to stop, because signals would no longer reach it.
    """
    if processes.size() == 1:
        return asked, due or asked is not None
    import torch
    from torch import distributed

    if asked is None and os.getppid() != processes.group.parent:
        asked = signal.SIGHUP.name
    found = torch.tensor([0 if asked is None else signal.Signals[asked], due], dtype=torch.int64)
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    number, due = found.tolist()
    return signal.Signals(number).name if number else None, bool(due or number)


def parallel(model):
    """`model` wrapped so that the last backward pass of a step averages the gradients over processes.

    All other passes must run within its `no_sync()`.
    """
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, forward_sync_buffers=False, gradient_as_bucket_view=True)


@contextlib.contextmanager
def _loss_in_words() -> Iterator[None]:
    """Turn torch's errors about a lost process into a UserError."""
    from torch import distributed

    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, distributed.DistError) and not any(words in str(error) for words in LOST):
            raise
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} lost the others ({reason}): one of them has "
            "ended, or hangs; start the same command again to continue from the last saved state"
        ) from None


def _said_by_first(store, sentence: str) -> bool:
    """Whether the first process ends with the same message; publishes this process's message."""
    if processes.is_first():
        store.set("sentence", sentence)
        return False
    try:
        store.wait(["sentence"], timedelta(seconds=SENTENCE_SECONDS))
        return store.get("sentence").decode() == sentence
    except RuntimeError:  # the first process has no message, or is gone
        return False
