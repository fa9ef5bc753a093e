"""Time and memory of a Snakemake dry run of all four papers at a scale.

    python benchmarks/dry_run.py [--scales smoke small paper] [--seeds 5]

It prints planned jobs and models, wall and CPU seconds, and peak resident memory of a dry run in this project. The bar
at scale paper with five seeds is 20 s and 1 GiB (tests/workflow/test_paper_scale.py).
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass
class DryRun:
    """The plan (text), and the resources that planning took."""

    text: str
    wall_seconds: float
    processor_seconds: float
    gib: float

    def jobs(self, rule: str) -> int:
        return len(re.findall(rf"^(?:local)?rule {rule}:$", self.text, flags=re.MULTILINE))


def dry_run(folder: Path, *choices: str) -> DryRun:
    """Dry run of the project in `folder` with `choices` for --config."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "snakemake", "-n", "--nolock", "--config", *choices]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    text = process.stdout.read()
    # Usage of this child alone; RUSAGE_CHILDREN gives the maximum over all so far.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(text)
    return DryRun(text, time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak_gib(usage))


def peak_gib(usage: resource.struct_rusage) -> float:
    """Peak resident memory; the kernel counts KiB on Linux, bytes on macOS."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", nargs="+", default=["smoke", "small", "paper"])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'scale':8} {'models':>7} {'wall s':>7} {'processor s':>12} {'GiB':>6}")
    for scale in arguments.scales:
        planned = dry_run(ROOT, f"scale={scale}", f"seeds={arguments.seeds}")
        figures = f"{planned.wall_seconds:7.1f} {planned.processor_seconds:12.1f} {planned.gib:6.2f}"
        print(f"{scale:8} {planned.jobs('train'):7} {figures}", flush=True)


if __name__ == "__main__":
    main()
