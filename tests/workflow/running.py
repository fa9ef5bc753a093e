"""Snakemake as a user starts it."""

import os
import subprocess
import sys


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
