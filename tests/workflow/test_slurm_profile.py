"""Resources that the profile `slurm` requests, by a dry run without a cluster."""

import re

import pytest
import yaml
import yte
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

from rarepapers.data.catalogue import SYNTHETIC_FILES
from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs import resources as machine

PROFILE = ("--workflow-profile", "workflow/profiles/slurm")
# An output of every tested rule
TARGETS = ("natural_bias", "results/small/tables/stop_jostling/table3.csv")


def resources(text):
    """Rule -> resources of its first job."""
    found = {}
    pattern = r"(?:^|\s)(?:local)?rule ([\w-]+):$(?:(?!rule ).)*?resources: (.*?)$"
    for rule, line in re.findall(pattern, text, re.M | re.S):
        found.setdefault(rule, dict(entry.split("=", 1) for entry in line.split(", ")))
    return found


@pytest.fixture(scope="module")
def asked():
    result = snakemake(ROOT, "-n", "--nolock", "--forceall", *TARGETS, *PROFILE, "--config", "scale=small")
    assert result.returncode == 0, result.stdout
    return resources(result.stdout)


def test_trainings_and_evaluations_request_a_gpu(asked):
    for rule in ("train", "evaluate", "measure_gpt2"):
        assert asked[rule]["gpu"] == "1"
        # The limit of this machine's GPUs does not matter.
        assert asked[rule]["gpu_percent"] == "0"
    assert not any("gpu" in job for rule, job in asked.items() if rule not in ("train", "evaluate", "measure_gpt2"))


def test_a_training_requests_no_gpu_on_cpus():
    run = ("-n", "--nolock", "--forceall", "results/small/runs/shakespeare/baseline/seed1/model.safetensors")
    result = snakemake(ROOT, *run, *PROFILE, "--config", "scale=small", "device=cpu")
    assert result.returncode == 0, result.stdout
    assert resources(result.stdout)["train"]["gpu"] == "0"


def test_time_limits_are_those_of_the_scale(asked):
    minutes = yaml.safe_load((ROOT / "config/scales/small.yaml").read_text())["minutes"]
    assert asked["train"]["runtime"] == str(minutes["train"])
    assert asked["evaluate"]["runtime"] == str(minutes["evaluate"])
    assert asked["encode_pairs_multi30k_de-en"]["runtime"] == str(minutes["data"])
    assert asked["table"]["runtime"] == "30"


def test_every_job_requests_memory(asked):
    assert all(int(job["mem_mb"]) > 0 for job in asked.values())


def test_further_attempts_request_more():
    table = load({**yaml.safe_load((ROOT / "config/config.yaml").read_text())}, ROOT)
    run = next(iter(table.runs.values()))
    assert machine.run_megabytes(table, run, attempt=3) == 3 * machine.run_megabytes(table, run, attempt=1)
    assert machine.megabytes(8192)(None, attempt=2) == 16384
    assert machine.evaluation_minutes(table, run, attempt=2) == 2 * machine.evaluation_minutes(table, run, attempt=1)
    assert machine.data_minutes(table, run, attempt=2) == 2 * machine.data_minutes(table, run, attempt=1)


def test_groups_name_existing_rules():
    """A renamed rule would silently become a separate job."""
    profile = yte.process_yaml((ROOT / "workflow/profiles/slurm/config.yaml").read_text())
    rules = {
        name
        for path in (ROOT / "workflow/rules").glob("*.smk")
        for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)
    } | {f"synthesise_{kind}" for kind in SYNTHETIC_FILES}
    assert set(profile["groups"]) | set(profile["set-resources"]) <= rules
    assert set(profile["group-components"]) <= set(profile["groups"].values())
