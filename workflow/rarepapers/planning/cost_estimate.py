"""Cost of every run of a table: time and memory per machine, and disk space."""

from dataclasses import dataclass

from rarepapers.data.catalogue import Wanted
from rarepapers.experiments.run_size import size_of, snapshots_of, training_of
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.experiments.trained_runs import same_training
from rarepapers.planning.throughput import Machine

# Bytes per parameter: of weights, and of the saved state (weights and two moments), of which two exist during a write.
WEIGHTS, SAVED = 4, 12
SNAPSHOT_BYTES = 2  # per entry of the output matrix
# Metrics, arrays, histories and translations of a run.
SMALL_FILES = 10**6
# Text is about four times as large as its archive, and is stored in four forms: unpacked, as lines, as pieces, as ids.
UNPACKED, FORMS = 4, 4


@dataclass(frozen=True)
class RunCost:
    """Cost of a run: parameters, targets (`tokens`), bytes kept on disk, and bytes of its state during training."""

    run: Run
    parameters: int
    tokens: int
    bytes: int
    state: int

    def seconds(self, machine: Machine) -> float:
        """Training time in seconds; on GPUs without validation."""
        return machine.training_seconds(self.run.settings)

    def gib(self, machine: Machine) -> float | None:
        """Peak memory of its training in GiB; None if the machine has no row with a memory."""
        return machine.gib(size_of(self.run.settings), training_of(self.run.settings).tokens)


def costs_of(table: RunTable) -> list[RunCost]:
    """The cost of every training of a table, in order; runs that copy another's files are left out."""
    keeps_weights = table.config["keep_weights"]
    return [_cost(run, keeps_weights) for run in table.runs.values() if same_training(table, run) is None]


def largest_gib(costs: list[RunCost], machine: Machine) -> float | None:
    """The largest peak memory of these trainings in GiB; None if it is unknown, or if there are none."""
    known = [size for cost in costs if (size := cost.gib(machine)) is not None]
    return max(known, default=None)


def _cost(run: Run, keeps_weights: bool) -> RunCost:
    size, average = size_of(run.settings), run.settings["training"].get("average", 0)
    snapshots = snapshots_of(run.settings) * size.types * size.width * SNAPSHOT_BYTES
    # A new best or validated model is written before the one that it replaces is removed.
    validated = (average or 1) + 1
    state = size.parameters * (2 * SAVED + validated * WEIGHTS) + snapshots
    # The best and the last model; at the end, snapshots are in the state, too, until they have been copied.
    kept = (size.parameters * 2 * WEIGHTS + snapshots) * keeps_weights
    return RunCost(run, size.parameters, training_of(run.settings).total, kept + SMALL_FILES, state)


def data_bytes(files: list[Wanted]) -> int:
    """Approximate size of `files` as archives, texts and tokens. Unpublished sizes count 0."""
    archives = {(wanted.dataset, wanted.file.path): wanted.file.size or 0 for wanted in files}
    texts = [wanted.member or wanted.file for wanted in files]
    known = sum(text.size or 0 for text in texts)
    # Members of unpublished size are estimated from their archives.
    unknown = {(wanted.dataset, wanted.file.path) for wanted in files if wanted.member and not wanted.member.size}
    return sum(archives.values()) + FORMS * (known + UNPACKED * sum(archives[key] for key in unknown))
