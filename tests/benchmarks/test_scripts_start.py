"""Every script of benchmarks/ runs at its smallest size, so that no measurement rots."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# Arguments of a small run, and words that it prints. gpu.py has tests of its own, on a stand-in for a GPU.
SCRIPTS = {
    "claims_error_rate.py": ("--projects 20", "moderated t"),
    "decode.py": ("--sentences 10 --repetitions 1 --threads 1", "ours: best"),
    "dry_run.py": ("--scales smoke --seeds 1", "smoke"),
    "jobs.py": ("--seeds 1 --papers stop_jostling --executor stub", "stub"),
    "output_layer.py": ("--presets small --rows MLE --repetitions 1", "MLE, plain"),
    "training_step.py": ("--repetitions 1 --steps 1 --threads 1", "plain loop"),
}
# Scripts that need real data or minutes, that have tests of their own, and modules of others.
ELSEWHERE = {"encode.py", "make.py", "gpu.py", "random_streams.py", "plain_loops.py"}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_runs_at_its_smallest_size(name, tmp_path):
    arguments, word = SCRIPTS[name]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / name), *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=FOLDER.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    assert word in done.stdout


def test_every_script_is_tested_or_named():
    assert {path.name for path in FOLDER.glob("*.py")} == {*SCRIPTS, *ELSEWHERE}
