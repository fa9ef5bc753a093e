"""Runs of a table that are trained, and runs that copy the files of another run with the same weights."""

from collections import defaultdict
from functools import lru_cache

from rarepapers.core.files import read_json
from rarepapers.experiments.run_code import evaluation_code, is_copy, observations_of, training_code, training_key
from rarepapers.experiments.run_table import Run, RunTable


def code_that_trains(run: Run) -> str:
    """Digest of the code that trains a run, as in its record."""
    return training_code(run.settings, run.kind)


def code_that_measures(run: Run) -> str:
    """Digest of the code that measures a run, as in its metrics."""
    return evaluation_code(run.settings, run.kind)


def is_trained(table: RunTable, run: Run, itself: bool = False) -> bool:
    """Whether this code trained a run, on any machine. itself: not if its files are copies of another run's."""
    path = table.root / table.folder(run) / "training.json"
    record = read_json(path) if path.exists() else {}
    if itself and is_copy(record):
        return False
    return (record.get("hash"), record.get("sources")) == (run.hash, code_that_trains(run))


def same_training(table: RunTable, run: Run) -> Run | None:
    """Another run with the same weights, whose training files this run copies; None if the run is trained itself.

    The other run has at least the same observations; it is one that is already trained, or the table's first.
    """
    alike = runs_alike(table)[run.name]
    if len(alike) == 1 or is_trained(table, run, itself=True):
        return None
    own = observations_of(run.settings)
    able = [other for other in alike if own < observations_of(other.settings)]
    able += [other for other in alike if own == observations_of(other.settings)]
    chosen = next((other for other in able if is_trained(table, other, itself=True)), able[0])
    return None if chosen is run else chosen


@lru_cache(maxsize=4)
def runs_alike(table: RunTable) -> dict[str, list[Run]]:
    """For each run by name, all runs with the same weights, including itself."""
    found = defaultdict(list)
    for run in table.runs.values():
        found[training_key(run.settings)].append(run)
    return {run.name: alike for alike in found.values() for run in alike}
