"""Jobs: their commands equal those of the rules, they requeue no SLURM job, and their fork server uses no GPU."""

import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rarepapers.core.errors import EXIT_INTERRUPTED, Interrupted
from rarepapers.core.files import write_json
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.machine import commands
from rarepapers.training.finished_files import FILES, RECORD
from rarepapers.work import job_data, work_command
from rarepapers.work.jobs import PRELOADED, TRAIN, Jobs, _do

ROOT = Path(__file__).parents[2]
WATCH = """
import importlib, sys, torch

def refuse(*_, **__):
    sys.exit("asked for a GPU")

for name in ("is_available", "device_count", "current_device", "get_device_properties", "_lazy_init"):
    setattr(torch.cuda, name, refuse)
for module in sys.argv[1:]:
    importlib.import_module(module)
"""


@pytest.mark.parametrize("rule", ["train", "evaluate"])
def test_a_job_has_the_command_of_its_rule(table_with, rule):
    table = table_with()
    run, jobs = table.run("shakespeare", "baseline", 1), Jobs(table, 3, evaluates=True)
    words = jobs.training(run) if rule == "train" else jobs.evaluation(run)
    text = (ROOT / "workflow" / "rules" / f"{rule}.smk").read_text()
    shell = re.search(rf"python -m rarepapers {rule} \\\n(.*?)\"\"\"", text, flags=re.DOTALL)[1]
    chosen = re.search(r"machine=machine.options\((.*?)\)", text)[1]
    options = {f"--{key.replace('_', '-')}" for key in re.findall(r'"(\w+)"', chosen)}
    # Here one process trains a run.
    given = set(re.findall(r"--[\w-]+", shell)) | options - {"--processes"}
    assert {word for word in words if word.startswith("--")} == given
    assert words[words.index("--runs-per-gpu") + 1] == "3"


def test_only_a_training_by_this_code_whose_weights_are_there_is_copied(table_with, monkeypatch):
    """Weights are deleted after measuring with `keep_weights: false`."""
    table = table_with()
    run, other = (table.run("shakespeare", method, 1) for method in ("baseline", "threshold_m2"))
    monkeypatch.setattr("rarepapers.work.run_status.same_training", lambda *_: other)
    name = f"{table.folder(other)}/{RECORD}"
    folder = table.root / table.folder(other)
    folder.mkdir(parents=True)
    for file in FILES:
        (folder / file).touch()
    jobs = Jobs(table, 1, evaluates=True)
    record = {"hash": other.hash, "sources": code_that_trains(other)}
    write_json(folder / RECORD, record | {"sources": "other"})
    assert name not in jobs.training(run)
    write_json(folder / RECORD, record)
    assert name in jobs.training(run)
    (folder / "model.safetensors").unlink()
    assert name not in jobs.training(run)


def test_a_stopped_training_does_not_requeue_the_slurm_job_of_work(table_with, slurm_answers, monkeypatch, tmp_path):
    """It is stopped at the end of --minutes, too."""

    def train(*_):
        raise Interrupted("SIGTERM: stopped")

    table, calls, log = table_with(), slurm_answers(), tmp_path / "log.txt"
    run = table.run("shakespeare", "baseline", 1)
    monkeypatch.setattr(commands, "run", train)
    monkeypatch.setattr(job_data, "provide_for_training", lambda *_: None)
    arguments = Jobs(table, 1, evaluates=True).training(run)
    job = multiprocessing.get_context("fork").Process(target=_do, args=(table, run, TRAIN, arguments, log))
    job.start()
    job.join()
    assert job.exitcode == EXIT_INTERRUPTED
    assert not calls.exists()


@pytest.mark.parametrize("signal", [None, "SIGTERM"])
def test_work_requeues_its_slurm_job_only_if_a_signal_stopped_it(project, slurm_answers, monkeypatch, signal):
    class Pool:
        def __init__(self, *_):
            self.done, self.failed, self.signal = [], [], signal

        def work(self, *_):
            """Nothing."""

    calls = slurm_answers()
    monkeypatch.chdir(project)
    monkeypatch.setattr(work_command, "WorkerPool", Pool)
    status = commands.main(["work", "--scale", "tiny", "--papers", "stop_jostling", "--root", str(project)])
    assert status == (EXIT_INTERRUPTED if signal else 0)
    requeued = calls.read_text().count("scontrol requeue 17") if calls.exists() else 0
    assert requeued == (1 if signal else 0)


@pytest.mark.slow
def test_the_server_uses_no_gpu():
    """Forks of a process with a CUDA context cannot use CUDA."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    subprocess.run([sys.executable, "-c", WATCH, *PRELOADED], env=environment, check=True)
