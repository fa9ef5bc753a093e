"""Several processes that train one run together: what they settle with each other.

torchrun starts them (`raretok.machine.process_launcher` on one machine), each with a device of its own. Every process
draws the whole of every batch and works on its share of the rows; means over the processes are what one process would
have computed. Small things (signals, verdicts, random states) are settled on the CPU by gloo, gradients where they lie.

A process alone is the first of one (`raretok.machine.processes`): every function returns at once, and torch's package
is not even imported.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

from raretok.core.errors import Interrupted, UserError
from raretok.machine import processes
from raretok.machine.processes import Group

# How long a process waits for the others, which may be writing a large state, before it gives up. One that dies is
# noticed at once, since its connections close.
PATIENCE = timedelta(minutes=10)
# How long a process that fails waits for what the first one says, to say nothing twice.
SENTENCE_SECONDS = 10
# How torch's backends say that another process is gone; their errors have no type of their own.
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed", "imed out")


@contextlib.contextmanager
def joined(device: str) -> Iterator[None]:
    """The processes that torchrun started, joined while the block runs.

    device: `cpu` or `cuda`, chosen. Raises UserError when another process is lost. What all processes end with for the
    same reason only the first one raises; the others exit alike, silently.
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
        # The group is left as it is: taking it down would wait for processes that may be gone.
        if _said_by_first(store, f"{error.exit_status} {error}"):
            raise SystemExit(error.exit_status) from None
        raise
    else:
        distributed.destroy_process_group()
    finally:
        processes.group = Group()


def share(items):
    """This process's rows of an array, a tensor or a list, or of each of several in a tuple; there may be none."""
    if isinstance(items, tuple):
        return tuple(share(part) for part in items)
    rank, size = processes.rank(), processes.size()
    return items[len(items) * rank // size : len(items) * (rank + 1) // size]


def total(tensor):
    """The sum of the processes' tensors, in place and on every one."""
    if processes.size() > 1:
        from torch import distributed

        distributed.all_reduce(tensor)
    return tensor


def gather(value) -> list:
    """The processes' values, on every one, in the order of their numbers."""
    if processes.size() == 1:
        return [value]
    from torch import distributed

    values = [None] * processes.size()
    distributed.all_gather_object(values, value)
    return values


def on_first(action: Callable):
    """What `action()` returns on the first process, on all of them, once it is done; so with its UserError."""
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
    """The signal that asks the training to stop, or None, and whether its state is to be saved now, on all processes.

    asked: the signal that reached this process, if any. due: whether this process finds it time to save. A process
    whose starter is gone asks to stop, too: nobody would pass signals on to it.
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
    """`model` such that the last of a step's backward passes leaves means over the processes in the gradients.

    Every pass but the last must run within its `no_sync()`.
    """
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, forward_sync_buffers=False, gradient_as_bucket_view=True)


@contextlib.contextmanager
def _loss_in_words() -> Iterator[None]:
    """A UserError in place of what torch raises when another process is gone."""
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
    """Whether the first process ends with the same sentence; it comes to know this one's."""
    if processes.is_first():
        store.set("sentence", sentence)
        return False
    try:
        store.wait(["sentence"], timedelta(seconds=SENTENCE_SECONDS))
        return store.get("sentence").decode() == sentence
    except RuntimeError:  # the first process said nothing, or is gone
        return False
