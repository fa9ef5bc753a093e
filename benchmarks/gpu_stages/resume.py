"""An interrupted training, compared with two unbroken ones.

With deterministic algorithms the three must be equal bit for bit. Without, two unbroken trainings may differ; the
stage then emits the differences, for docs and README.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import torch
from safetensors.torch import load_file

from gpu_stages.tables import ROOT, table
from rarepapers.core.errors import EXIT_INTERRUPTED
from rarepapers.core.files import CHECKPOINT
from rarepapers.rule_inputs.train import manifest as manifest_of

CASES = [
    ("shakespeare", "threshold_m2", "float32"),
    ("language_model", "agg", "bfloat16"),
    ("translation_base", "agg_translation", "float32"),
]
CODE = "import sys, torch; {first}from rarepapers.__main__ import main; sys.exit(main(sys.argv[1:]))"
DETERMINISTIC = "torch.use_deterministic_algorithms(True); "


def main(bench) -> None:
    smoke = table("smoke")
    cases = [
        (smoke.run(experiment, method, 1), precision, first)
        for experiment, method, precision in CASES[: 1 if bench.tiny else None]
        for first in ("", DETERMINISTIC)
    ]
    # All at once: most of the time is that of starting a process.
    with ThreadPoolExecutor(len(cases)) as pool:
        done = [pool.submit(compared, smoke, *case, bench.device) for case in cases]
        for each in as_completed(done):
            bench.emit(**each.result())


def compared(smoke, run, precision: str, first: str, device: str) -> dict:
    """Train a run three times, once with an interruption; the measurement."""
    manifest = ROOT / manifest_of(smoke, run)
    if not manifest.exists():
        return {"run": run.name, "skipped": f"{manifest} is not here"}
    facts = vars(run) | {"settings": run.settings | {"training": run.settings["training"] | {"precision": precision}}}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
        places = [Path(folder, name) for name in ("unbroken", "again", "stopped")]
        started = time.monotonic()
        list(pool.map(lambda place: train(facts, manifest, place, device, first, place.name == "stopped"), places))
        seconds = time.monotonic() - started
        unbroken, *others = (load_file(place / "output" / "last.safetensors") for place in places)
    again, resumed = (largest(unbroken, other) for other in others)
    return {
        "run": run.name,
        "precision": precision,
        "deterministic": bool(first),
        "unbroken_again": again,
        "resumed": resumed,
        "seconds": round(seconds, 1),
        "ok": resumed == 0 or (again > 0 and not first),
    }


def train(run: dict, manifest: Path, place: Path, device: str, first: str, stops: bool) -> None:
    """`rarepapers train` in a process of its own, stopped once after its first checkpoint where it `stops`."""
    place.mkdir()
    (place / "run.json").write_text(json.dumps(run))
    arguments = ["train", "--run", f"@{place / 'run.json'}", "--manifest", manifest, "--output", place / "output"]
    arguments += ["--state", place / "state", "--device", device, "--runs-per-gpu", 4, "--checkpoint-steps", 50]
    command = [sys.executable, "-c", CODE.format(first=first), *map(str, arguments)]
    environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    with (place / "log.txt").open("a") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        if stops:
            while not (place / "state" / CHECKPOINT).exists() and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGTERM)
            if process.wait() == EXIT_INTERRUPTED:
                process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        if process.wait():
            raise SystemExit(f"training failed: {(place / 'log.txt').read_text()[-2000:]}")


def largest(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """Largest difference of two models' weights."""
    return max((a[name].double() - b[name].double()).abs().max().item() for name in a)
