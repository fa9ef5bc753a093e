"""The default profile: as many GPU jobs at a time as the machine has GPUs."""

import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

PROFILE = ROOT / "workflow" / "profiles" / "default"
# Jobs record their start and end.
JOBS = """
rule all:
    input: expand("{n}", n=range(4))

rule job:
    output: "{n}"
    resources: gpu_percent=SHARE
    shell: "echo begin >> log; sleep 1; echo end >> log; touch {output}"
"""


@pytest.mark.parametrize(("visible", "share", "at_once"), [("0,1", 100, 2), ("0", 25, 4), ("", 0, 4), ("-1", 100, 4)])
def test_gpu_jobs_run_as_many_at_a_time_as_there_are_gpus(tmp_path, visible, share, at_once):
    """Without GPUs, which -1 hides as an empty list does, jobs run on the CPU, whatever share they request."""
    (tmp_path / "Snakefile").write_text(JOBS.replace("SHARE", str(share)))
    result = snakemake(tmp_path, "--cores", 8, "--profile", PROFILE, CUDA_VISIBLE_DEVICES=visible)
    assert result.returncode == 0, result.stdout
    running = most = 0
    for line in (tmp_path / "log").read_text().split():
        running += 1 if line == "begin" else -1
        most = max(most, running)
    assert most == at_once


def test_a_run_requests_its_share_of_a_gpu(project):
    target = "results/smoke/runs/shakespeare/baseline/seed1/metrics.json"
    whole = snakemake(project, "-n", target, "--config", "device=cuda").stdout
    shared = snakemake(project, "-n", target, "--config", "device=cuda", "runs_per_gpu=4").stdout
    assert "gpu_percent=100, " in whole
    assert "gpu_percent=25, " in shared
