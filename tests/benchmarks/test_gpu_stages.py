"""benchmarks/gpu.py: its driver, and its stages on a CPU."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks import gpu

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    """Config, package and benchmarks, without results."""
    for part in ("config", "workflow", "benchmarks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def change_driver(project, old, new):
    driver = project / "benchmarks" / "gpu.py"
    driver.write_text(driver.read_text().replace(old, new))


def measure(project, *stages, seconds=1000):
    """Exit status of the stages on a CPU, and their measurements."""
    output = project / "out" / "gpu.jsonl"
    command = [sys.executable, "benchmarks/gpu.py", "--output", str(output), "--device", "cpu", "--tiny"]
    environment = os.environ | {"PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    command += ["--seconds", str(seconds), "--stages", *stages]
    done = subprocess.run(command, cwd=project, env=environment, check=False)
    return done.returncode, gpu.lines(output)


def test_finished_stages_are_skipped_and_others_repeated(project, monkeypatch):
    stage = project / "benchmarks" / "gpu_stages" / "machine.py"
    stage.write_text("def main(bench):\n    bench.emit(value=1, ok=True)\n")
    waits = project / "benchmarks" / "gpu_stages" / "waits.py"
    waits.write_text("def main(bench):\n    bench.emit(value=2)\n    raise SystemExit(3)\n")
    status, first = measure(project, "machine", "waits")
    assert status == 1
    assert [line.get("end") for line in first] == [None, "finished", None, "ended with status 3"]
    waits.write_text("def main(bench):\n    bench.emit(value=3)\n")
    status, second = measure(project, "machine", "waits")
    assert status == 0
    assert [line.get("value") for line in second[len(first) :]] == [3, None]


def test_a_failed_check_and_a_hanging_stage_are_failures(project, tmp_path):
    stage = project / "benchmarks" / "gpu_stages" / "machine.py"
    stage.write_text("import time\n\n\ndef main(bench):\n    bench.emit(ok=False)\n    time.sleep(60)\n")
    change_driver(project, '"machine": 60', '"machine": 1')
    status, lines = measure(project, "machine")
    assert status == 1
    held, end = map(json.loads, gpu.failures(lines))
    assert held == {"stage": "machine", "ok": False}
    assert end["end"] == "did not finish in 1 s"
    # Repeated, only the last attempt counts.
    again = [*lines, {"stage": "machine", "ok": True}, {"stage": "machine", "end": "finished"}]
    assert gpu.failures(again) == []


def test_children_of_a_stopped_stage_stop_too(project, tmp_path):
    late = tmp_path / "late"
    child = f"import pathlib, time; time.sleep(2); pathlib.Path({str(late)!r}).touch()"
    stage = project / "benchmarks" / "gpu_stages" / "machine.py"
    stage.write_text(
        "import subprocess, sys, time\n\n\ndef main(bench):\n"
        f"    subprocess.Popen([sys.executable, '-c', {child!r}])\n    time.sleep(60)\n"
    )
    change_driver(project, '"machine": 60', '"machine": 1')
    assert measure(project, "machine")[0] == 1
    time.sleep(3)
    assert not late.exists()


def test_time_of_all_stages_is_limited(project):
    stage = project / "benchmarks" / "gpu_stages" / "machine.py"
    stage.write_text("import time\n\n\ndef main(bench):\n    time.sleep(60)\n")
    change_driver(project, "LEAST = 10", "LEAST = 1")
    status, lines = measure(project, "machine", "waits", seconds=2)
    assert status == 1
    assert [(line["stage"], line["end"]) for line in lines] == [("machine", "did not finish in 2 s")]


def test_a_truncated_line_is_skipped(tmp_path):
    path = tmp_path / "gpu.jsonl"
    path.write_text('{"stage": "machine", "end": "finished"}\n{"stage": "wai')
    assert gpu.finished(gpu.lines(path)) == {"machine"}


def test_runs_that_stages_name_are_in_the_run_table(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from gpu_stages import resume, tables, waits

    smoke = tables.table("smoke")
    for experiment, method, *_ in (*waits.RUNS, *resume.CASES):
        smoke.run(experiment, method, 1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_stage_works_on_a_cpu(project):
    prepared = ["--omit-from", "train", "measure_gpt2"]
    subprocess.run(["snakemake", "--cores", "all", *prepared, "--directory", project], cwd=ROOT, check=True)
    status, lines = measure(project, *gpu.STAGES)
    assert status == 0, gpu.failures(lines)
    assert gpu.finished(lines) == set(gpu.STAGES)
    assert not [line for line in lines if "is not here" in line.get("skipped", "")]
    assert {line["stage"] for line in lines if line.get("ok")} >= {"methods", "trainings", "resume"}
