"""GPU locks: jobs of one user on one machine share a GPU only if the config allows it.

A GPU has as many places as jobs may share it. Each place is a lock file, which the system releases when its process
ends, however it ends. Cluster schedulers give every job its own GPUs, whose places are free.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

from rarepapers.core.errors import UserError
from rarepapers.machine.clock import log

# Seconds between two attempts to get a place.
PATIENCE = 1.0
# Places held until this process ends; a lock that is garbage-collected would be released.
_held: list[FileLock] = []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `choose_device`."""
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: %(default)s)")
    parser.add_argument(
        "--runs-per-gpu",
        type=int,
        default=1,
        help="how many jobs may share a GPU; wait for a place while all are taken (default: %(default)s)",
    )


def take_places(gpus: list[str], places: int, number: int) -> list[int]:
    """Hold a place on each of `number` different `gpus` until this process ends; returns their indices, sorted.

    Waits while too few are free. All are taken at once, since two jobs that each held one and waited for another would
    wait forever. gpus: unique names of this machine's GPUs (UUIDs). places: number per GPU; empty GPUs are taken first.
    Raises UserError unless places is at least 1, and if there are fewer GPUs.
    """
    if places < 1:
        raise UserError(f"runs_per_gpu is {places}; it must be at least 1")
    if number > len(gpus):
        raise UserError(f"{number} processes need a GPU each, but torch sees {len(gpus)} here; lower `processes`")
    folder = Path(tempfile.gettempdir()) / f"raretok-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = False
    while True:
        taken: dict[int, FileLock] = {}
        for place in range(places):
            for index, gpu in enumerate(gpus):
                lock = FileLock(folder / f"{gpu}.{place}.lock", timeout=0)
                if index in taken or len(taken) == number:
                    continue
                try:
                    taken[index] = lock.acquire().lock
                except Timeout:
                    continue
        if len(taken) == number:
            _held.extend(taken.values())
            return sorted(taken)
        for lock in taken.values():
            lock.release()
        if not waiting:
            wanted = "one" if number == 1 else number
            lack = f"all {len(gpus) * places} places are" if not taken else f"places on all but {len(taken)} are"
            log(f"waiting for {wanted} of {len(gpus)} GPU(s): {lack} taken by other jobs")
            waiting = True
        time.sleep(PATIENCE)
