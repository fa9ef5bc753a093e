"""How long runs will take on this machine, from how long others took."""

import statistics

from raretok.experiments.run_size import size_of, training_of
from raretok.experiments.run_table import Run, RunTable
from raretok.planning import throughput
from raretok.rule_inputs.resources import gpu_percent


class Speed:
    """Seconds of runs: what `raretok plan` estimates, corrected by what runs of this session took.

    The correction is the median of the measured ratios of the run's experiment, or of all where none of those is
    finished. It holds what no plan knows: validation, evaluation, and how many runs share the machine.
    """

    def __init__(self, table: RunTable):
        machines = throughput.load(table.root).machines
        is_gpu = gpu_percent(table) > 0
        self.machine = next(machine for name, machine in machines.items() if (name != throughput.CPU) == is_gpu)
        self.ratios: dict[str, list[float]] = {}

    def planned(self, run: Run) -> float:
        """Seconds of its training that a plan says."""
        training = training_of(run.settings)
        return training.steps * training.passes * self.machine.seconds(size_of(run.settings), training.tokens)

    def note(self, run: Run, seconds: float, share: float = 1.0) -> None:
        """A run took so many seconds for this share of its training."""
        if share > 0:
            self.ratios.setdefault(run.experiment, []).append(seconds / (share * self.planned(run)))

    def expected(self, run: Run, share: float = 1.0) -> float:
        """Seconds that this share of a run will take."""
        known = self.ratios.get(run.experiment) or [ratio for found in self.ratios.values() for ratio in found]
        return share * self.planned(run) * (statistics.median(known) if known else 1.0)
