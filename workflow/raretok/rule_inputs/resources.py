"""What jobs take of a machine: threads, GPUs, memory, minutes."""

from collections.abc import Callable
from pathlib import Path

from raretok.core.errors import UserError
from raretok.experiments.joint_runs import Stack
from raretok.experiments.run_size import size_of
from raretok.experiments.run_table import Run, RunTable

# Present where an NVIDIA driver is loaded; asking torch would cost every dry run its import.
GPU_DRIVER = Path("/dev/nvidiactl")
# What a job of any size takes, and what it takes for each parameter: weights, gradients, two moments, the best weights,
# and a copy of all that while it is written. A further attempt gets as much again.
BASE_MEGABYTES = 1500
BYTES_PER_PARAMETER = 36
# For SLURM: SIGTERM so many seconds before the time limit, in which a training saves its state
# (`raretok.machine.slurm`).
EARLY_WARNING = "--signal=TERM@120"
# What runs trained together keep of a forward pass, where that is not in a GPU's memory: for each token, layer and
# dimension.
BYTES_PER_ACTIVATION = 160


class Hardware(RunTable):
    """The run table as the resources of rules see it. Methods named `..._of` take a job's wildcards."""

    def __init__(self, config: dict, root: Path):
        super().__init__(config, root)
        for key in ("runs_per_gpu", "together"):
            if self.processes > 1 and config[key] > 1:
                raise UserError(f"config: processes and {key} are both above 1; a run of several processes is alone")

    early_warning = EARLY_WARNING

    def run_of(self, wildcards) -> Run:
        """The run of a job."""
        return self.run(wildcards.experiment, wildcards.method, wildcards.seed)

    @property
    def processes(self) -> int:
        """How many processes train a run together, with a GPU each where there are GPUs."""
        return self.config["processes"]

    @property
    def gpus(self) -> int:
        """GPUs that a process asks a cluster for, whatever this machine has: one unless config says cpu."""
        return int(self.config["device"] != "cpu")

    @property
    def gpu_percent(self) -> int:
        """What a process takes of this machine's GPUs, in percent of one; 0 where `auto` finds no driver."""
        takes = self.gpus and (self.config["device"] == "cuda" or GPU_DRIVER.exists())
        return 100 // self.config["runs_per_gpu"] if takes else 0

    def computes(self, wildcards, attempt: int) -> bool:
        """Whether a training has something to compute, or only puts in place what another job has computed."""
        return attempt > 1 or not (self.mark_of(wildcards) or self.same_training_of(wildcards))

    def training_gpus_of(self, wildcards, attempt: int) -> int:
        """GPUs that a training asks for."""
        return self.gpus * self.processes * self.computes(wildcards, attempt)

    def training_gpu_percent_of(self, wildcards, attempt: int) -> int:
        """What a training takes of this machine's GPUs, in percent of one."""
        return self.gpu_percent * self.processes * self.computes(wildcards, attempt)

    def threads_of(self, wildcards) -> int:
        """Threads of each process of a run, which are part of its settings."""
        return self.run_of(wildcards).settings["training"]["threads"]

    def training_threads_of(self, wildcards) -> int:
        """Threads of all processes of a training."""
        return self.threads_of(wildcards) * self.processes

    def memory_of(self, wildcards, attempt: int) -> int:
        """Memory of a measurement in MB, an estimate from its model's size, more at every attempt."""
        parameters = size_of(self.run_of(wildcards).settings).parameters
        return (BASE_MEGABYTES + parameters * BYTES_PER_PARAMETER // 10**6) * attempt

    def training_memory_of(self, wildcards, attempt: int) -> int:
        """Memory of all processes of a training in MB."""
        return self.memory_of(wildcards, attempt) * self.processes

    def stack_memory(self, stack: Stack, wildcards, attempt: int) -> int:
        """Memory of a stack's job in MB, an estimate, more at every attempt."""
        settings = stack.runs[0].settings
        model, tokens = settings["model"], settings["training"]["batch_size"] * settings["model"]["context"]
        size = size_of(settings).parameters * BYTES_PER_PARAMETER
        if not self.gpu_percent:
            size += tokens * model["layers"] * model["width"] * BYTES_PER_ACTIVATION
        return (BASE_MEGABYTES + len(stack.runs) * size // 10**6) * attempt

    def gpt2_memory_of(self, wildcards, attempt: int) -> int:
        """Memory of a measurement of GPT-2 in MB: its embedding is what is read."""
        gpt2 = self.gpt2_of(wildcards)
        return (BASE_MEGABYTES + gpt2["width"] * gpt2["vocabulary"] * BYTES_PER_PARAMETER // 10**6) * attempt

    def megabytes(self, first: int) -> Callable:
        """Memory of a job that takes `first` MB as far as is known: as much again at every attempt."""
        return lambda wildcards, attempt: first * attempt

    # Minutes that a cluster gives a job, by scale. A training that needs more continues in a further job.

    def training_minutes_of(self, wildcards) -> int:
        """Minutes of a training."""
        return self.scale_settings["minutes"]["train"]

    def evaluation_minutes_of(self, wildcards, attempt: int) -> int:
        """Minutes of a measurement, which starts anew: as many more at every attempt."""
        return self.scale_settings["minutes"]["evaluate"] * attempt

    def data_minutes_of(self, wildcards, attempt: int) -> int:
        """Minutes of what turns a text into tokens or links, which starts anew, too."""
        return self.scale_settings["minutes"]["data"] * attempt
