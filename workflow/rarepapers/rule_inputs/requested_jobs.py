"""Requested jobs of a target, for the checks at the start of the workflow.

Snakemake does not tell hooks which jobs it will run, but it calls the input functions of all jobs of the target before
it starts the first one. Input functions that mark a job here each belong to one rule.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.experiments.trained_runs import is_trained


@dataclass
class Requested:
    """Runs of rules `train` and `evaluate` by name, (paper, item) of `table` and `figure`, GPT-2 weights by path."""

    trained: dict[str, Run] = field(default_factory=dict)
    evaluated: dict[str, Run] = field(default_factory=dict)
    items: set[tuple[str, str]] = field(default_factory=set)
    checkpoints: set[str] = field(default_factory=set)


@lru_cache(maxsize=4)
def requested(table: RunTable) -> Requested:
    """What the target requests so far, finished or not."""
    return Requested()


def runs_to_train(table: RunTable) -> list[Run]:
    """The requested runs that are not yet trained with this config and code, sorted by name."""
    return [run for _, run in sorted(requested(table).trained.items()) if not is_trained(table, run)]


def runs_to_evaluate(table: RunTable) -> list[Run]:
    """The requested runs without metrics, or with those of an earlier training."""
    again = {run.name for run in runs_to_train(table)}

    def is_measured(run: Run) -> bool:
        return run.name not in again and (table.root / table.folder(run) / "metrics.json").exists()

    return [run for run in requested(table).evaluated.values() if not is_measured(run)]
