"""Jobs: their commands equal those of the rules, and their fork server uses no GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from raretok.core.files import write_json
from raretok.experiments.trained_runs import code_that_trains
from raretok.training.finished_files import FILES, RECORD
from raretok.work.jobs import PRELOADED, Jobs

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
    shell = re.search(rf"python -m raretok {rule} \\\n(.*?)\"\"\"", text, flags=re.DOTALL)[1]
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
    monkeypatch.setattr("raretok.work.run_status.same_training", lambda *_: other)
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


@pytest.mark.slow
def test_the_server_uses_no_gpu():
    """Forks of a process with a CUDA context cannot use CUDA."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    subprocess.run([sys.executable, "-c", WATCH, *PRELOADED], env=environment, check=True)
