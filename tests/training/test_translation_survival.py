"""A translation run that is killed continues exactly: final files equal an unbroken run's, byte for byte."""

import signal

import numpy as np
import pytest
from tests.training.child import Training
from tests.training.conftest import TRANSLATION_SETTINGS, run_of
from tests.training.test_survival import assert_same_results

from rarepapers.core.config_files import canonical_json
from rarepapers.core.files import read_json
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.training.checkpoint import weights_path
from rarepapers.training.loop import Options, train


def end_of(run, folder, manifest):
    """The final files of an unbroken training."""
    train(run, load_manifest(manifest), folder / "unbroken", folder / "other", Options())
    return folder / "unbroken"


@pytest.fixture
def unbroken(tmp_path, translation_manifest, make_translation_run, no_signals):
    return end_of(make_translation_run(), tmp_path, translation_manifest)


def test_sigkill_at_several_points(tmp_path, translation_manifest, make_translation_run, unbroken):
    """With batches of pairs, counters of an epoch, a penalty that stops, BLEU, a mean of checkpoints, observations."""
    run = canonical_json(make_translation_run())
    for checkpoints, steps in ((2, 4), (2, 10), (2, 8)):  # at about steps 8, 20 and 36
        training = Training(tmp_path, translation_manifest, run, checkpoint_steps=steps)
        training.wait_for_checkpoints(checkpoints + (training.state / "checkpoint.safetensors").exists())
        assert training.end(signal.SIGKILL) == -signal.SIGKILL
        assert not training.output.exists()
    training = Training(tmp_path, translation_manifest, run, checkpoint_steps=20)
    assert training.end() == 0, training.text()
    assert_same_results(training.output, unbroken)
    ours, theirs = (read_json(folder / "training.json") for folder in (training.output, unbroken))
    assert ours["resumes"] == 3
    for key in ("tokens", "best_step", "best_validation_bleu", "best_validation_loss", "averaged_steps"):
        assert ours[key] == theirs[key], key
    assert [path.name for path in training.state.iterdir() if path.is_file()] == ["lock"]


def test_the_best_weights_by_bleu_survive_a_kill(tmp_path, translation_manifest, make_translation_run, no_signals):
    """The model hardly learns, so the first checkpoint stays the best and its weights are read from the disk."""
    schedule = {"name": "inverse_sqrt", "peak": 1e-6, "warmup": 10}
    run = make_translation_run(training={"steps": 45, "average": 0, "schedule": schedule, "precision": "bfloat16"})
    unbroken = end_of(run, tmp_path, translation_manifest)
    training = Training(tmp_path, translation_manifest, canonical_json(run), checkpoint_steps=20)
    training.wait_for_checkpoints(1)
    assert training.end(signal.SIGKILL) == -signal.SIGKILL
    assert [path.name for path in training.state.glob("best-*")] == [weights_path(training.state, "best", 15).name]
    training = Training(tmp_path, translation_manifest, canonical_json(run))
    assert training.end() == 0, training.text()
    assert_same_results(training.output, unbroken)
    ours, theirs = (read_json(folder / "training.json") for folder in (training.output, unbroken))
    assert ours["best_step"] == theirs["best_step"] == 15
    assert ours["best_validation_bleu"] == theirs["best_validation_bleu"]
    model, last = ((unbroken / f"{name}.safetensors").read_bytes() for name in ("model", "last"))
    assert model != last


def test_an_interrupted_validation_is_repeated(tmp_path, translation_manifest, make_translation_run, unbroken):
    """It counts once."""
    run = canonical_json(make_translation_run())
    training = Training(tmp_path, translation_manifest, run, checkpoint_steps=15)
    # The checkpoint of step 15 is written just before its validation.
    training.wait_for_checkpoints(1)
    assert training.end(signal.SIGTERM) == 75
    assert "stopped at step" in training.text()
    training = Training(tmp_path, translation_manifest, run)
    assert training.end() == 0, training.text()
    assert_same_results(training.output, unbroken)


@pytest.mark.parametrize(("write", "steps"), [(4, (15, 30, 45)), (5, (30, 45))])
def test_validated_weights_are_kept_while_a_checkpoint_names_them(
    tmp_path, translation_manifest, make_translation_run, unbroken, write, steps
):
    """Checkpoints at steps 12, 24, 36, 48 and 60; the fourth is the first that does not name step 15."""
    run = canonical_json(make_translation_run(training={"average": 2}))
    hang = (".checkpoint.", write, tmp_path / "here")
    training = Training(tmp_path, translation_manifest, run, hang=hang, checkpoint_steps=12)
    training.wait_for((tmp_path / "here").exists)
    assert training.end(signal.SIGKILL) == -signal.SIGKILL
    assert not list(training.state.glob("best-*"))
    names = sorted(path.name for path in training.state.glob("validated-*"))
    assert names == [weights_path(training.state, "validated", step).name for step in steps]
    training = Training(tmp_path, translation_manifest, run)
    assert training.end() == 0, training.text()
    assert read_json(training.output / "training.json")["averaged_steps"] == [45, 60]
    assert (training.output / "last.safetensors").read_bytes() == (unbroken / "last.safetensors").read_bytes()


def test_counts_of_other_text_are_part_of_a_run(tmp_path, translation_manifest, translation):
    """The command reads their file; a checkpoint that started from other counts is refused."""
    run = run_of_outside(tmp_path, translation)
    first = training_of(tmp_path, translation_manifest, run, tmp_path / "counts.npy")
    first.wait_for_checkpoints(1)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    second = training_of(tmp_path, translation_manifest, run, tmp_path / "others.npy")
    assert second.end() == 2
    assert "belongs to another counts" in second.text()
    third = training_of(tmp_path, translation_manifest, run, tmp_path / "nowhere.npy")
    assert third.end() == 2
    assert "nowhere.npy, the file of --counts, cannot be read" in third.text()
    fourth = training_of(tmp_path, translation_manifest, run, tmp_path / "counts.npy")
    assert fourth.end() == 0, fourth.text()
    assert read_json(fourth.output / "training.json")["counts"]
    assert "Traceback" not in fourth.text()


def run_of_outside(folder, corpus):
    np.save(folder / "counts.npy", np.arange(corpus.types))
    np.save(folder / "others.npy", np.arange(corpus.types)[::-1])
    return canonical_json(run_of(TRANSLATION_SETTINGS, model={"output_bias": "file"}))


def training_of(folder, manifest, run, counts):
    return Training(folder, manifest, run, checkpoint_steps=5, further=["--counts", str(counts)])
