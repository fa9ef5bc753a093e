"""What a user may try: each gives one sentence, and starts nothing."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
from snakemake_interface_executor_plugins.settings import SharedFSUsage
from tests.workflow.running import has_state, slow_down, snakemake, wait_for

from rarepapers.core.errors import UserError
from rarepapers.rule_inputs.workflow_start import check_shared_disk

NO_DISK = "this workflow needs a disk that all machines share"
TABLE = "results/smoke/tables/stop_jostling/table8.csv"


@pytest.fixture
def project(project):
    """A project with its profiles where Snakemake finds them."""
    (project / "profiles").symlink_to("workflow/profiles")
    return project


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--", "results/small/tables/agg/table1.csv"],
            "agg/table1.csv is of scale small, but the config says smoke; add --config scale=small",
        ),
        (
            ["--", "results/smoke/runs/shakespeare/bas/seed1/metrics.json"],
            "there is no run shakespeare/bas/seed1 at scale smoke with seeds [1]",
        ),
        (
            ["--", "results/smoke/runs/shakespeare/baseline/seed9/metrics.json"],
            "there is no run shakespeare/baseline/seed9 at scale smoke with seeds [1]",
        ),
        (
            ["agg", "--config", "papers=[agps]"],
            "agg is not among the config's papers; add it to config/config.yaml, or --config papers=[agps,agg]",
        ),
        (["--config", "papers=agg"], "papers is 'agg'; it must be a list, in brackets"),
        (["--sdm", "apptainer"], "the rules have no containers of their own; leave out apptainer here"),
        (["--shared-fs-usage", "none"], NO_DISK),
        (["--shared-fs-usage", "input-output", "persistence"], NO_DISK),
        (
            ["--report"],
            "marked for report but does not exist; --report is for a finished workflow, so run it first",
        ),
    ],
)
def test_one_sentence(project, arguments, sentence):
    result = snakemake(project, "--cores", 1, *arguments)
    assert result.returncode
    assert result.stdout.count(sentence) == 1, result.stdout
    assert "Traceback" not in result.stdout
    assert "Missing metadata" not in result.stdout
    assert not (project / "resources").exists()


@pytest.mark.parametrize(("usage", "provider"), [(SharedFSUsage.all(), "fs"), ({SharedFSUsage.INPUT_OUTPUT}, None)])
def test_storage_is_no_shared_disk(usage, provider):
    with pytest.raises(UserError, match=NO_DISK):
        check_shared_disk(usage, provider)


def test_touch_starts_and_plans_nothing(project):
    assert snakemake(project, "--cores", 2, "--", TABLE).returncode == 0
    plan = project / "results/smoke/plan.txt"
    plan.unlink()
    (project / "results/smoke/data/synthetic_characters/manifest.json").touch()
    result = snakemake(project, "--cores", 2, "--touch", "--", TABLE)
    assert result.returncode == 0, result.stdout
    assert "models to train" not in result.stdout
    assert not plan.exists()


def test_a_dry_run_in_a_checkout_of_somebody_else(project):
    """As a user without rights, since root may write anywhere."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    for folder in (project, *project.parents[:2]):
        folder.chmod(0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/tmp"]
    result = snakemake(project, "-n", before=nobody)
    if "Permission denied" in result.stdout and ".venv" in result.stdout:
        pytest.skip("others may not read this environment")
    assert result.returncode
    assert f"{project} is not writable, but Snakemake writes there, even with -n" in result.stdout


def test_after_ctrl_c_each_stopped_job_is_named_once(project):
    slow_down(project, 30000)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "checkpoint_seconds=1", "--", TABLE]
    process = subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    wait_for(has_state(project), process)
    os.killpg(process.pid, signal.SIGINT)
    output = process.communicate(timeout=120)[0]
    _, _, end = output.partition("stopped:\n")
    assert "train shakespeare/" in end, output
    named = [line for line in output.splitlines() if line.startswith(("train shakespeare/", "failed: train"))]
    assert len(named) == len(set(named)) <= 2, output
