"""The command `status`: runs in progress (where, since when, how far), failed runs with the reason, and what is left.

It reads the files that trainings write (locks, states, logs), so it covers this machine and clusters, from any machine
that shares the folder.
"""

import argparse
import json
import os
import re
import socket
import time
from pathlib import Path

from rarepapers.core.files import CHECKPOINT, METADATA, read_json, read_tensor_header
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import Run, RunTable, load_to_train
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.machine.slurm import failing_nodes
from rarepapers.rule_inputs import train
from rarepapers.rule_inputs.accept import other_evaluation
from rarepapers.training.finished_files import RECORD, holds
from rarepapers.training.holder import HOLDER

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
    found = {run.name: status_of(table, run) for run in table.runs.values()}
    counts = [f"{sum(one == state for one, _ in found.values())} {state}" for state in reversed(STATES)]
    print(f"{table.scale}: {len(found)} models: {'; '.join(counts)}")
    for state in LISTED:
        lines = [f"  {name}  {words}".rstrip() for name, (one, words) in found.items() if one == state]
        if lines:
            print("\n".join([f"{state}:", *lines]))
    nodes = failing_nodes(table.run_logs())
    if nodes:
        print(f"several runs failed on: {', '.join(nodes)}; no run is retried there")


def status_of(table: RunTable, run: Run) -> tuple[str, str]:
    """The status of a run, one of STATES, and details."""
    if is_trained_here(table, run):
        if is_evaluated(table, run):
            return DONE, ""
        error = failure_reason(log_of(table, run, "evaluate"))
        return FAILED if error else TRAINED, error
    log, state = log_of(table, run, "train"), table.root / train.state(table, run)
    holder = holder_of(state, log)
    if holder:
        progress = PROGRESS.search(last_line(log))
        how_far = f"step {progress[1]}, {progress[2]}" if progress else "starting"
        return AT_WORK, f"{how_far}  {holder}"
    error = failure_reason(log)
    if error:
        return FAILED, error
    if saved := saved_progress(table, run):
        return INTERRUPTED, f"at step {saved['step']} of {run.settings['training']['steps']}"
    return WAITING, ""


def is_trained_here(table: RunTable, run: Run) -> bool:
    """Whether this code trained a run on the prepared data, or on any data if none are prepared here."""
    manifest = table.root / train.manifest(table, run)
    data = {"data": read_json(manifest)["sha256"]} if manifest.exists() else {}
    return holds(table.root / table.folder(run), {"run": run.hash, "sources": code_that_trains(run)} | data)


def is_evaluated(table: RunTable, run: Run) -> bool:
    """Whether a trained run has metrics of this training, these settings and this code."""
    folder = table.root / table.folder(run)
    return (folder / "metrics.json").exists() and not other_evaluation(table, run, read_json(folder / RECORD), folder)


def saved_progress(table: RunTable, run: Run) -> dict | None:
    """The progress (`training.progress.Progress`) of a run's saved state, or None; a state of other code has none."""
    try:
        _, header = read_tensor_header(table.root / train.state(table, run) / CHECKPOINT)
        facts = json.loads(header["__metadata__"][METADATA])["facts"]
        return facts["progress"] if facts["sources"] == code_that_trains(run) else None
    except (OSError, ValueError, KeyError):
        return None


def log_of(table: RunTable, run: Run, rule: str) -> Path:
    """The log of a run's job of rule `train` or `evaluate`."""
    return table.root / table.logs / rule / f"{run.name}.txt"


def last_line(log: Path) -> str:
    """The last line of a log; empty if there is none."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line for line in reversed(lines) if line.strip()), "")


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
