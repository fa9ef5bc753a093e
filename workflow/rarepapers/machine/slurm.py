"""SLURM: requeueing of a job that was stopped near its time limit, and nodes on which jobs fail.

With the profile `slurm`, SLURM sends SIGTERM some minutes before the time limit (`--signal`), and a run saves its
state. If the job failed then, it would use up one of Snakemake's few attempts, and the next would request more memory.
Requeued by SLURM, the same job continues as often as needed, while Snakemake waits for it.
"""

import collections
import os
import re
import subprocess
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

# A signal that arrives earlier than this before the limit has another cause. SLURM may send it up to a minute early.
NEAR = timedelta(minutes=7)
FAILED, DONE = "failed on node", "done on node"
# Number of different runs that must fail on a node before second attempts avoid it.
TOO_MANY = 2


def queue_again() -> bool:
    """Requeue this job if its time limit is near; returns whether SLURM did.

    False outside SLURM, for a cancelled or preempted job, and if SLURM does not answer or refuses.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return False
    state, _, end = command_output("squeue", "--noheader", "--job", job, "--format", "%T|%e").partition("|")
    if state != "RUNNING" or not is_near(end):
        return False
    return command_output("scontrol", "requeue", job, failed="refused") != "refused"


def name_node(outcome: str) -> str:
    """The line by which a command names its node, for `failing_nodes`; empty outside SLURM. outcome: FAILED or DONE."""
    node = os.environ.get("SLURMD_NODENAME")
    return f"{outcome} {node}" if node else ""


def failing_nodes(logs: Iterable[Path]) -> list[str]:
    """Nodes on which the commands of at least TOO_MANY of these logs failed, not counting mistakes of the user.

    Failures before a log's last success do not count, because the node may have been repaired since.
    """
    found = collections.Counter()
    for log in logs:
        _, _, recent = log.read_text(encoding="utf-8", errors="replace").rpartition(DONE)
        found.update(set(re.findall(rf"{FAILED} (\S+)", recent)))
    return sorted(node for node, runs in found.items() if runs >= TOO_MANY)


def is_near(end: str) -> bool:
    """Whether a time in SLURM's format (2026-11-21T20:26:43, local; N/A without a limit) is at most NEAR away."""
    try:
        return datetime.fromisoformat(end) - datetime.now() <= NEAR
    except ValueError:
        return False


def command_output(*command: str, failed: str = "") -> str:
    """Output of a SLURM command in one line; `failed` if the command does not exist or fails."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return failed
