"""Resources of the rules: threads, GPUs, memory, minutes. Memory and minutes grow with every attempt."""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from rarepapers.experiments.run_size import size_of
from rarepapers.experiments.run_table import RunTable
from rarepapers.machine.slurm import failing_nodes
from rarepapers.rule_inputs import evaluate
from rarepapers.rule_inputs.per_job import per_job
from rarepapers.rule_inputs.train import run_of, same_record

# Exists if an NVIDIA driver is loaded; asking torch would import it on every dry run.
GPU_DRIVER = Path("/dev/nvidiactl")
# Memory of any job: libraries, data and activations, of which recorded trainings on a CPU took up to 2,220 MiB; and
# memory per parameter: weights, gradients, two moments, best weights, and a copy of these while the state is saved.
BASE_MEGABYTES = 2500
BYTES_PER_PARAMETER = 36
# Seconds before the time limit at which SLURM sends SIGTERM, so that a training saves its state.
EARLY_WARNING = "--signal=TERM@120"


def options(table: RunTable, *keys: str) -> Callable:
    """Config values that change no result as command-line options: `--runs-per-gpu 2` for `runs_per_gpu: 2`.

    Changing them reruns nothing, because Snakemake does not compare params that derive from a job's files.
    """
    words = [word for key in keys for word in (f"--{key.replace('_', '-')}", str(table.config[key] or ""))]
    return lambda wildcards, output: words


@per_job
def slurm_extra(table: RunTable, wildcards, attempt: int) -> str:
    """Options of sbatch; a second attempt avoids nodes on which several runs failed."""
    nodes = _excluded(table, int(time.monotonic() / 60)) if attempt > 1 else []
    return EARLY_WARNING + (f" --exclude={','.join(nodes)}" if nodes else "")


@lru_cache(maxsize=1)
def _excluded(table: RunTable, minute: int) -> list[str]:
    """Nodes on which several runs failed, looked up once per minute: the jobs of a group must request the same."""
    return failing_nodes(table.run_logs())


def gpus(table: RunTable) -> int:
    """Number of GPUs that a job requests from a cluster: one, unless the config says cpu."""
    return int(table.config["device"] != "cpu")


def gpu_percent(table: RunTable) -> int:
    """A job's share of this machine's GPUs, in percent of one; 0 if `auto` finds no driver."""
    takes = gpus(table) and (table.config["device"] == "cuda" or GPU_DRIVER.exists())
    return 100 // table.config["runs_per_gpu"] if takes else 0


def gpu_share(table: RunTable) -> dict[str, int]:
    """The GPU resources of a job: `gpu` on a cluster, `gpu_percent` on this machine."""
    return {"gpu": gpus(table), "gpu_percent": gpu_percent(table)}


# Training.


@per_job
def training_gpu(table: RunTable, wildcards, attempt: int) -> int:
    """Number of GPUs that a training requests; none for the first attempt of a job that copies files."""
    return gpus(table) if attempt > 1 or not same_record(table, wildcards) else 0


@per_job
def training_gpu_percent(table: RunTable, wildcards, attempt: int) -> int:
    """A training's share of this machine's GPUs, in percent of one."""
    return gpu_percent(table) if attempt > 1 or not same_record(table, wildcards) else 0


@per_job
def training_threads(table: RunTable, wildcards) -> int:
    """Threads of a training, which are part of its settings."""
    return run_of(table, wildcards).settings["training"]["threads"]


def training_minutes(table: RunTable) -> int:
    """Time limit of a training in minutes; a longer training continues in another job."""
    return table.scale_settings["minutes"]["train"]


# Other rules.


@per_job
def run_megabytes(table: RunTable, wildcards, attempt: int) -> int:
    """Memory of a process that trains or measures a run, estimated from the model's size."""
    parameters = size_of(run_of(table, wildcards).settings).parameters
    return (BASE_MEGABYTES + parameters * BYTES_PER_PARAMETER // 10**6) * attempt


@per_job
def gpt2_megabytes(table: RunTable, wildcards, attempt: int) -> int:
    """Memory to measure GPT-2, of which only the embedding is read."""
    model = evaluate.gpt2(table, wildcards)
    return (BASE_MEGABYTES + model["width"] * model["vocabulary"] * BYTES_PER_PARAMETER // 10**6) * attempt


def megabytes(first: int) -> Callable:
    """Memory of a job whose first attempt gets `first` MB."""
    return lambda wildcards, attempt: first * attempt


@per_job
def evaluation_minutes(table: RunTable, wildcards, attempt: int) -> int:
    """Time limit of an evaluation in minutes; it grows, because every attempt starts from the beginning."""
    return table.scale_settings["minutes"]["evaluate"] * attempt


@per_job
def data_minutes(table: RunTable, wildcards, attempt: int) -> int:
    """Time limit of a data preparation job in minutes; it grows, as in `evaluation_minutes`."""
    return table.scale_settings["minutes"]["data"] * attempt
