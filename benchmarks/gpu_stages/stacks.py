"""Runs of one shape in one process, compared with several processes that share a GPU: stop_jostling's models.

Model-steps per second of a stack (benchmarks/together.py), and of `work` with several numbers of workers. The
bar: 185 models of 8,000 steps in 15 minutes, 1,644 model-steps/s. Where `work` comes within 1.5 of the stack,
stacks go.
"""

import dataclasses
import json
import tempfile
import time
from pathlib import Path

from together import runs_of

from gpu_stages.layer import printed, row
from gpu_stages.tables import ROOT, table
from gpu_stages.working import work
from rarepapers.core.files import read_json
from rarepapers.experiments.run_table import RunTable
from rarepapers.rule_inputs import train
from rarepapers.training.finished_files import RECORD
from rarepapers.work.run_status import saved_progress


def main(bench) -> None:
    scale, number = ("smoke", 8) if bench.tiny else ("small", 185)
    sizes = (2,) if bench.tiny else (38, 185)
    for line in printed("together.py", "--device", bench.device, "--scale", scale, "--together", *sizes):
        bench.emit(what="stack", **row(line))
    runs = runs_of(scale, number)
    names, seeds = [run.name for run in runs], max(run.seed for run in runs)
    data = table(scale, papers=["stop_jostling"], seeds=seeds)
    manifest = ROOT / train.manifest(data, next(iter(data.runs.values())))
    if not manifest.exists():
        bench.emit(skipped=f"{manifest} is not here")
        return
    for workers in (2,) if bench.tiny else (8, 12, 16):
        with tempfile.TemporaryDirectory() as folder:
            root = project(Path(folder), scale)
            (root / "order.json").write_text(json.dumps(names))
            started = time.monotonic()
            order = ("--order", str(root / "order.json"), "--papers", "stop_jostling", "--seeds", str(seeds))
            work(root, scale, workers, 0.3 if bench.tiny else 1.5, bench.device, *order)
            wall = time.monotonic() - started
            steps, speeds = progress(dataclasses.replace(data, root=root))
        bench.emit(
            what="raretok work",
            workers=workers,
            steps_per_s=round(workers * sum(speeds) / max(1, len(speeds)), 1),
            steps_per_s_with_starts=round(steps / wall, 1),
            runs=len(speeds),
            ok=bool(speeds),
        )


def project(folder: Path, scale: str) -> Path:
    """A project's folder with this one's config and data and no results."""
    (folder / "results" / scale).mkdir(parents=True)
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "results" / scale / "data").symlink_to(ROOT / "results" / scale / "data")
    return folder


def progress(data: RunTable) -> tuple[int, list[float]]:
    """Steps of all runs, finished or not, and the steps per second of each."""
    found = []
    for run in data.runs.values():
        record = data.root / data.folder(run) / RECORD
        if record.exists():
            found.append((run.settings["training"]["steps"], read_json(record)["seconds"]))
        elif state := saved_progress(data, run):
            found.append((state["step"], state["seconds"]))
    return sum(steps for steps, _ in found), [steps / seconds for steps, seconds in found if seconds]
