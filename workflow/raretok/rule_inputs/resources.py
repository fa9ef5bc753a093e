"""Resources of the rules: threads, GPUs, memory, minutes. More memory and minutes at every attempt."""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from raretok.experiments.joint_runs import JointRuns
from raretok.experiments.run_size import size_of
from raretok.experiments.run_table import RunTable
from raretok.machine.slurm import failing_nodes
from raretok.rule_inputs import evaluate
from raretok.rule_inputs.train import joint_mark, run_of, same_record

# Present where an NVIDIA driver is loaded; asking torch would cost every dry run its import.
GPU_DRIVER = Path("/dev/nvidiactl")
# What a job of any size takes, and what it takes for each parameter: weights, gradients, two moments, the best weights,
# and a copy of all that while it is written.
BASE_MEGABYTES = 1500
BYTES_PER_PARAMETER = 36
# For SLURM: SIGTERM so many seconds before the time limit, in which a training saves its state.
EARLY_WARNING = "--signal=TERM@120"
# What runs trained together keep of a forward pass, where that is not in a GPU's memory: for each token, layer and
# dimension.
BYTES_PER_ACTIVATION = 160


def options(table: RunTable, *keys: str) -> Callable:
    """Values of config.yaml that change no result as options of a command: `--runs-per-gpu 2` for `runs_per_gpu: 2`.

    Their change reruns nothing: Snakemake does not compare parameters that derive from a job's files.
    """
    words = [word for key in keys for word in (f"--{key.replace('_', '-')}", str(table.config[key] or ""))]
    return lambda wildcards, output: words


def slurm_extra(table: RunTable, wildcards, attempt: int) -> str:
    """Options of sbatch; a second attempt keeps away from nodes on which several runs failed."""
    nodes = _excluded(table, int(time.monotonic() / 60)) if attempt > 1 else []
    return EARLY_WARNING + (f" --exclude={','.join(nodes)}" if nodes else "")


@lru_cache(maxsize=1)
def _excluded(table: RunTable, minute: int) -> list[str]:
    """Those nodes, looked up once a minute: the jobs of one group must ask for the same."""
    return failing_nodes(table.run_logs())


def gpus(table: RunTable) -> int:
    """GPUs that a process asks a cluster for, whatever this machine has: one unless config says cpu."""
    return int(table.config["device"] != "cpu")


def gpu_percent(table: RunTable) -> int:
    """What a process takes of this machine's GPUs, in percent of one; 0 where `auto` finds no driver."""
    takes = gpus(table) and (table.config["device"] == "cuda" or GPU_DRIVER.exists())
    return 100 // table.config["runs_per_gpu"] if takes else 0


# Of trainings.


def training_processes(table: RunTable, wildcards, attempt: int) -> int:
    """Processes that compute, a GPU each where there are GPUs; 0 for a job that puts files of another one in place."""
    computes = attempt > 1 or not (joint_mark(table, wildcards) or same_record(table, wildcards))
    return table.config["processes"] * computes


def training_gpus(table: RunTable, wildcards, attempt: int) -> int:
    """GPUs that a training asks for."""
    return gpus(table) * training_processes(table, wildcards, attempt)


def training_gpu_percent(table: RunTable, wildcards, attempt: int) -> int:
    """What a training takes of this machine's GPUs, in percent of one."""
    return gpu_percent(table) * training_processes(table, wildcards, attempt)


def training_threads(table: RunTable, wildcards) -> int:
    """Threads of all processes of a training; those of one process are part of its settings."""
    return run_of(table, wildcards).settings["training"]["threads"] * table.config["processes"]


def training_megabytes(table: RunTable, wildcards, attempt: int) -> int:
    """Memory of all processes of a training."""
    return run_megabytes(table, wildcards, attempt) * table.config["processes"]


def training_minutes(table: RunTable) -> int:
    """Minutes of a training; one that needs more continues in a further job."""
    return table.scale_settings["minutes"]["train"]


def joint_megabytes(table: RunTable, stack: JointRuns, wildcards, attempt: int) -> int:
    """Memory of runs that are trained together, an estimate."""
    settings = stack.runs[0].settings
    model, tokens = settings["model"], settings["training"]["batch_size"] * settings["model"]["context"]
    size = size_of(settings).parameters * BYTES_PER_PARAMETER
    if not gpu_percent(table):
        size += tokens * model["layers"] * model["width"] * BYTES_PER_ACTIVATION
    return (BASE_MEGABYTES + len(stack.runs) * size // 10**6) * attempt


# Of others.


def run_megabytes(table: RunTable, wildcards, attempt: int) -> int:
    """Memory of a process that trains or measures a run, an estimate from its model's size."""
    parameters = size_of(run_of(table, wildcards).settings).parameters
    return (BASE_MEGABYTES + parameters * BYTES_PER_PARAMETER // 10**6) * attempt


def gpt2_megabytes(table: RunTable, wildcards, attempt: int) -> int:
    """Memory of a measurement of GPT-2: its embedding is what is read."""
    model = evaluate.gpt2(table, wildcards)
    return (BASE_MEGABYTES + model["width"] * model["vocabulary"] * BYTES_PER_PARAMETER // 10**6) * attempt


def megabytes(first: int) -> Callable:
    """Memory of a job that takes `first` MB as far as is known."""
    return lambda wildcards, attempt: first * attempt


def evaluation_minutes(table: RunTable, wildcards, attempt: int) -> int:
    """Minutes of a measurement, which starts anew at every attempt."""
    return table.scale_settings["minutes"]["evaluate"] * attempt


def data_minutes(table: RunTable, wildcards, attempt: int) -> int:
    """Minutes of what turns a text into tokens or links, which starts anew, too."""
    return table.scale_settings["minutes"]["data"] * attempt
