"""The command `status`: runs in progress (where, since when, how far), failed runs with the reason, and what is left.

It reads the files that trainings write (locks, states, logs), so it covers Snakemake, `work` and clusters, from
any machine that shares the folder.
"""

import argparse
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from rarepapers.core.files import CHECKPOINT, read_json
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import Run, RunTable, load_to_train
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.machine.slurm import failing_nodes
from rarepapers.rule_inputs import train
from rarepapers.training.holder import HOLDER
from rarepapers.work.jobs import EVALUATE, TRAIN
from rarepapers.work.run_status import (
    facts_of,
    is_evaluated,
    is_trained_here,
    last_line,
    log_of,
    log_together,
    saved_progress,
)

# A training on another machine counts as dead after this many seconds without a line in its log; it writes one every
# ten.
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    config_options.add_arguments(parser)


def main(arguments: argparse.Namespace) -> None:
    """Print the number of runs in each state, and details of active, failed and interrupted runs."""
    table = load_to_train(arguments)
    stacks = [Stack.read(folder) for folder in sorted((table.root / table.results / "state" / "together").glob("*"))]
    found = {run.name: status_of(table, run, stacks) for run in table.runs.values()}
    counts = [f"{sum(one == state for one, _ in found.values())} {state}" for state in reversed(STATES)]
    print(f"{table.scale}: {len(found)} models: {'; '.join(counts)}")
    for state in LISTED:
        lines = [f"  {name}  {words}".rstrip() for name, (one, words) in found.items() if one == state]
        if lines:
            print("\n".join([f"{state}:", *lines]))
    nodes = failing_nodes(table.run_logs())
    if nodes:
        print(f"several runs failed on: {', '.join(nodes)}; no run is retried there")


@dataclass(frozen=True)
class Stack:
    """Runs trained together: the name of their state folder, the process that trains them, and the steps of their saved
    state by hash."""

    name: str
    holder: dict
    steps: dict[str, int]
    sources: str

    def holds(self, run: str, code: str) -> bool:
        """Whether the saved state has a run (its hash), trained by code with this digest."""
        return run in self.steps and code in self.sources.split()

    @classmethod
    def read(cls, folder: Path) -> "Stack":
        """From the folder of the state of a stack; what is not there is empty."""
        holder = read_json(folder / HOLDER) if (folder / HOLDER).is_file() else {}
        try:
            facts = facts_of(folder / CHECKPOINT)
            return cls(folder.name, holder, {run: of["step"] for run, of in facts["members"].items()}, facts["sources"])
        except (OSError, ValueError, KeyError):
            return cls(folder.name, holder, {}, "")


def status_of(table: RunTable, run: Run, stacks: list[Stack]) -> tuple[str, str]:
    """The status of a run, one of STATES, and details."""
    if is_trained_here(table, run):
        if is_evaluated(table, run):
            return DONE, ""
        error = failure_reason(log_of(table, run, EVALUATE))
        return FAILED if error else TRAINED, error
    log, state = log_of(table, run, TRAIN), table.root / train.state(table, run)
    if (state / HOLDER).is_file():
        # A run that is trained together with others has the process, and thus the log, of its stack.
        held = read_json(state / HOLDER)
        same = [stack for stack in stacks if all(stack.holder.get(key) == held[key] for key in ("host", "process"))]
        log = log_together(table, same[0].name) if same else log
    holder = holder_of(state, log)
    if holder:
        progress = PROGRESS.search(last_line(log))
        how_far = f"step {progress[1]}, {progress[2]}" if progress else "starting"
        return AT_WORK, f"{how_far}  {holder}"
    error = failure_reason(log)
    if error:
        return FAILED, error
    saved = saved_progress(table, run)
    code = code_that_trains(run)
    steps = [saved["step"]] if saved else [stack.steps[run.hash] for stack in stacks if stack.holds(run.hash, code)]
    if steps:
        return INTERRUPTED, f"at step {steps[0]} of {run.settings['training']['steps']}"
    return WAITING, ""


def failure_reason(log: Path) -> str:
    """The error at the end of a job's log, with the path of the log; empty if there is none."""
    line = last_line(log)
    return f"{line}  ({log})" if re.search(r"(^|: )(\w*Error|error)\b", line) else ""


def holder_of(state: Path, log: Path) -> str:
    """The process that trains a run, and since when; empty if there is none."""
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
    """Whether a process exists on this machine."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
