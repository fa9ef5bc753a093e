"""Every run of scale smoke for a few steps on the device against a CPU: models, tasks, gates, observations.

Finds tensors on the wrong device and kernels that differ. The error is that of the way the weights went.
"""

import math
from pathlib import Path

import torch

from gpu_stages.tables import ROOT, table
from raretok.data.prepared_corpus import load_manifest
from raretok.rule_inputs.accept import job_of
from raretok.training.training_run import Training

UPDATES = 3
# Adam divides a gradient by its size, so where that is near 0 rounding decides; most entries are not.
BAR = 2e-2


def main(bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    smoke = table("smoke")
    runs = [run for run in smoke.runs.values() if not smoke.outside_counts_of(job_of(run))]
    for run in runs[:: 20 if bench.tiny else 1]:
        manifest = ROOT / smoke.manifest_of(job_of(run))
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
    for _ in range(UPDATES):
        result = training.backward()
        training.trainer.step(training.learning_rate)
        training.advance(result)
    return before, flat(training.trainer.model)


def flat(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().double().cpu() for parameter in model.parameters()])
