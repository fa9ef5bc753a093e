"""Lock of a run's state, with a record of the process that holds it."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from rarepapers.core.errors import UserError
from rarepapers.core.files import write_json
from rarepapers.training.finished_files import FILES, KEPT

# Name of the record in a state folder. A killed training leaves it behind, but its process is gone.
HOLDER = "holder.json"


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold the lock of a state folder and record this process: two processes must not train one run.

    Raises UserError if another process holds the lock.
    """
    state.mkdir(parents=True, exist_ok=True)
    lock = FileLock(state / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"another process is training this run (it holds {lock.lock_file}); wait for it, or stop it first"
        ) from None
    try:
        job = os.environ.get("SLURM_JOB_ID")
        who = {"host": socket.gethostname(), "process": os.getpid(), "since": time.time(), "job": job}
        write_json(state / HOLDER, who)
        yield
    finally:
        (state / HOLDER).unlink(missing_ok=True)
        lock.release()


def remove_leftovers(state: Path, output: Path) -> None:
    """Remove temporary files of killed writes from a run's folders; the caller holds the run's lock.

    Nobody else writes in the state folder, but an evaluation may write other files in `output`.
    """
    leftovers = list(state.glob(".*.part*"))
    for folder in (output, state / KEPT):
        leftovers += [path for name in FILES for path in folder.glob(f".{Path(name).stem}.*.part*")]
    for path in leftovers:
        path.unlink(missing_ok=True)
