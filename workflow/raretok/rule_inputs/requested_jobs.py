"""The jobs that a target asks for, as far as the start of the workflow needs to know them.

Snakemake tells no hook which jobs it is about to run. But it calls the input functions of every job of the target
before the first job starts; those that mark a job here are called by one rule each.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from raretok.experiments.run_table import Run, RunTable
from raretok.experiments.trained_runs import is_trained


@dataclass
class Requested:
    """Runs of rules `train` and `evaluate` by name, (paper, item) of `table` and `figure`, GPT-2 weights by path."""

    trained: dict[str, Run] = field(default_factory=dict)
    evaluated: dict[str, Run] = field(default_factory=dict)
    items: set[tuple[str, str]] = field(default_factory=set)
    checkpoints: set[str] = field(default_factory=set)


@lru_cache(maxsize=4)
def requested(table: RunTable) -> Requested:
    """What the target asks for so far, finished or not."""
    return Requested()


def runs_to_train(table: RunTable) -> list[Run]:
    """The requested runs that this config and code have not trained, in the order of their names."""
    return [run for _, run in sorted(requested(table).trained.items()) if not is_trained(table, run)]


def runs_to_evaluate(table: RunTable) -> list[Run]:
    """The requested runs without metrics, or with those of another training."""
    again = {run.name for run in runs_to_train(table)}
    return [run for run in requested(table).evaluated.values() if run.name in again or not _is_measured(table, run)]


def _is_measured(table: RunTable, run: Run) -> bool:
    return (table.root / table.folder(run) / "metrics.json").exists()
