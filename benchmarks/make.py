"""Cost of `make`: CPU seconds by command and of Snakemake's own process, and wall time.

    python benchmarks/make.py [--cores 2] [TARGET ...]      in a copy of the project, from nothing to the report
    python benchmarks/make.py --install                     the same from a clone, with `make` and its installation

CPU seconds are those of each Python process, summed by command (the command of rarepapers, snakemake, forkserver);
`train (copy)` is a `train` done by a fork server. The bars on two idle cores: scale smoke at most 5 minutes and 9
core-minutes, Snakemake's own process 20 s of CPU, a `make` with nothing to do 4 s, with installation 8 minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from jobs import ROOT, copy_project

# Imported by every Python process of the workflow at its start.
NOTE = """
import atexit, os, resource, sys, time

def note(began=time.time()):
    arguments = [os.path.basename(argument) for argument in sys.argv]
    if arguments[0] == "__main__.py":
        arguments[0] = os.path.basename(os.path.dirname(sys.argv[0]))
    name = arguments[1] if arguments[0] == "rarepapers" and len(arguments) > 1 else arguments[0]
    main = getattr(sys.modules["__main__"].__spec__, "name", "")
    if main == "rarepapers.machine.fork_server" and name != "fork_server.py":
        name += " (copy)"
    usage = resource.getrusage(resource.RUSAGE_SELF)
    line = f"{name} {usage.ru_utime + usage.ru_stime:.3f}\\n"
    with open(os.environ["RARETOK_NOTES"], "a") as notes:
        notes.write(line)

atexit.register(note)
"""


def cost(command: list[str], folder: Path) -> tuple[float, dict[str, list[float]]]:
    """Run a command in `folder`; returns its wall time, and CPU seconds of every Python process by name."""
    with tempfile.TemporaryDirectory() as hook:
        (Path(hook) / "sitecustomize.py").write_text(NOTE)
        notes = Path(hook) / "notes.txt"
        environment = os.environ | {"PYTHONPATH": hook, "RARETOK_NOTES": str(notes)}
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - began
        time.sleep(2)  # fork servers end after Snakemake
        found = defaultdict(list)
        for line in notes.read_text().splitlines():
            name, seconds = line.rsplit(" ", 1)
            found[name].append(float(seconds))
    return wall, found


def show(title: str, wall: float, found: dict[str, list[float]]) -> None:
    """Print one line per command, the most expensive first."""
    total = sum(map(sum, found.values()))
    print(f"{title}: {wall:.0f} s, {total / 60:.1f} core-minutes")
    print(f"  {'command':24} {'processes':>9} {'processor s':>12} {'s each':>7}")
    for name, seconds in sorted(found.items(), key=lambda one: -sum(one[1])):
        print(f"  {name:24} {len(seconds):9} {sum(seconds):12.1f} {sum(seconds) / len(seconds):7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", default="2")
    parser.add_argument("--install", action="store_true", help="from a clone, with the installation")
    parser.add_argument("--json", type=Path, help="write every process's seconds there")
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "raretok"
        if arguments.install:
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
            began = time.perf_counter()
            subprocess.run(["make", f"CORES={arguments.cores}"], cwd=folder, check=True)
            print(f"from a clone to the report: {time.perf_counter() - began:.0f} s")
            return
        folder.mkdir()
        copy_project(folder)
        command = [sys.executable, "-m", "snakemake", "--cores", arguments.cores, "--quiet", "all", "--"]
        command += arguments.targets
        wall, found = cost(command, folder)
        show("from nothing", wall, found)
        if arguments.json:
            arguments.json.write_text(json.dumps(found))
        show("nothing to do", *cost(command, folder))


if __name__ == "__main__":
    main()
