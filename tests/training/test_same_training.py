"""Shared training: runs with the same settings copy the files of one training."""

import copy
from argparse import Namespace
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from rarepapers.core.config_files import canonical_json, read_yaml
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.experiments.run_code import training_key
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import same_training
from rarepapers.training.loop import Options, train
from rarepapers.training.train_command import main


@pytest.fixture(scope="module")
def cross():
    """The run table of scale small, whose comparison has a task of the papers."""
    return load(read_yaml(Path("config/config.yaml")) | {"scale": "small", "seeds": 1})


def test_the_comparison_shares_the_papers_runs(cross):
    shared = {
        f"{run.experiment}/{run.method}": f"{same.experiment}/{same.method}"
        for run in cross.runs.values()
        if (same := same_training(cross, run))
    }
    assert shared["cross_bpe/mle_rate1"] == "empirical/mle"
    assert shared["cross_bpe/cosreg_gamma1"] == "language_model/cosreg"
    assert "cross_bpe/freeze_rate1" not in shared
    # A copy is never copied, and a run with fewer observations does not replace one with more.
    assert not shared.keys() & set(shared.values())


def test_observations_and_unused_settings_do_not_change_the_weights():
    settings = {"method": {}, "training": {"steps": 1}, "model": {}}
    same = {"method": {"observe": ["gradient_norms"]}, "training": {"steps": 1, "rare": {"alpha": 1}}, "model": {}}
    assert training_key(settings) == training_key(same)
    same["method"]["gate"] = {"name": "agg"}
    other = copy.deepcopy(same)
    other["training"]["rare"]["alpha"] = 2
    assert training_key(same) != training_key(other)


def test_copied_files_name_the_other_run(tmp_path, corpus, make_run, no_signals):
    run = make_run(training={"steps": 60}) | {"paper": "p"}
    train(run, corpus, tmp_path / "first", tmp_path / "state", Options())
    other = copy.deepcopy(run) | {"experiment": "another", "hash": "b" * 16}
    other["settings"]["method"].pop("observe")
    write_json(tmp_path / "manifest.json", {})

    def adopt(settings):
        run = other | {"settings": settings}
        options = {"run": canonical_json(run), "manifest": corpus.folder / "manifest.json"}
        main(Namespace(**options, same_as=[tmp_path / "first" / "training.json"], output=tmp_path / "copy"))

    adopt(other["settings"])
    record, first = read_json(tmp_path / "copy" / "training.json"), read_json(tmp_path / "first" / "training.json")
    assert (record["experiment"], record["hash"], record["settings"]) == ("another", "b" * 16, other["settings"])
    assert (record["same_as"]["hash"], record["seconds"]) == (first["hash"], first["seconds"])
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("first", "copy")]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    longer = copy.deepcopy(other["settings"])
    longer["training"]["steps"] = 61
    with pytest.raises(UserError, match="other settings or data"):
        adopt(longer)
    write_json(tmp_path / "first" / "training.json", first | {"sources": "other"})
    with pytest.raises(UserError, match="a training by other code"):
        adopt(other["settings"])
    (tmp_path / "first" / "model.safetensors").unlink()
    with pytest.raises(UserError, match="a file beside it does not exist"):
        adopt(other["settings"])
