"""A few steps of every run of scale smoke on the device, compared with a CPU: models, tasks, gates, observations.

Finds tensors on the wrong device and kernels that differ. The error is relative to the change of the weights.
"""

import math

import torch

from gpu_stages.tables import ROOT, table
from gpu_stages.waits import step
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.rule_inputs import train
from rarepapers.training.loop import build

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
            bench.emit(run=run.name, skipped=f"{manifest} is not here; docs/gpu.md makes it")
            continue
        settings = run.settings | {"model": run.settings["model"] | {"dropout": 0.0}}
        corpus = load_manifest(manifest)
        start, ours = ways(settings, corpus, bench.device)
        _, theirs = ways(settings, corpus, "cpu")
        error = ((ours - theirs).norm() / (theirs - start).norm()).item()
        bench.emit(run=run.name, error=float(f"{error:.3g}"), ok=math.isfinite(error) and error <= BAR)


def ways(settings: dict, corpus, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All weights before and after some steps, flat, on the CPU."""
    built = build(settings, corpus, device, compile_model=False)
    _, trainer, _ = built
    before = flat(trainer.model)
    for number in range(STEPS):
        step(built, number)
    return before, flat(trainer.model)


def flat(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().double().cpu() for parameter in model.parameters()])
