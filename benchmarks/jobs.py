"""CPU time of Snakemake's own process per job, in a workflow whose jobs only touch their outputs.

    python benchmarks/jobs.py [--seeds 1 4 16] [--scale smoke] [--papers agg agps] [--executor local stub] [--plain]

In a copy of the project each job's command is `touch`. `stub` is a cluster executor whose jobs end at the next status
check, so that submission, status checks and the rate limit are those of a cluster without its waiting time. It prints
runs, jobs, CPU seconds of Snakemake's process, the same per job, and its maximum number of threads. --plain leaves
Snakemake's timers unchanged (docs/snakemake_timers.md). The bar is 0.08 s per job for 121 to 1,936 runs.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
STUBS = Path(__file__).parent / "stubs"
PARTS = ("Snakefile", "config", "envs", "library", "workflow", "docs")


@dataclass
class Cost:
    """Resources of Snakemake's process for a whole workflow."""

    runs: int
    jobs: int
    processor_seconds: float
    wall_seconds: float
    threads: int


def copy_project(folder: Path) -> None:
    """Copy what a run of the workflow needs to an existing folder."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)


def copy_with_stubs(folder: Path, plain: bool) -> None:
    """Copy the project to `folder`, with jobs that touch their outputs and without the preflight check."""
    copy_project(folder)
    for path in folder.glob("workflow/rules/*.smk"):
        text = re.sub(
            r'( +)shell:\n +""".*?"""', r'\1shell:\n\1    "touch {output}"', path.read_text(), flags=re.DOTALL
        )
        path.write_text(text)
    package = folder / "workflow" / "rarepapers"
    shutil.copy(STUBS / "preflight.py", package / "planning")
    if plain:
        timers = package / "rule_inputs" / "scheduler_timers.py"
        timers.write_text(timers.read_text().replace("if limiter is None or", "if True or"))


def measure(seeds: int, scale: str, executor: str, plain: bool = False, papers: Sequence[str] = ()) -> Cost:
    """Run the workflow of `papers` (default: all) with that many seeds; SystemExit with its output on failure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_with_stubs(folder, plain)
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", f"scale={scale}", f"seeds={seeds}"]
        if papers:
            command.append(f"papers=[{','.join(papers)}]")
        if executor != "local":
            command += ["--executor", executor, "--jobs", "100", "--seconds-between-status-checks", "1"]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        began = time.perf_counter()
        with (folder / "log.txt").open("w") as log:
            process = psutil.Popen(
                command, cwd=folder, env=environment | {"PYTHONPATH": str(STUBS)}, stdout=log, stderr=subprocess.STDOUT
            )
        seconds, threads = 0.0, 0
        while process.poll() is None:
            # Usage of the process alone, without the jobs it waited for.
            try:
                times = process.cpu_times()
                seconds, threads = times.user + times.system, max(threads, process.num_threads())
            except psutil.Error:
                break
            time.sleep(0.05)
        text = (folder / "log.txt").read_text()
        if process.wait():
            raise SystemExit(text[-5000:])
        done = max(int(number) for number in re.findall(r"^(\d+) of \d+ steps", text, flags=re.MULTILINE))
        runs = int(re.search(r"^train +(\d+)$", text, flags=re.MULTILINE)[1])
        return Cost(runs, done, seconds, time.perf_counter() - began, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--papers", nargs="+", default=[], help="these alone")
    parser.add_argument("--executor", nargs="+", default=["local", "stub"], choices=["local", "stub"])
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    print(f"{'executor':9} {'runs':>6} {'jobs':>6} {'processor s':>12} {'s a job':>8} {'threads':>8} {'wall s':>7}")
    for executor in arguments.executor:
        for seeds in arguments.seeds:
            cost = measure(seeds, arguments.scale, executor, arguments.plain, arguments.papers)
            print(
                f"{executor:9} {cost.runs:6} {cost.jobs:6} {cost.processor_seconds:12.1f} "
                f"{cost.processor_seconds / cost.jobs:8.3f} {cost.threads:8} {cost.wall_seconds:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
