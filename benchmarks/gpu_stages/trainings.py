"""A few steps of every run of scale smoke on the device, compared with a CPU: models, tasks, gates, observations.

Finds tensors on the wrong device and kernels that differ. The error is relative to the change of the weights.
"""

import math
from pathlib import Path

import torch

from gpu_stages.tables import ROOT, table
from gpu_stages.waits import step
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.rule_inputs import train
from rarepapers.training.training_run import Training

STEPS = 3
# Adam divides a gradient by its size, so rounding decides entries near 0; most are not.
BAR = 2e-2


def main(bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    smoke = table("smoke")
    runs = [run for run in smoke.runs.values() if not train.outside_counts(smoke, run)]
    for run in runs[:: 20 if bench.tiny else 1]:
        manifest = ROOT / train.manifest(smoke, run)
        if not manifest.exists():
            bench.emit(run=run.name, skipped=f"{manifest} is not here; raretok work --scale smoke --data-only makes it")
            continue
        settings = run.settings | {"model": run.settings["model"] | {"dropout": 0.0}}
        corpus, facts = load_manifest(manifest), vars(run) | {"settings": settings}
        start, ours = ways(facts, corpus, bench.device)
        _, theirs = ways(facts, corpus, "cpu")
        error = ((ours - theirs).norm() / (theirs - start).norm()).item()
        bench.emit(run=run.name, error=float(f"{error:.3g}"), ok=math.isfinite(error) and error <= BAR)


def ways(run: dict, corpus, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All weights before and after some steps, flat, on the CPU."""
    training = Training(run, corpus, Path("none"), Path("none"))
    training.build(device, compile_model=False)
    before = flat(training.trainer.model)
    for _ in range(STEPS):
        step(training)
    return before, flat(training.trainer.model)


def flat(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().double().cpu() for parameter in model.parameters()])
