"""Recorded files of finished runs; recording loses none."""

import json
import shutil

import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.reporting.record import record


def test_runs_are_recorded_with_those_of_other_machines(scale, tmp_path):
    comparison = scale.folder / "comparisons" / "pairs" / "seed1.json"
    comparison.parent.mkdir(parents=True)
    comparison.write_text("{}")
    translated = scale.folder / "runs" / "shakespeare" / "baseline" / "seed1" / "hypotheses.json"
    assert translated.parent.exists()
    translated.write_text('{"test": ["one"], "domain.news": ["two"]}')
    kept, left = record(scale.folder, tmp_path)
    assert not left
    assert len(kept) == len(scale.paths)
    assert json.loads((tmp_path / translated.relative_to(scale.folder)).read_text()) == {"test": ["one"]}
    assert len(list(tmp_path.rglob("hypotheses.json"))) == 1
    assert (tmp_path / comparison.relative_to(scale.folder)).exists()
    assert all((folder / name).exists() for folder in kept for name in ("metrics.json", "arrays.npz"))
    text = (tmp_path / "README.md").read_text()
    assert text.count("| shakespeare/") == len(scale.paths)


def test_recording_adds_and_replaces_but_deletes_nothing(scale, tmp_path):
    results, kept = tmp_path / "results", tmp_path / "recorded"
    shutil.copytree(scale.folder, results)
    record(results, kept)
    runs = results / "runs" / "shakespeare"
    baseline = runs / "baseline" / "seed1" / "metrics.json"
    measured = json.loads(baseline.read_text())
    baseline.write_text(json.dumps(measured | {"evaluation": {"again": True}}))
    shutil.rmtree(runs / "cwt")
    assert len(record(results, kept)[0]) == len(scale.paths) - 2
    assert len(list(kept.glob("runs/*/*/*/metrics.json"))) == len(scale.paths)
    assert json.loads((kept / baseline.relative_to(results)).read_text())["evaluation"] == {"again": True}
    assert (kept / "README.md").read_text().count("| shakespeare/") == len(scale.paths)


@pytest.fixture
def recorded(scale, tmp_path):
    """A copy of the results and their record, the baseline's folder in each, and its name."""
    results, kept = tmp_path / "results", tmp_path / "recorded"
    shutil.copytree(scale.folder, results)
    record(results, kept)
    name = "shakespeare/baseline/seed1"
    return results, kept, results / "runs" / name, kept / "runs" / name, name


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_that_is_not_evaluated_since_its_training_stays_as_it_was(recorded):
    results, kept, folder, target, name = recorded
    before, others = contents(target), len(record(results, kept)[0]) - 1
    (folder / "history.csv").write_text("of another training")
    training = read_json(folder / "metrics.json")["training"]
    write_json(folder / "training.json", training | {"sources": "newer"})
    found, left = record(results, kept)
    assert (len(found), list(left)) == (others, [name])
    assert "trained again since its evaluation" in left[name]
    assert contents(target) == before
    write_json(folder / "training.json", training)
    assert record(results, kept)[1] == {}
    assert contents(target)["history.csv"] == b"of another training"


@pytest.mark.parametrize("lost", ["history.csv", "arrays.npz"])
def test_a_run_with_a_missing_file_stays_as_it_was(recorded, lost):
    results, kept, folder, target, name = recorded
    before = contents(target)
    (folder / lost).unlink()
    write_json(folder / "metrics.json", read_json(folder / "metrics.json") | {"evaluation": {"again": True}})
    assert record(results, kept)[1] == {name: f"{lost} is missing; train or evaluate the run first"}
    assert contents(target) == before


def test_files_of_an_earlier_evaluation_are_removed(recorded):
    results, kept, folder, target, _ = recorded
    write_json(folder / "hypotheses.json", {"test": ["one"]})
    record(results, kept)
    assert read_json(target / "hypotheses.json") == {"test": ["one"]}
    (folder / "hypotheses.json").unlink()
    record(results, kept)
    assert not (target / "hypotheses.json").exists()


def test_remeasured_metrics_stay_until_the_run_is_evaluated_again(recorded, capsys):
    results, kept, folder, target, name = recorded
    measured = read_json(folder / "metrics.json") | {"evaluation": {"sources": "first"}}
    write_json(folder / "metrics.json", measured)
    write_json(target / "metrics.json", measured | {"evaluation": {"sources": "first", "remeasured": {"arrays": []}}})
    before = contents(target)
    assert main(["record", "--results", str(results), "--output", str(kept)]) == 0
    assert f"not recorded: {name}: its recorded metrics were remeasured" in capsys.readouterr().out
    assert contents(target) == before
    write_json(folder / "metrics.json", measured | {"evaluation": {"sources": "second"}})
    assert record(results, kept)[1] == {}
    assert read_json(target / "metrics.json")["evaluation"] == {"sources": "second"}


def test_without_finished_runs_there_is_an_error(tmp_path):
    with pytest.raises(UserError, match="holds no evaluated run"):
        record(tmp_path, tmp_path / "kept")
