"""Snakemake as a user starts it, and trainings that run long enough to be interrupted."""

import os
import subprocess
import sys
import time

import psutil
import yaml


def snakemake(folder, *arguments, background=False, before=(), **environment):
    """Run Snakemake in `folder`, without the tests' own PYTHONPATH; the finished process, or a running one.

    before: a command that starts another one, such as `unshare`.
    """
    command = [*before, sys.executable, "-m", "snakemake", *map(str, arguments)]
    options = {
        "cwd": folder,
        "env": {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    return subprocess.Popen(command, **options) if background else subprocess.run(command, **options)


def slow_down(project, steps):
    """Make the smoke training long enough to be interrupted."""
    path = project / "config" / "scales" / "smoke.yaml"
    scale = yaml.safe_load(path.read_text())
    scale["papers"]["stop_jostling"]["experiments"]["shakespeare"]["training"]["steps"] = steps
    path.write_text(yaml.safe_dump(scale))


def training_jobs(process):
    """Processes of `rarepapers train` below a process."""
    children = psutil.Process(process.pid).children(recursive=True)
    found = []
    for child in children:
        try:
            if child.name().startswith("python") and {"rarepapers", "train"} <= set(child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def wait_for(condition, process, seconds=90):
    """Wait until a condition holds; fails with the output if the process ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def has_state(project, run="**"):
    """Whether any training, or that of one run, has saved a checkpoint."""
    return lambda: list(project.glob(f"results/smoke/state/{run}/**/checkpoint.safetensors"))
