"""The screen: one line per job, and failed jobs at the end."""

import re

import pytest
import yaml
from tests.workflow.running import snakemake

TABLE = "results/smoke/tables/stop_jostling/table8.csv"
LOG = "logs/smoke/train/shakespeare/dut_m1/seed1.txt"


@pytest.fixture
def project(project):
    """A project with its profiles where Snakemake finds them."""
    (project / "profiles").symlink_to("workflow/profiles")
    return project


def test_the_screen_has_one_line_per_job(project):
    result = snakemake(project, "--cores", 2, TABLE)
    assert result.returncode == 0, result.stdout
    jobs = re.findall(r"^\d\d:\d\d:\d\d +(\d) of (\d)  (\S+)", result.stdout, flags=re.MULTILINE)
    assert [done for done, _, _ in jobs] == [str(number + 1) for number in range(len(jobs))]
    assert {total for _, total, _ in jobs} == {str(len(jobs))}
    assert {"train", "evaluate", "table"} <= {rule for *_, rule in jobs}
    # the plan, and a few sentences of Snakemake's
    assert result.stdout.count("\n") < len(jobs) + 25
    assert max(map(len, result.stdout.splitlines())) < 200
    # the log has all of Snakemake's messages
    [log] = (project / ".snakemake/log").glob("*.log")
    assert "rule train:" in log.read_text()


@pytest.fixture
def failing(project):
    """A project whose trainings end with an error."""
    path = project / "config/scales/smoke.yaml"
    scale = yaml.safe_load(path.read_text())
    scale["papers"]["stop_jostling"]["experiments"]["shakespeare"]["training"]["schedule"]["peak"] = 1e30
    path.write_text(yaml.safe_dump(scale))
    return project


def test_failed_jobs_are_listed_last(failing):
    result = snakemake(failing, "--cores", 2, "--retries", 0, TABLE)
    assert result.returncode == 1
    _, _, end = result.stdout.partition("2 jobs failed:\n")
    assert f"train shakespeare/dut_m1/1  {LOG}\n    raretok train: error: the loss of shakespeare/dut_m1 seed 1" in end
    assert "rarepapers train --run" not in result.stdout


def test_a_dry_run_prints_snakemakes_messages(project):
    assert "rule train:\n    input: " in snakemake(project, "-n", TABLE).stdout
