"""The command `status`: which runs are at work, where, since when and how far; what failed and why; what is left.

It reads the files that trainings leave (their locks, states and logs), so it sees those of Snakemake, of `raretok work`
and of a cluster alike, from any machine that shares the folder.
"""

import argparse
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from raretok.core.files import read_json
from raretok.experiments import config_options
from raretok.experiments.run_table import Run, RunTable, load
from raretok.experiments.trained_runs import is_trained
from raretok.machine.slurm import failing_nodes
from raretok.rule_inputs import train
from raretok.training.holder import HOLDER
from raretok.work.jobs import EVALUATE, TRAIN
from raretok.work.run_status import is_evaluated, last_line, log_of, saved_progress

# A training on another machine that has written nothing for so many seconds is taken for dead; it reports every ten.
SILENT_SECONDS = 600
PROGRESS = re.compile(r"step (\d+/\d+) .* ([\d.]+ min left)")
# In the order of the report.
AT_WORK, FAILED, INTERRUPTED, TRAINED, WAITING, DONE = STATES = (
    "at work",
    "failed",
    "interrupted, with a saved state",
    "trained, not measured",
    "not begun",
    "done",
)
# States whose runs are listed one by one.
LISTED = (AT_WORK, FAILED, INTERRUPTED)


@dataclass(frozen=True)
class Status:
    """Where a run stands, one of STATES, and what there is to say about it."""

    state: str
    words: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    config_options.add_arguments(parser)


def main(arguments: argparse.Namespace) -> None:
    """Print how many runs of the table are in which state, and what is at work, failed or was interrupted."""
    table = load(config_options.config_of(arguments) | {"recorded": False, "finished": False}, arguments.root)
    found = {run.name: status_of(table, run) for run in table.runs.values()}
    counts = [f"{sum(one.state == state for one in found.values())} {state}" for state in reversed(STATES)]
    print(f"{table.scale}: {len(found)} models: {', '.join(counts)}")
    for state in LISTED:
        lines = [f"  {name}  {one.words}".rstrip() for name, one in found.items() if one.state == state]
        if lines:
            print("\n".join([f"{state}:", *lines]))
    nodes = failing_nodes(table.run_logs())
    if nodes:
        print(f"several runs failed on: {', '.join(nodes)}; no second attempt of a run goes there")


def status_of(table: RunTable, run: Run) -> Status:
    """Where a run stands."""
    if is_trained(table, run):
        if is_evaluated(table, run):
            return Status(DONE)
        error = failure_reason(log_of(table, run, EVALUATE))
        return Status(FAILED, error) if error else Status(TRAINED)
    log, state = log_of(table, run, TRAIN), table.root / train.state(table, run)
    holder = holder_of(state, log)
    if holder:
        return Status(AT_WORK, f"{how_far(log)}  {holder}")
    saved = saved_progress(state)
    error = failure_reason(log)
    if error:
        return Status(FAILED, error)
    if saved:
        return Status(INTERRUPTED, f"at step {saved['step']} of {run.settings['training']['steps']}")
    return Status(WAITING)


def failure_reason(log: Path) -> str:
    """Why a job failed, as its log ends, with the place of the log; empty where it does not end with an error."""
    line = last_line(log)
    return f"{line}  ({log})" if re.search(r"(^|: )(\w*Error|error)\b", line) else ""


def how_far(log: Path) -> str:
    """The step of a training at work and the time left, by its log."""
    progress = PROGRESS.search(last_line(log))
    return f"step {progress[1]}, {progress[2]}" if progress else "starting"


def holder_of(state: Path, log: Path) -> str:
    """Which process trains a run, and since when; empty where none does."""
    path = state / HOLDER
    if not path.is_file():
        return ""
    holder = read_json(path)
    here = holder["host"] == socket.gethostname()
    last_word = max(file.stat().st_mtime for file in (path, log) if file.is_file())
    if not (process_exists(holder["process"]) if here else time.time() - last_word < SILENT_SECONDS):
        return ""
    job = f", job {holder['job']}" if holder["job"] else ""
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(holder["since"]))
    return f"on {holder['host']}, process {holder['process']}{job}, since {since}"


def process_exists(process: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
