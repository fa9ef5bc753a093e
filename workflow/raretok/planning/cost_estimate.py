"""What every run of a table will take: time and memory by machine, and what stays on the disk."""

from dataclasses import dataclass

from raretok.data.catalogue import Wanted
from raretok.experiments.run_size import size_of, snapshots_of, training_of
from raretok.experiments.run_table import Run, RunTable
from raretok.experiments.trained_runs import same_training
from raretok.planning.throughput import Machine

# Bytes a parameter: two checkpoints are kept of every run; and the state of one that is being trained, with its older
# copy and the best weights.
KEPT, STATE = 8, 36
SNAPSHOT_BYTES = 2  # an entry of the output matrix
# Metrics, arrays, histories and translations of a run.
SMALL_FILES = 10**6
# Text is about four times as large as its archive. It is kept unpacked, as lines, as pieces, and as ids.
UNPACKED, FORMS = 4, 4


@dataclass(frozen=True)
class RunCost:
    """One run: parameters and targets at most, `bytes` that stay on the disk, and `state` bytes while it is trained."""

    run: Run
    parameters: int
    tokens: int
    bytes: int
    state: int

    def seconds(self, machine: Machine, launching: bool = True) -> float:
        """Of its training, without validations; launching: False is what the machine computes, no waiting."""
        training = training_of(self.run.settings)
        passes = training.steps * training.passes
        return passes * machine.seconds(size_of(self.run.settings), training.tokens, launching)

    def gib(self, machine: Machine) -> float:
        """Peak memory of its training."""
        return machine.gib(size_of(self.run.settings), training_of(self.run.settings).tokens)


def costs_of(table: RunTable) -> list[RunCost]:
    """The cost of every training of a table, in its order; a run that copies another's files costs nothing."""
    keeps_weights = table.config["keep_weights"]
    return [_cost(run, keeps_weights) for run in table.runs.values() if same_training(table, run) is None]


def _cost(run: Run, keeps_weights: bool) -> RunCost:
    size = size_of(run.settings)
    kept = size.parameters * KEPT + snapshots_of(run.settings) * size.types * size.width * SNAPSHOT_BYTES
    kept *= keeps_weights
    return RunCost(run, size.parameters, training_of(run.settings).total, kept + SMALL_FILES, size.parameters * STATE)


def data_bytes(files: list[Wanted]) -> int:
    """About how much `files` take as archives, texts and tokens. Sizes that are not published count 0."""
    archives = {(wanted.dataset, wanted.file.path): wanted.file.size or 0 for wanted in files}
    texts = [wanted.member or wanted.file for wanted in files]
    known = sum(text.size or 0 for text in texts)
    # Members whose sizes are not published are what their archives unpack to.
    unknown = {(wanted.dataset, wanted.file.path) for wanted in files if wanted.member and not wanted.member.size}
    return sum(archives.values()) + FORMS * (known + UNPACKED * sum(archives[key] for key in unknown))
