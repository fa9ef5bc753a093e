"""What the profile `slurm` asks of sbatch, by programs that stand for SLURM's and note how they are called."""

import os
import re

import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

PROFILE = ROOT / "workflow" / "profiles" / "slurm" / "config.yaml"
RUN = "results/smoke/runs/shakespeare/baseline/seed1/metrics.json"
# A submission fails, so that Snakemake does not wait for a job.
PROGRAM = '#!/bin/sh\n[ "${0##*/}" != sbatch ] || { printf "%s\\n" "$*" >>CALLS; exit 1; }\n'


@pytest.fixture
def submitted(project, tmp_path_factory):
    """A function: the calls of sbatch for one run, with the profile's text changed."""

    def calls(change=lambda text: text):
        programs = tmp_path_factory.mktemp("programs")
        for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo", "sacctmgr"):
            (programs / name).write_text(PROGRAM.replace("CALLS", str(programs / "calls")))
            (programs / name).chmod(0o755)
        profile = project / "workflow" / "profiles" / "slurm" / "config.yaml"
        profile.write_text(change(PROFILE.read_text()))
        corpus = "results/smoke/data/synthetic_characters/manifest.json"
        assert snakemake(project, "--cores", 1, corpus).returncode == 0
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = snakemake(project, "--profile", profile.parent, "--retries", 0, "--", RUN, PATH=path)
        assert (programs / "calls").exists(), done.stdout
        return (programs / "calls").read_text()

    return calls


def test_a_job_names_its_run_and_stays_on_one_node(submitted):
    (call,) = submitted().splitlines()
    assert "--nodes=1" in call
    assert re.search(r"--comment \S*shakespeare_baseline_seed1", call)


def test_the_lines_for_four_a100_per_node(submitted):
    (example,) = re.findall(r"^#   (\{gpu_percent.*\})$", PROFILE.read_text(), flags=re.MULTILINE)
    call = submitted(lambda text: text.replace("&gpu {gpu_percent: 0}", f"&gpu {example}"))
    for words in ("-p gpu", "--gpus=a100:1", "--cpus-per-gpu=16", "-C a100_80gb", "--qos=normal", "--nodes=1"):
        assert words in call.replace("'", ""), call


def test_the_lines_for_gres(submitted):
    (gres,) = re.findall(r'`(gpu: 0, gres: "gpu:a100:1")`', PROFILE.read_text())
    call = submitted(lambda text: text.replace("&gpu {gpu_percent: 0}", f"&gpu {{gpu_percent: 0, {gres}}}"))
    assert "--gres=gpu:a100:1" in call
    assert "--gpus" not in call
