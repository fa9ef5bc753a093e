"""Fork servers under Snakemake: forks give the results of separate processes, bit for bit."""

import time

import psutil
import pytest
from tests.workflow.running import has_state, slow_down, snakemake, training_jobs, wait_for

from rarepapers.core.files import read_json
from rarepapers.training.train_command import read_run

RUNS = [f"results/smoke/runs/shakespeare/{method}/seed1" for method in ("baseline", "dut_m1", "cwt")]
# All but training.json, metrics.json and the times in history.csv, which depend on the time taken.
FILES = ("model.safetensors", "last.safetensors", "observations.npz", "snapshots.safetensors", "arrays.npz")


@pytest.mark.slow
def test_runs_in_forks_equal_those_of_separate_processes(project_at):
    made = {}
    for name, environment in (("served", {}), ("alone", {"RARETOK_SERVERS": "/nowhere"})):
        folder = project_at(name)
        slow_down(folder, 40)
        result = snakemake(folder, "--cores", 2, *(f"{run}/metrics.json" for run in RUNS), **environment)
        assert result.returncode == 0, result.stdout
        made[name] = {(run, file): (folder / run / file).read_bytes() for run in RUNS for file in FILES}
    assert made["served"] == made["alone"]


def working(project):
    """The servers of a project and their forks."""
    found = []
    for one in psutil.process_iter(["cmdline", "cwd"]):
        if "rarepapers.machine.fork_server" in (one.info["cmdline"] or ()) and one.info["cwd"] == str(project):
            found.append(one)
    return found


def method_of(job):
    """The method that a job trains."""
    words = job.cmdline()
    return read_run(words[words.index("--run") + 1])["method"]


@pytest.mark.slow
def test_a_killed_job_is_retried_and_servers_end_with_the_workflow(project):
    slow_down(project, 1500)
    targets = [f"{run}/training.json" for run in RUNS]
    arguments = ("--cores", 2, *targets, "--config", "checkpoint_seconds=1")
    process = snakemake(project, *arguments, background=True)
    wait_for(has_state(project), process, 200)
    assert len(working(project)) > 1
    killed = has_state(project)()[0].relative_to(project / "results/smoke/state").parts[1]
    for job in training_jobs(process):
        if method_of(job) == killed:
            job.kill()
    output = process.communicate(timeout=200)[0]
    assert process.returncode == 0, output
    assert "Trying to restart job" in output
    resumes = {run: read_json(project / run / "training.json")["resumes"] for run in RUNS}
    assert [run.split("/")[-2] for run in RUNS if resumes[run]] == [killed]
    psutil.wait_procs(working(project), timeout=20)
    assert working(project) == []


@pytest.mark.slow
def test_jobs_outlive_a_killed_workflow_and_stop_on_a_signal(project):
    slow_down(project, 20000)
    process = snakemake(project, "--cores", 2, *(f"{run}/training.json" for run in RUNS), background=True)
    wait_for(lambda: len(working(project)) >= 3, process, 200)
    asking = training_jobs(process)
    process.kill()
    process.wait()
    time.sleep(1)
    assert len(working(project)) >= 3
    for one in asking:
        one.terminate()
    psutil.wait_procs(working(project), timeout=60)
    assert working(project) == []
    assert list(project.glob("results/smoke/state/**/checkpoint.safetensors"))
