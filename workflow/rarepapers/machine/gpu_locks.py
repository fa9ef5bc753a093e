"""GPU locks: jobs of one user on one machine share a GPU only if the config allows it.

A GPU has as many places as jobs may share it. Each place is a lock file, which the system releases when its process
ends, however it ends. Cluster schedulers give every job its own GPUs, whose places are free.
"""

import argparse
import contextlib
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


def take_place(gpus: list[str], places: int) -> int:
    """Hold a place on one of `gpus` until this process ends; returns its index. Waits while none is free.

    gpus: unique names of this machine's GPUs (UUIDs). places: number per GPU; empty GPUs are taken first. Raises
    UserError unless places is at least 1.
    """
    if places < 1:
        raise UserError(f"runs_per_gpu is {places}; it must be at least 1")
    folder = Path(tempfile.gettempdir()) / f"raretok-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    waiting = False
    while True:
        for place in range(places):
            for index, gpu in enumerate(gpus):
                with contextlib.suppress(Timeout):
                    _held.append(FileLock(folder / f"{gpu}.{place}.lock", timeout=0).acquire().lock)
                    return index
        if not waiting:
            log(f"waiting for one of {len(gpus)} GPU(s): all {len(gpus) * places} places are taken by other jobs")
            waiting = True
        time.sleep(PATIENCE)
