"""Time that runs will take on this machine, predicted from finished ones."""

import statistics

from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.planning import throughput
from rarepapers.planning.local_device import find_device, load_local

# Smallest share of a training from which its speed is measured. The seconds of a run include its start and evaluation,
# which would dominate in a smaller one.
LEAST_SHARE = 0.2


class Speed:
    """Seconds of runs: the estimate of `rarepapers plan`, corrected by the runs of this session.

    The correction is the median ratio of measured to planned seconds over runs of the same experiment, or over all runs
    if none of those is finished. It accounts for validation, evaluation and the number of runs that share the machine.
    """

    def __init__(self, table: RunTable):
        machines = load_local(table.project)
        _, name, _ = find_device(table.config["device"], machines)
        # An unknown GPU counts as the fastest known one: a run that does not fit in the time left saves its state.
        fastest = min(machines.values(), key=lambda machine: (machine.name == throughput.CPU, machine.slower))
        self.machine = machines[name] if name else fastest
        self.ratios: dict[str, list[float]] = {}

    def planned(self, run: Run) -> float:
        """Planned seconds of its training."""
        return self.machine.training_seconds(run.settings)

    def note(self, run: Run, seconds: float, share: float = 1.0) -> None:
        """Record that a run took `seconds` for this share of its training; a small share is ignored."""
        if share >= LEAST_SHARE:
            self.ratios.setdefault(run.experiment, []).append(seconds / (share * self.planned(run)))

    def expected(self, run: Run, share: float = 1.0) -> float:
        """Expected seconds for this share of a run."""
        known = self.ratios.get(run.experiment) or [ratio for found in self.ratios.values() for ratio in found]
        return share * self.planned(run) * (statistics.median(known) if known else 1.0)
