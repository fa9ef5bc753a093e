"""Waits of the host for the device within a step: number and places. The host should run ahead of a GPU."""

import traceback
import warnings
from pathlib import Path

import torch

from gpu_stages.tables import table
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.rule_inputs import train
from rarepapers.training.loop import build

RUNS = [
    ("shakespeare", "baseline"),
    ("language_model", "mle"),
    ("language_model", "agg"),
    ("translation_base", "agg_translation"),
    ("iwslt14_de-en", "unigram"),
]


def main(bench) -> None:
    smoke = table("smoke")
    for experiment, method in RUNS:
        run = smoke.run(experiment, method, 1)
        manifest = smoke.root / train.manifest(smoke, run)
        if not manifest.exists():
            bench.emit(run=run.name, skipped=f"{manifest} is not here")
            continue
        built = build(run.settings, load_manifest(manifest), bench.device, compile_model=False)
        step(built, 0)
        places = waits(built, bench.device)
        bench.emit(run=run.name, waits=len(places), where=sorted(set(places))[:8], ok=not places)


def step(built: tuple, number: int) -> None:
    """One training step, as in the loop between two rows of the history. built: by `rarepapers.training.loop.build`."""
    task, trainer, schedule = built
    trainer.backward(task.micro_batches(number))
    trainer.step(schedule(number))


def waits(built: tuple, device: str) -> list[str]:
    """File and line in this project of every wait in one step."""
    if device == "cpu":
        step(built, 1)
        return []
    places = []

    def note(message, *_, **__) -> None:
        if "synchronizing" in str(message):
            stack = traceback.extract_stack()
            own = [frame for frame in stack if {"raretok", "rarepapers"} & set(Path(frame.filename).parts)]
            places.append(f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "elsewhere")

    # The mode itself warns that it is a prototype.
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = note
            step(built, 1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return places
