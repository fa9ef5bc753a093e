"""Recorded files of finished runs; recording loses none."""

import json
import shutil

import pytest

from raretok.core.errors import UserError
from raretok.reporting.record import record


def test_runs_are_recorded_with_those_of_other_machines(scale, tmp_path):
    comparison = scale.folder / "comparisons" / "pairs" / "seed1.json"
    comparison.parent.mkdir(parents=True)
    comparison.write_text("{}")
    translated = scale.folder / "runs" / "shakespeare" / "baseline" / "seed1" / "hypotheses.json"
    assert translated.parent.exists()
    translated.write_text('{"test": ["one"], "domain.news": ["two"]}')
    kept = record(scale.folder, tmp_path)
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
    assert len(record(results, kept)) == len(scale.paths) - 2
    assert len(list(kept.glob("runs/*/*/*/metrics.json"))) == len(scale.paths)
    assert json.loads((kept / baseline.relative_to(results)).read_text())["evaluation"] == {"again": True}
    assert (kept / "README.md").read_text().count("| shakespeare/") == len(scale.paths)


def test_without_finished_runs_there_is_an_error(tmp_path):
    with pytest.raises(UserError, match="holds no evaluated run"):
        record(tmp_path, tmp_path / "kept")
