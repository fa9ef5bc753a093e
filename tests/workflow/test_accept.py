"""The command `accept`: results of another machine are valid here if nothing has changed."""

import os
import shutil
import time

import pytest
import yaml
from tests.workflow.conftest import PARTS
from tests.workflow.running import snakemake
from tests.workflow.test_dag import TABLE8, planned

from rarepapers.core.files import read_json, write_json
from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs.accept import accept

RUN = "shakespeare/dut_m1/seed1"


@pytest.fixture(scope="module")
def finished(project_at):
    """A project with one finished table."""
    folder = project_at("there")
    result = snakemake(folder, "--cores", 2, TABLE8)
    assert result.returncode == 0, result.stdout
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """Its results in a new clone."""
    for part in (*PARTS, "results"):
        copy = shutil.copytree if (finished / part).is_dir() else shutil.copy
        copy(finished / part, tmp_path / part)
    shutil.copytree(finished / "resources", tmp_path / "resources")
    now = time.time()
    for path in (*tmp_path.glob("workflow/**/*.py"), *tmp_path.glob("resources/**/*")):
        os.utime(path, (now, now))
    return tmp_path


def accepted(folder):
    config = yaml.safe_load((folder / "config" / "config.yaml").read_text())
    return accept(load(config | {"papers": ["stop_jostling"]}, folder))


def test_unchanged_results_are_accepted(copied):
    before = planned(snakemake(copied, "-n", TABLE8).stdout)
    assert before["train"] == before["evaluate"] == 2
    found = accepted(copied)
    assert [run.name for run in found.trained] == [run.name for run in found.evaluated]
    assert len(found.trained) == 2
    assert not found.refused
    assert {"train", "evaluate", "prepare"}.isdisjoint(planned(snakemake(copied, "-n", TABLE8).stdout))


def test_a_project_that_ran_older_code_accepts_results_of_this_code(finished, tmp_path):
    here = shutil.copytree(finished, tmp_path / "here")
    for path in (here / ".snakemake" / "metadata").rglob("*"):
        if path.is_file() and (record := read_json(path))["rule"] in ("prepare", "train", "evaluate"):
            write_json(path, record | {"params": [f"{one} of older code" for one in record["params"]]})
    before = planned(snakemake(here, "-n", TABLE8).stdout)
    assert before["prepare"] == 1
    assert before["train"] == before["evaluate"] == 2
    assert not accepted(here).refused
    assert {"train", "evaluate", "prepare"}.isdisjoint(planned(snakemake(here, "-n", TABLE8).stdout))


def test_results_of_other_settings_code_or_data_are_refused(copied):
    folder = copied / "results" / "smoke" / "runs" / RUN
    record = read_json(folder / "training.json")
    for key, reason in (("hash", "its settings differ"), ("sources", "the code"), ("data", "other data")):
        write_json(folder / "training.json", record | {key: "another"})
        assert reason in accepted(copied).refused[RUN]
    # Without records, Snakemake reruns what was refused.
    assert planned(snakemake(copied, "-n", TABLE8).stdout)["train"] == 1
    write_json(folder / "training.json", record)
    metrics = read_json(folder / "metrics.json")
    for key, reason in (("settings", "its settings differ"), ("sources", "the code that measures")):
        write_json(folder / "metrics.json", metrics | {"evaluation": metrics["evaluation"] | {key: {}}})
        found = accepted(copied)
        assert reason in found.refused[f"the evaluation of {RUN}"]
        assert len(found.trained) == 2
    again = planned(snakemake(copied, "-n", TABLE8).stdout)
    assert (again.get("train"), again["evaluate"]) == (None, 1)
    (folder / "last.safetensors").unlink()
    assert "some of its files are missing" in accepted(copied).refused[RUN]
    (copied / "results" / "smoke" / "data" / "synthetic_characters" / "manifest.json").unlink()
    assert "its data are not here" in accepted(copied).refused["shakespeare/dut_m2/seed1"]
