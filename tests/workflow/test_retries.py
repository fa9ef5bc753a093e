"""Trainings killed under Snakemake are retried and continue."""

import psutil
from tests.workflow.running import has_state, slow_down, snakemake, training_jobs, wait_for

from rarepapers.core.files import read_json

PROFILE = ("--workflow-profile", "workflow/profiles/default")
RUN = "results/smoke/runs/shakespeare/baseline/seed1"


def test_a_killed_training_is_retried_from_its_checkpoint(project):
    slow_down(project, 3000)
    arguments = ("--cores", "1", f"{RUN}/training.json", "--config", "checkpoint_seconds=1")
    process = snakemake(project, *arguments, *PROFILE, "--printshellcmds", background=True)
    wait_for(has_state(project), process)
    for job in training_jobs(process):
        job.kill()
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    assert "Trying to restart job" in output
    record = read_json(project / RUN / "training.json")
    assert record["resumes"] == 1
    assert record["steps"] == 3000
    log = (project / "logs/smoke/train/shakespeare/baseline/seed1.txt").read_text()
    assert "continuing shakespeare/baseline seed 1 at step" in log


def test_retries_0_is_obeyed(project):
    slow_down(project, 3000)
    arguments = ("--cores", "1", f"{RUN}/training.json", "--config", "checkpoint_seconds=1")
    process = snakemake(project, *arguments, *PROFILE, "--printshellcmds", "--retries", 0, background=True)
    wait_for(has_state(project), process)
    for job in training_jobs(process):
        job.kill()
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 1, output
    assert "Trying to restart job" not in output


def test_a_killed_snakemake_continues(project):
    slow_down(project, 3000)
    arguments = ("--cores", "1", f"{RUN}/training.json", "--config", "checkpoint_seconds=1")
    process = snakemake(project, *arguments, background=True)
    wait_for(has_state(project), process)
    jobs = training_jobs(process)
    for victim in [process, *jobs]:
        victim.kill()
    process.wait()
    psutil.wait_procs(jobs)
    snakemake(project, "--unlock")
    result = snakemake(project, *arguments)
    assert result.returncode == 0, result.stdout
    assert read_json(project / RUN / "training.json")["resumes"] == 1
