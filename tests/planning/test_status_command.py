"""`rarepapers status`: running, failed and interrupted trainings, from their states and logs."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import torch
import yaml

from rarepapers.__main__ import main
from rarepapers.core.config_files import read_config
from rarepapers.core.files import write_json, write_text
from rarepapers.experiments.config_types import Choices
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.planning.status_command import saved_progress
from rarepapers.rule_inputs import train
from rarepapers.training.checkpoint import save_checkpoint
from rarepapers.training.finished_files import FILES, RECORD
from rarepapers.training.holder import HOLDER, only_one

ROOT = Path(__file__).parents[2]
METHODS = ("baseline", "threshold_m2", "cosreg")
LOG = "12:00:01 step 30/1200  loss 2.5  900 tokens/s  7.5 min left\n"


@pytest.fixture
def project(tmp_path):
    """Config and package, with a scale `tiny`: three methods of stop_jostling, 1,200 steps each."""
    for part in ("config", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    smoke = yaml.safe_load((ROOT / "config/scales/smoke.yaml").read_text())["papers"]["stop_jostling"]
    smoke["experiments"]["shakespeare"]["training"].update(steps=1200, validation={"every": 400, "batches": 2})
    paper = yaml.safe_load((ROOT / "config/papers/stop_jostling/paper.yaml").read_text())
    smoke["methods"] = {name: None for name in paper["methods"] if name not in METHODS}
    tiny = {"title": "tiny", "seeds": 1, "minutes": {"train": 1, "evaluate": 1, "data": 1}}
    tiny["papers"] = {"stop_jostling": smoke}
    (tmp_path / "config/scales/tiny.yaml").write_text(yaml.safe_dump(tiny))
    return tmp_path


@pytest.fixture
def table(project):
    """The run table of scale tiny."""
    chosen = {"scale": "tiny", "papers": ["stop_jostling"]}
    return load(read_config(project / "config/config.yaml", Choices) | chosen, project)


@pytest.fixture
def states(project, table):
    """Folders of runs' states, and their logs."""
    found = {}
    for method in METHODS:
        run = table.run("shakespeare", method, 1)
        state, log = project / train.state(table, run), project / table.logs / "train" / f"{run.name}.txt"
        for folder in (state, log.parent):
            folder.mkdir(parents=True)
        log.write_text(LOG)
        found[method] = state, log
    return found


def said(project, capsys):
    """The lines that the command prints."""
    assert main(["status", "--scale", "tiny", "--papers", "stop_jostling", "--root", str(project)]) == 0
    return capsys.readouterr().out.splitlines()


def test_nothing_started(project, capsys, tmp_path_factory):
    begins = "tiny: 3 models: 0 done; 3 not begun; "
    assert said(project, capsys)[0].startswith(begins)
    elsewhere = ["--root", str(tmp_path_factory.mktemp("results")), "--project", str(project)]
    assert main(["status", "--scale", "tiny", "--papers", "stop_jostling", *elsewhere]) == 0
    assert capsys.readouterr().out.startswith(begins)


def save_at(state, step, sources):
    """Save a checkpoint of a step, by code with the digest `sources`."""
    facts = {"run": "r", "progress": {"step": step}, "sources": sources}
    save_checkpoint(state, {"model": {"weight": torch.ones(2)}}, facts)


def test_a_state_of_other_code_is_no_progress(states, table):
    """Training would begin anew."""
    state, _ = states["cosreg"]
    run = table.run("shakespeare", "cosreg", 1)
    save_at(state, 300, code_that_trains(run))
    assert saved_progress(table, run)["step"] == 300
    save_at(state, 300, "other")
    assert saved_progress(table, run) is None


def test_a_training_on_other_data_does_not_count(project, table, capsys, monkeypatch):
    monkeypatch.setattr("rarepapers.planning.status_command.other_evaluation", lambda *_: "")
    run = table.run("shakespeare", "baseline", 1)
    folder, manifest = project / table.folder(run), project / train.manifest(table, run)
    for name in (*FILES, "metrics.json"):
        write_text(folder / name, "")
    write_json(folder / RECORD, {"hash": run.hash, "sources": code_that_trains(run), "data": "these"})
    # On a machine without the data, results of another one count.
    for data, is_done in ((None, True), ("these", True), ("others", False)):
        if data:
            write_json(manifest, {"sha256": data})
        assert said(project, capsys)[0].startswith(f"tiny: 3 models: {int(is_done)} done; {3 - is_done} not begun; ")


def test_running_failed_and_interrupted_trainings_are_listed(project, states, capsys, table):
    (running, _), (_, log), (interrupted, _) = (states[name] for name in METHODS)
    log.write_text(LOG + "raretok train: error: the disk is full (/x); make room and start again\n")
    save_at(interrupted, 400, code_that_trains(table.run("shakespeare", "cosreg", 1)))
    with only_one(running):
        lines = said(project, capsys)
    assert (
        "0 done; 0 not begun; 0 trained, not measured; 1 interrupted, with a saved state; 1 failed; 1 at work"
        in lines[0]
    )
    assert lines[1] == "at work:"
    assert lines[2].startswith("  shakespeare/baseline/seed1  step 30/1200, 7.5 min left  on ")
    assert f", process {os.getpid()}, since " in lines[2]
    assert lines[4].startswith(
        "  shakespeare/threshold_m2/seed1  raretok train: error: the disk is full (/x); make room"
    )
    assert lines[6] == "  shakespeare/cosreg/seed1  at step 400 of 1200"
    assert not (running / HOLDER).exists()


@pytest.mark.parametrize(("host", "silent", "at_work"), [(None, 0, 0), ("elsewhere", 0, 1), ("elsewhere", 3600, 0)])
def test_a_training_whose_process_is_gone_is_interrupted(project, states, capsys, monkeypatch, host, silent, at_work):
    """Also one on another machine, which counts as running while it writes."""
    folder, log = states["baseline"]
    (folder / "checkpoint.safetensors").write_bytes(b"damaged")
    with only_one(folder):
        holder = json.loads((folder / HOLDER).read_text())
    write_json(folder / HOLDER, holder | {"process": 2**22 + 1} | ({"host": host} if host else {}))
    then = time.time() - silent
    for path in (folder / HOLDER, log):
        os.utime(path, (then, then))
    assert said(project, capsys)[0].startswith(f"tiny: 3 models: 0 done; {3 - at_work} not begun; ")
