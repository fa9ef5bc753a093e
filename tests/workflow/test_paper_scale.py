"""Planning at scale `paper`: five seeds of all papers in seconds, and `make fetch` covers all downloads."""

import re
import shutil

import pytest
from benchmarks.dry_run import dry_run
from benchmarks.jobs import measure
from tests.workflow.conftest import PARTS, ROOT

from rarepapers.core.config_files import read_yaml
from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs.required_files import needed_files

pytestmark = pytest.mark.slow

SECONDS, GIB = 20, 1
SEEDS = 5
# Seconds of Snakemake's own process per job.
SECONDS_A_JOB = 0.08


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the project, in which only .snakemake is written."""
    folder = tmp_path_factory.mktemp("project")
    for part in PARTS:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
    return folder


@pytest.fixture(scope="module")
def planned(folder):
    return dry_run(folder, "scale=paper", f"seeds={SEEDS}", "gpt2_weights=hub")


@pytest.fixture(scope="module")
def table(folder):
    config = read_yaml(folder / "config" / "config.yaml")
    return load(config | {"scale": "paper", "seeds": SEEDS, "gpt2_weights": "hub"}, folder)


def test_planning_is_cheap(planned, table):
    assert planned.jobs("train") == len(table.runs) > 600
    # CPU time, which does not grow on a busy machine.
    assert planned.processor_seconds <= SECONDS
    assert planned.gib <= GIB


def test_fetch_covers_the_downloads_of_all_jobs(planned, table):
    asked = re.findall(r"^rule download:\n    output: resources/(\S+)$", planned.text, flags=re.MULTILINE)
    assert sorted(f"{wanted.dataset}/{wanted.name}" for wanted in needed_files(table)) == sorted(asked)


@pytest.mark.parametrize("executor", ["local", "stub"])
def test_a_job_costs_snakemake_little(executor):
    """One seed of scale smoke; benchmarks/jobs.py measures it as the number of runs grows."""
    cost = measure(1, "smoke", executor)
    assert cost.runs == len(load(read_yaml(ROOT / "config/config.yaml") | {"seeds": 1}, ROOT).runs)
    assert cost.processor_seconds <= SECONDS_A_JOB * cost.jobs
