"""Checks and measurements that need a GPU, in stages: correctness and speed.

    python benchmarks/gpu.py --output gpu.jsonl                          all stages
    python benchmarks/gpu.py --output gpu.jsonl --stages layer           some
    python benchmarks/gpu.py --output gpu.jsonl --seconds 400            what fits into 400 seconds
    python benchmarks/gpu.py --output gpu.jsonl --device cpu --tiny      tests the stages themselves

Each stage is a separate process with its own time limit, so that a hanging or dying stage does not affect the others. A
measurement is one line of JSON in the output file, with `stage` and the results; `ok` is the result of a check.
Finished stages are skipped without --again; an interrupted one starts anew. docs/gpu.md says what to carry to a machine
without network. The exit status is 1 if a check failed or a stage did not finish.
"""

import argparse
import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Time limit of each stage in seconds. The module of gpu_stages with the same name has a function `main(bench)`.
STAGES = {
    "machine": 60,
    "methods": 150,
    "trainings": 200,
    "kernel": 100,
    "waits": 60,
    "resume": 150,
    "parts": 60,
    "steps": 150,
    "layer": 560,
}
# Seconds below which a stage is not started: importing torch and starting CUDA take about as long.
LEAST = 10


@dataclass
class Bench:
    """Options of a stage."""

    stage: str
    device: str
    tiny: bool
    output: Path

    def emit(self, **measured) -> None:
        """Write one measurement and print it."""
        emit(self.output, {"stage": self.stage, **measured})


def emit(output: Path, measured: dict) -> None:
    line = json.dumps(measured)
    print(line, flush=True)
    with output.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def lines(output: Path) -> list[dict]:
    """The measurements so far; a line truncated by a kill is skipped."""
    found = []
    for line in output.read_text(encoding="utf-8").splitlines() if output.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def run_stage(arguments: argparse.Namespace, stage: str, left: float) -> None:
    """Run one stage in a separate process, for at most `left` seconds; writes its end to the output."""
    command = [sys.executable, __file__, "--run", stage, "--output", str(arguments.output)]
    command += ["--device", arguments.device, *(["--tiny"] if arguments.tiny else [])]
    # For the stage and all its child processes.
    path = os.pathsep.join(filter(None, [str(ROOT / "workflow"), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path}
    started = time.monotonic()
    limit = min(left, STAGES[stage])
    # A session of its own, so that whatever the stage started ends with it and leaves the GPU to the next stage.
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        try:
            status = process.wait(limit)
            how = "finished" if status == 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            how = f"did not finish in {limit:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    emit(arguments.output, {"stage": stage, "end": how, "seconds": round(time.monotonic() - started, 1)})


def finished(found: list[dict]) -> set[str]:
    """Stages that have finished at least once."""
    return {line["stage"] for line in found if line.get("end") == "finished"}


def failures(found: list[dict]) -> list[str]:
    """For the last attempt of each stage: whether it did not finish, and its failed checks."""
    under_way, last = {}, {}
    for line in found:
        attempt = under_way.setdefault(line["stage"], [])
        attempt.append(line)
        if "end" in line:
            last[line["stage"]] = under_way.pop(line["stage"])
    return [
        json.dumps(line)
        for attempt in last.values()
        for line in attempt
        if line.get("ok") is False or line.get("end", "finished") != "finished"
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="file of measurements, one line of JSON each")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES), help="(default: all)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="(default: %(default)s)")
    parser.add_argument("--tiny", action="store_true", help="sizes at which a CPU tests the stages themselves")
    parser.add_argument("--again", action="store_true", help="measure finished stages again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of all stages together (default: no limit)")
    parser.add_argument("--run", choices=STAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        bench = Bench(arguments.run, arguments.device, arguments.tiny, arguments.output)
        importlib.import_module(f"gpu_stages.{arguments.run}").main(bench)
        return 0
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    for stage in arguments.stages:
        if stage in finished(lines(arguments.output)) and not arguments.again:
            continue
        if (left := end - time.monotonic()) < LEAST:
            print(f"no time left for the stage {stage}", flush=True)
            continue
        run_stage(arguments, stage, left)
    failed = failures(lines(arguments.output))
    print("\n".join(["", *(f"FAILED {line}" for line in failed)] if failed else ["", "every check held"]))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
