"""`rarepapers verify` trains and evaluates through Snakemake, on the smoke data, and compares with recorded runs."""

import os
import subprocess
import sys

import pytest
from tests.workflow.running import snakemake

CLAIM = "stop_jostling.t1.mono_worse"
RUNS = "results/smoke/runs/shakespeare/{}/seed{}/metrics.json"


def raretok(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(folder / "workflow")}
    command = [sys.executable, "-m", "rarepapers", *map(str, arguments)]
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.slow
def test_verify_retrains_a_claim(project):
    targets = [RUNS.format(method, seed) for method in ("baseline", "monolingual") for seed in (1, 2)]
    made = snakemake(project, "--cores", 2, "--config", "seeds=2", "papers=[stop_jostling]", "--", *targets)
    assert made.returncode == 0, made.stdout
    recorded = "results/recorded/smoke"
    raretok(project, "record", "--results", "results/smoke", "--output", recorded)
    files = sorted(project.glob(f"{recorded}/runs/*/*/*/metrics.json"))
    raretok(project, "collect", "--metrics", *files, "--output", f"{recorded}/metrics.csv")
    said = raretok(project, "verify", CLAIM, "--cores", 2)
    for method in ("baseline", "monolingual"):
        assert (project / RUNS.format(method, 3)).exists()
    assert "seed 3: " in said
    assert "95% prediction interval of one new seed" in said
    # finished runs are not trained again
    assert "Nothing to be done" in raretok(project, "verify", CLAIM, "--cores", 2, "--seed", 3)
