"""A run trained by two processes under Snakemake, on a machine without GPUs."""

import pytest
from tests.workflow.running import snakemake

from rarepapers.core.files import read_json

RUN = "results/smoke/runs/shakespeare/baseline/seed1"


@pytest.mark.slow
def test_two_processes_train_a_run(project):
    target = f"{RUN}/training.json"
    alone = snakemake(project, "--cores", 2, target, "--config", "device=cpu")
    assert alone.returncode == 0, alone.stdout
    one = read_json(project / target)
    # Otherwise the finished training would be put in place again.
    for path in (project / "results/smoke/state").glob("**/training.json"):
        path.unlink()
    together = snakemake(project, "--cores", 2, target, "--forcerun", "train", "--config", "device=cpu", "processes=2")
    assert together.returncode == 0, together.stdout
    two = read_json(project / target)
    assert (one["processes"], two["processes"]) == (1, 2)
    assert two["hash"] == one["hash"]
    assert two["tokens"] == one["tokens"]
    # Dropout differs in the second process.
    assert two["best_validation_loss"] == pytest.approx(one["best_validation_loss"], rel=0.02)
    # The log has no messages of torch's launcher, and no line twice.
    log = (project / "logs/smoke/train/shakespeare/baseline/seed1.txt").read_text()
    others = [line for line in log.splitlines() if "tokens/s  " not in line]
    assert [": finished " in line for line in others] == [True]


def test_a_run_requests_a_gpu_for_each_process(project):
    command = ("-n", "--printshellcmds", f"{RUN}/metrics.json", "--config", "device=cuda", "processes=3")
    planned = snakemake(project, *command).stdout
    train, evaluate = (planned.split(f"rule {name}:")[1].split("\n\n")[0] for name in ("train", "evaluate"))
    assert "gpu=3, gpu_percent=300, " in train
    assert "--processes 3 " in planned
    assert "gpu=1, gpu_percent=100, " in evaluate
