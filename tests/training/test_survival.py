"""Trainings that are killed continue exactly: final files equal an unbroken run's, byte for byte."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.training.child import Training
from tests.training.conftest import SETTINGS

import raretok
from rarepapers.core.config_files import canonical_json
from rarepapers.core.files import CHECKPOINT, read_json
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.machine.commands import main
from rarepapers.training.holder import HOLDER
from rarepapers.training.loop import Options, train
from rarepapers.training.refusal import WORKFLOW

# Like `python -m rarepapers`, with another copy of the package.
OTHER_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
from rarepapers.__main__ import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory, manifest):
    run = {"paper": "p", "experiment": "e", "method": "m", "seed": SETTINGS["seed"]}
    run = canonical_json(run | {"hash": "0123456789abcdef", "settings": SETTINGS})
    training = Training(tmp_path_factory.mktemp("unbroken"), manifest, run)
    assert training.end() == 0, training.text()
    return training.output


def assert_same_results(output, unbroken):
    for name in ("model.safetensors", "last.safetensors", "history.csv", "snapshots.safetensors"):
        assert (output / name).read_bytes() == (unbroken / name).read_bytes(), name
    ours, theirs = np.load(output / "observations.npz"), np.load(unbroken / "observations.npz")
    assert sorted(ours) == sorted(theirs)
    assert ours.get("gradient_norms.steps", 400) == 400
    assert all(np.array_equal(ours[key], theirs[key], equal_nan=True) for key in ours)
    assert read_json(output / "training.json")["derived"] == read_json(unbroken / "training.json")["derived"]


def test_sigkill_at_several_points(tmp_path, manifest, run_json, unbroken):
    for checkpoints, delay in ((1, 0.0), (2, 0.004), (3, 0.011)):
        training = Training(tmp_path, manifest, run_json)
        training.wait_for_checkpoints(checkpoints)
        time.sleep(delay)
        assert training.end(signal.SIGKILL) == -signal.SIGKILL
        assert not training.output.exists()
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 0, training.text()
    assert_same_results(training.output, unbroken)
    record = read_json(training.output / "training.json")
    assert record["resumes"] == 3
    assert record["tokens"] == 400 * 4 * 16
    assert not (training.state / CHECKPOINT).exists()


GATES = {
    # The counters' memory is 22 steps, an epoch: targets that leave it are regenerated.
    "agg": {"name": "agg", "alpha": 0.3},
    "static_agg": {"name": "agg", "alpha": 0.3, "static": True},
    "agps": {"name": "agps", "rare_from": 30, "mu_1": 50.0, "mu_2": 20.0},
    "freeze_until": {"name": "freeze", "until": 70},
}


@pytest.mark.parametrize("gate", GATES)
def test_sigkill_of_language_runs(tmp_path, language_manifest, make_language_run, no_signals, gate):
    """With micro-batches, dropout, snapshots, and all gates with a memory or an end; in bfloat16 if the CPU has it."""
    run = make_language_run(training={"precision": "float32" if gate == "agg" else "bfloat16"})
    run["settings"]["method"]["gate"] = GATES[gate]
    train(run, load_manifest(language_manifest), tmp_path / "unbroken", tmp_path / "other", Options())
    for checkpoints, steps in ((2, 5), (2, 11)):  # killed at about step 10 and 32
        training = Training(tmp_path, language_manifest, canonical_json(run), checkpoint_steps=steps)
        training.wait_for_checkpoints(checkpoints)
        assert training.end(signal.SIGKILL) == -signal.SIGKILL
        assert not training.output.exists()
    training = Training(tmp_path, language_manifest, canonical_json(run))
    assert training.end() == 0, training.text()
    assert_same_results(training.output, tmp_path / "unbroken")
    assert read_json(training.output / "training.json")["resumes"] == 2
    assert [path.name for path in training.state.iterdir() if path.is_file()] == ["lock"]


def test_missing_best_weights_are_refused(tmp_path, manifest, run_json):
    interrupted(tmp_path, manifest, run_json, checkpoints=4)
    paths = list((tmp_path / "state").glob("best-*.safetensors"))  # two, if killed before the older was removed
    for path in paths:
        path.unlink()
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 2
    assert any(f"{path} cannot be read" in training.text() for path in paths)
    assert "Traceback" not in training.text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_save_at_the_next_step(tmp_path, manifest, run_json, unbroken, number):
    training = Training(tmp_path, manifest, run_json, checkpoint_steps=100)
    training.wait_for_checkpoints(1)
    assert training.end(number) == 75
    assert f"{signal.Signals(number).name}: stopped at step" in training.text()
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 0, training.text()
    assert "continuing e/m seed 3 at step" in training.text()
    assert_same_results(training.output, unbroken)


@pytest.mark.parametrize("write", [3, 6])
def test_kill_during_the_write_of_a_checkpoint(tmp_path, manifest, run_json, unbroken, write):
    """A kill between the writes of new best weights and of the checkpoint that names them: the old ones count."""
    training = Training(tmp_path, manifest, run_json, hang=(".checkpoint.", write, tmp_path / "in-the-middle"))
    training.wait_for((tmp_path / "in-the-middle").exists)
    assert training.end(signal.SIGKILL) == -signal.SIGKILL
    names = sorted(path.name for path in training.state.iterdir())
    # The lock and its holder, the old checkpoint, the one being written, and the best weights that each of them names.
    best = {3: ["best-0000050.safetensors"], 6: ["best-0000050.safetensors", "best-0000100.safetensors"]}[write]
    assert names[0].startswith(".checkpoint.")
    assert names[1:] == [*best, CHECKPOINT, HOLDER, "lock"]
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 0, training.text()
    assert f"continuing e/m seed 3 at step {20 * write - 20} of 400" in training.text()
    assert_same_results(training.output, unbroken)


@pytest.mark.parametrize("name", [".snapshot-", ".model."])
def test_temporary_files_of_killed_writes_are_removed(tmp_path, language_manifest, make_language_run, name):
    run = canonical_json(make_language_run())
    training = Training(tmp_path, language_manifest, run, hang=(name, 1, tmp_path / "in-the-middle"))
    training.wait_for((tmp_path / "in-the-middle").exists)
    assert training.end(signal.SIGKILL) == -signal.SIGKILL
    assert len(list(tmp_path.glob(f"*/{name}*.part.safetensors"))) == 1
    of_evaluation = training.output / ".metrics.abc.part.json"
    training.output.mkdir(exist_ok=True)
    of_evaluation.touch()
    training = Training(tmp_path, language_manifest, run)
    assert training.end() == 0, training.text()
    assert list(tmp_path.rglob(".*.part*")) == [of_evaluation]


def interrupted(folder, manifest, run, checkpoints=1):
    training = Training(folder, manifest, run)
    training.wait_for_checkpoints(checkpoints)
    training.end(signal.SIGKILL)


def test_state_of_another_run_is_refused(tmp_path, manifest, run_json, make_run):
    interrupted(tmp_path, manifest, run_json)
    other = canonical_json(make_run(hash_="fedcba9876543210", training={"clip_norm": 2.0}))
    training = Training(tmp_path, manifest, other)
    assert training.end() == 2
    assert "belongs to another run (0123456789abcdef, not fedcba9876543210)" in training.text()
    assert "Traceback" not in training.text()


def test_a_damaged_checkpoint_is_refused(tmp_path, manifest, run_json):
    interrupted(tmp_path, manifest, run_json)
    path = tmp_path / "state" / CHECKPOINT
    path.write_bytes(path.read_bytes()[:1000])
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 2
    assert "cannot be read" in training.text()
    assert "Traceback" not in training.text()


def test_a_second_process_is_refused(tmp_path, manifest, make_run):
    long_run = canonical_json(make_run(training={"steps": 1_000_000}))
    first = Training(tmp_path, manifest, long_run)
    first.wait_for_checkpoints(1)
    second = Training(tmp_path, manifest, long_run)
    assert second.end() == 2
    assert "another process is training this run" in second.text()
    assert first.end(signal.SIGTERM) == 75


def test_a_non_finite_loss_is_an_error(tmp_path, manifest, make_run):
    schedule = {"name": "cosine", "peak": 1e38, "final": 1e37, "warmup": 5}
    run = canonical_json(make_run(training={"schedule": schedule}))
    training = Training(tmp_path, manifest, run, checkpoint_steps=1)
    assert training.end() == 2
    text = training.text()
    assert "the loss of e/m seed 3 is not finite at step" in text
    assert "learning rate" in text
    assert f"the last good state is in {training.state}" in text
    assert "Traceback" not in text
    state = load_file(training.state / CHECKPOINT)
    assert state["criterion.gate.step"] == state["observe-gradient_norms.steps"] > 0
    weights = [value for name, value in state.items() if name.startswith("model.")]
    assert weights
    assert all(np.isfinite(value).all() for value in weights)


def test_a_non_finite_loss_is_not_retried_in_its_workflow(tmp_path, manifest, make_run, monkeypatch, capfd):
    """Outside of workflows, and in the next one, it is trained again."""
    schedule = {"name": "cosine", "peak": 1e38, "final": 1e37, "warmup": 5}
    run = canonical_json(make_run(training={"schedule": schedule}))
    places = ["--manifest", manifest, "--output", tmp_path / "output", "--state", tmp_path / "state"]
    command = ["train", "--run", run, *map(str, places), "--checkpoint-steps", "1", "--device", "cpu"]

    def trains(workflow):
        monkeypatch.setenv(WORKFLOW, workflow)
        assert main(command) == 2
        said = capfd.readouterr()
        assert "is not finite at step" in said.err
        return "continuing" in said.out + said.err

    monkeypatch.delenv(WORKFLOW, raising=False)
    assert main(command) == 2
    assert [trains(workflow) for workflow in ("first", "first", "first", "next", "next")] == [
        *(True, False, False, True, False)
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_is_one_sentence(tmp_path, manifest, run_json):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if mount.returncode:
        pytest.skip("this machine allows no mounts")
    try:
        # The message needs a disk that is not full.
        training = Training(disk, manifest, run_json, log=tmp_path / "log.txt")
        assert training.end() == 2
        assert "is the disk full?" in training.text()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_finished_training_is_not_repeated(tmp_path, manifest, run_json, unbroken):
    """Snakemake deletes the files of a job whose end it missed; the next attempt restores them at once."""
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 0, training.text()
    for path in training.output.iterdir():
        path.unlink()
    again = Training(tmp_path, manifest, run_json)
    assert again.end() == 0, again.text()
    assert "was finished before" in again.text()
    assert again.text().count("finished 400 steps") == 1
    assert_same_results(again.output, unbroken)


def test_final_files_are_written_again_after_a_kill(tmp_path, manifest, run_json, unbroken):
    """After a kill while the final files are written, they are equal, and none exists twice."""
    training = Training(tmp_path, manifest, run_json, hang=(".history.", 1, tmp_path / "in-the-middle"))
    training.wait_for((tmp_path / "in-the-middle").exists)
    assert training.end(signal.SIGKILL) == -signal.SIGKILL
    training = Training(tmp_path, manifest, run_json)
    assert training.end() == 0, training.text()
    assert_same_results(training.output, unbroken)


def test_state_of_other_code_is_not_continued(tmp_path, manifest, run_json, unbroken):
    """A changed source restarts the training; a changed comment does not."""
    package = tmp_path / "code" / "raretok"
    shutil.copytree(Path(raretok.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    loss = package / "methods" / "threshold.py"
    code = (OTHER_PACKAGE, str(package.parent))
    interrupted(tmp_path, manifest, run_json)
    loss.write_text(loss.read_text() + "\n# a comment\n")
    training = Training(tmp_path, manifest, run_json, code=code)
    training.wait_for(lambda: "continuing" in training.text())
    training.end(signal.SIGKILL)
    loss.write_text(loss.read_text() + "\nUNUSED = 1\n")
    training = Training(tmp_path, manifest, run_json, code=code)
    assert training.end() == 0, training.text()
    assert training.text().count("continuing") == 1
    assert read_json(training.output / "training.json")["resumes"] == 0
    assert_same_results(training.output, unbroken)
