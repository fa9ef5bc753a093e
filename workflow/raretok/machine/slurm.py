"""A job of SLURM that was stopped because its time is almost up asks for another turn.

The profile `slurm` has SLURM send SIGTERM some minutes before the time limit (`--signal`). A training saves its state
then and could only fail, which costs one of Snakemake's few attempts and asks for more memory than the last one. Queued
again by SLURM, the same job continues, however often that is needed; Snakemake goes on waiting for it.
"""

import collections
import os
import re
import subprocess
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

# A signal that comes earlier than this before the limit has another cause. SLURM sends it up to a minute early.
NEAR = timedelta(minutes=7)
FAILED = "failed on node"
# A node on which so many different runs failed gets no second attempt of any.
TOO_MANY = 2


def queue_again() -> bool:
    """Whether SLURM was asked to start this job again: it runs still, its time limit is near, and it may be requeued.

    False outside SLURM, for a job that was cancelled or preempted, and where SLURM does not answer or refuses.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return False
    state, _, end = command_output("squeue", "--noheader", "--job", job, "--format", "%T|%e").partition("|")
    if state != "RUNNING" or not is_near(end):
        return False
    return command_output("scontrol", "requeue", job, failed="refused") != "refused"


def name_node() -> str:
    """What a command that breaks says of the node it ran on, for `failing_nodes`; empty outside SLURM."""
    node = os.environ.get("SLURMD_NODENAME")
    return f"{FAILED} {node}" if node else ""


def failing_nodes(logs: Iterable[Path]) -> list[str]:
    """Nodes on which the commands of at least TOO_MANY of these logs broke; mistakes of the user's do not count."""
    found = collections.Counter()
    for log in logs:
        found.update(set(re.findall(rf"{FAILED} (\S+)", log.read_text(encoding="utf-8", errors="replace"))))
    return sorted(node for node, runs in found.items() if runs >= TOO_MANY)


def is_near(end: str, now: datetime | None = None) -> bool:
    """Whether a time as SLURM writes it (2026-11-21T20:26:43, local; N/A without a limit) is at most NEAR away."""
    try:
        return datetime.fromisoformat(end) - (now or datetime.now()) <= NEAR
    except ValueError:
        return False


def command_output(*command: str, failed: str = "") -> str:
    """What a command of SLURM prints, in one line; `failed` where it is not there or has an error."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return failed
