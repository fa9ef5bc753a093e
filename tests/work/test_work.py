"""`work`: two workers, a kill, a worker's crash, a machine with few packages, and `accept` on the results."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rarepapers.core.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR

pytestmark = pytest.mark.slow
WEIGHTS = ("model.safetensors", "last.safetensors", "snapshots.safetensors")
RUNS = [f"shakespeare/{method}/seed1" for method in ("baseline", "threshold_m2", "cosreg")]


def start(project, *arguments, flags=(), site=""):
    """`work` at scale tiny on a CPU; the state is saved every second."""
    command = [sys.executable, *flags, "-m", "rarepapers", "work", "--scale", "tiny", "--papers", "stop_jostling"]
    command += ["--config", "device=cpu", "checkpoint_seconds=1", "--root", str(project), *arguments]
    environment = os.environ | {"PYTHONPATH": f"{project / 'workflow'}{os.pathsep}{site}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)


def accepted(project, command="accept"):
    """The output of `rarepapers accept`."""
    command = [sys.executable, "-m", "rarepapers", command, "--scale", "tiny", "--papers", "stop_jostling"]
    environment = os.environ | {"PYTHONPATH": str(project / "workflow")}
    return subprocess.run([*command, "--root", str(project)], env=environment, capture_output=True, text=True).stdout


def status(project):
    """The output of `rarepapers status`."""
    return accepted(project, "status")


def wait_for_states(project, work, number):
    """Wait until this many trainings have saved a checkpoint."""
    end = time.monotonic() + 120
    while len(list(project.glob("results/tiny/state/*/*/*/*/checkpoint.safetensors"))) < number:
        assert work.poll() is None, work.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def trainings(project):
    """Process ids of the running trainings in a project: those that hold the lock of a state."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                links = [os.readlink(link) for link in (folder / "fd").iterdir()]
            except OSError:
                continue
            if any(link.startswith(f"{project}/results/tiny/state/shakespeare/") for link in links):
                found.append(int(folder.name))
    return found


def wait_for_trainings(project, some):
    """Wait until there are some, or none; returns their process ids."""
    end = time.monotonic() + 60
    while bool(found := trainings(project)) != some:
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def weights(project):
    """The bytes of every run's weights."""
    return {
        path.relative_to(project): path.read_bytes()
        for run in RUNS
        for path in (project / "results/tiny/runs" / run / name for name in WEIGHTS)
    }


@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the trainings in /proc")
def test_a_stop_and_a_crash_lose_nothing(project):
    # Stopped while two runs train, which save their checkpoints; schedulers signal all processes.
    work = start(project, "--workers", "2")
    wait_for_states(project, work, 2)
    os.killpg(work.pid, signal.SIGTERM)
    said = work.communicate(timeout=120)[1]
    assert work.returncode == EXIT_INTERRUPTED, said
    assert said.count("its state is saved") == 2
    assert not trainings(project)

    # One of them is killed; the other two runs are trained and evaluated.
    work = start(project, "--workers", "2")
    victim = wait_for_trainings(project, True)[0]
    os.kill(victim, signal.SIGKILL)
    said = work.communicate(timeout=240)[1]
    assert work.returncode == EXIT_USER_ERROR, said
    (failed,) = re.findall(r"failed: train (\S+): was killed by SIGKILL", said)
    assert "2 run(s) done, 1 failed, 0 left" in said
    assert said.count("of it done before") == 2

    # A training stops without the command that started it.
    work = start(project)
    wait_for_trainings(project, True)
    work.kill()
    work.communicate()
    wait_for_trainings(project, False)
    assert not (project / "results/tiny/runs" / failed / "training.json").exists()

    # The next start trains only the killed one.
    work = start(project)
    said = work.communicate(timeout=240)[1]
    assert work.returncode == 0, said
    assert "1 of 3 runs to do" in said
    assert f"done with {failed}" in said
    assert "accepted 3 training(s) and 3 evaluation(s) of 3 runs" in accepted(project)

    # The weights equal those of an unbroken project.
    broken = weights(project)
    for folder in ("runs", "state"):
        (project / "results/tiny" / folder).rename(project / f"broken-{folder}")
    work = start(project, "--workers", "2")
    said = work.communicate(timeout=240)[1]
    assert work.returncode == 0, said
    assert weights(project) == broken


@pytest.mark.timeout(600)
def test_runs_of_one_shape_are_trained_together(project):
    arguments = ["--workers", "2", "--config", "device=cpu", "checkpoint_seconds=1", "together=8"]
    work = start(project, *arguments)
    end = time.monotonic() + 120
    while not list(project.glob("results/tiny/state/together/*/checkpoint.safetensors")):
        assert work.poll() is None, work.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)
    assert status(project).count(", process") == 3
    os.killpg(work.pid, signal.SIGTERM)
    said = work.communicate(timeout=120)[1]
    assert work.returncode == EXIT_INTERRUPTED, said
    assert "stopped the runs trained together; their state is saved" in said
    assert "3 interrupted, with a saved state" in status(project)

    work = start(project, *arguments)
    said = work.communicate(timeout=240)[1]
    assert work.returncode == 0, said
    assert said.count("100% of it done before") == 3
    (log,) = project.glob("logs/tiny/train/together/*.txt")
    assert "continuing 3 runs together at step" in log.read_text()
    assert "accepted 3 training(s) and 3 evaluation(s) of 3 runs" in accepted(project)
    assert '"together": 3' in (project / "results/tiny/runs" / RUNS[0] / "training.json").read_text()


def installed_with(*names):
    """Packages of a machine on which pip installed these, with all their requirements."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:  # required only on other platforms
                continue
            wanted = [Requirement(text) for text in found[name].requires or []]
            waiting += [one.name for one in wanted if not one.marker or one.marker.evaluate({"extra": ""})]
    return list(found.values())


def test_a_machine_with_torch_and_little_else_trains(project, tmp_path_factory):
    """Without Snakemake, tokenizers and sacrebleu: imports come from a folder of links to few packages."""
    site = tmp_path_factory.mktemp("site")
    for package in installed_with("torch", "numpy", "safetensors", "PyYAML"):
        for top in {file.parts[0] for file in package.files if ".." not in file.parts}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
    # -S: without the packages of this environment.
    (project / "order.txt").write_text(f"{RUNS[2]}\n")
    work = start(project, "--order", str(project / "order.txt"), flags=["-S"], site=str(site))
    said = work.communicate(timeout=240)[1]
    assert work.returncode == 0, said
    assert "not evaluated: sacrebleu, sacremoses, scipy, " in said
    assert (project / "results/tiny/runs/shakespeare/cosreg/seed1/training.json").exists()
    assert "accepted 1 training(s) and 0 evaluation(s) of 3 runs" in accepted(project)


def test_processes_of_the_config_are_ignored_in_one_sentence(project):
    """`--config` replaces the device of `start`, so this is `auto`; without time nothing starts."""
    work = start(project, "--minutes", "0", "--config", "processes=2")
    said = work.communicate(timeout=120)[1]
    assert work.returncode == 0, said
    assert "processes: 2 is ignored, because `work` trains each run in one process" in said
    assert "3 left" in said
