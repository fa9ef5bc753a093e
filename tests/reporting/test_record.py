"""What is kept of finished runs, and that it replaces what was kept before."""

import json

import pytest

from raretok.errors import UserError
from raretok.reporting.record import record


def test_runs_are_kept_whole_and_old_ones_go(scale, tmp_path):
    old = tmp_path / "runs" / "shakespeare" / "forgotten" / "seed1" / "metrics.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    comparison = scale.folder / "comparisons" / "pairs" / "seed1.json"
    comparison.parent.mkdir(parents=True)
    comparison.write_text("{}")
    translated = scale.folder / "runs" / "shakespeare" / "baseline" / "seed1" / "hypotheses.json"
    assert translated.parent.exists()
    translated.write_text('{"test": ["one"], "domain.news": ["two"]}')
    kept = record(scale.folder, tmp_path)
    assert len(kept) == 2 * 49
    assert not old.exists()
    assert json.loads((tmp_path / translated.relative_to(scale.folder)).read_text()) == {"test": ["one"]}
    assert len(list(tmp_path.rglob("hypotheses.json"))) == 1
    assert (tmp_path / comparison.relative_to(scale.folder)).exists()
    assert all((folder / name).exists() for folder in kept for name in ("metrics.json", "arrays.npz"))
    text = (tmp_path / "README.md").read_text()
    assert text.count("| shakespeare/") == 2 * 49


def test_nothing_to_keep_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="holds no evaluated run"):
        record(tmp_path, tmp_path / "kept")
