"""The command `remeasure` on recorded runs."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.files import read_arrays
from rarepapers.evaluation.metric_rows import Found
from rarepapers.evaluation.remeasure import Remeasured, _same, changed_arrays, merge
from rarepapers.metrics import projection

RECORDED = Path(__file__).parents[2] / "results" / "recorded" / "small"


@pytest.fixture
def recorded(tmp_path):
    """A copy of two recorded runs: of a character model, and of a translation model without kept data."""
    for run in ("shakespeare/baseline/seed1", "iwslt14_de-en/zero/seed1"):
        shutil.copytree(RECORDED / "runs" / run, tmp_path / "runs" / run)
    # Like a run that was recorded before data for later metrics were kept.
    (tmp_path / "runs/iwslt14_de-en/zero/seed1/measurable.npz").unlink()
    return tmp_path


def test_queries_neighbours_and_cosines_change_together():
    old = {
        "best.neighbour_queries": np.array([5, 6]),
        "best.neighbours": np.array([[1, 2], [3, 4]]),
        "best.neighbour_cosines": np.array([[0.9, 0.8], [0.9, 0.8]]),
    }
    # Other ids with equal cosines are equally near.
    assert not changed_arrays(old, old | {"best.neighbours": np.array([[2, 1], [3, 4]])})
    for name, values in (
        ("neighbour_queries", np.array([5, 7])),
        ("neighbour_cosines", np.array([[0.9, 0.8]] * 2) / 2),
    ):
        again = old | {f"best.{name}": values, "best.neighbours": np.array([[9, 2], [3, 1]])}
        found = changed_arrays(old, again)
        assert found.keys() == old.keys()
        assert found["best.neighbours"][0, 0] == 9


def test_an_infinite_value_hides_no_change():
    old = {"best.perplexity.HR": np.array([np.inf, 50.0, 20.0])}
    assert not changed_arrays(old, old)
    assert changed_arrays(old, {"best.perplexity.HR": np.array([np.inf, 5.0, 2.0])})


@pytest.mark.parametrize(
    ("signature", "same"), [("m|k:1|raretok:9", True), ("m|k:2|raretok:9", False), ("m|k:1", True), ("m", False)]
)
def test_all_of_a_signature_but_the_version_counts(signature, same):
    assert _same(row("m", 1.0), row("m", 1.0, signature=signature), 1e-6) == same


def row(metric, value, split="weights@best", signature="m|k:1|raretok:0.1.0"):
    return {"metric": metric, "group": "", "split": split, "value": value, "n": 2, "signature": signature}


def test_embeddings_of_recorded_character_models_are_remeasured(recorded, monkeypatch, capsys):
    folder = recorded / "runs" / "shakespeare" / "baseline" / "seed1"
    monkeypatch.setattr(projection, "translation_distance", lambda plane: 0.125)
    # Recorded by a routine that was later corrected.
    arrays = read_arrays(folder / "arrays.npz")
    np.savez(folder / "arrays.npz", **(arrays | {"best.pca": arrays["best.pca"] * 2}))
    assert main(["remeasure", "--recorded", str(recorded)]) == 0
    printed = capsys.readouterr().out
    assert "pca_distance: changed, 2 value(s) of 1 run(s)\n" in printed
    assert "which need measurable.npz: iwslt14_de-en/zero/seed1" in printed
    assert "metrics of the text, whose tokens were not kept: shakespeare/baseline/seed1" in printed
    metrics = json.loads((folder / "metrics.json").read_text())
    distances = [row for row in metrics["metrics"] if row["metric"] == "pca_distance"]
    assert [row["value"] for row in distances] == [0.125, 0.125]
    assert all(row["sources"] == metrics["evaluation"]["remeasured"]["sources"] for row in distances)
    assert metrics["evaluation"]["remeasured"]["arrays"] == ["best.pca"]
    np.testing.assert_allclose(read_arrays(folder / "arrays.npz")["best.pca"], arrays["best.pca"], atol=1e-9)
    other = "runs/iwslt14_de-en/zero/seed1/metrics.json"
    assert (recorded / other).read_bytes() == (RECORDED / other).read_bytes()
    # The second time nothing changes.
    assert main(["remeasure", "--recorded", str(recorded)]) == 0
    assert "0 of 2 recorded runs changed" in capsys.readouterr().out


def test_rows_change_by_value_number_or_signature_and_go_with_their_metric():
    rows = [row("a", 1.0), row("b", 1.0), row("c", 1.0), row("d", "nan"), row("gone", 1.0)]
    rows += [row("align_similarity", 1.0), row("gone", 1.0, "weights@last"), row("isotropy_linalg_eig", 1.0)]
    fresh = [
        row("a", 1.0005, signature="m|k:1|raretok:9"),
        row("b", 1.002),
        row("c", 1.0, signature="m|k:2|raretok:0.1.0"),
        row("d", "nan"),
        row("e", 5.0),
        row("isotropy_linalg_eig", 2.0),
    ]
    again = Remeasured(Found(fresh), [1e-3] * len(fresh), ["weights@best"])
    changes = merge(rows, again, "run")
    assert {(c.row["metric"], c.before, c.after) for c in changes} == {
        ("b", 1.0, 1.002),
        ("c", 1.0, 1.0),
        ("e", None, 5.0),
        ("gone", 1.0, None),
    }
    kept = {(r["metric"], r["split"]): r["value"] for r in rows}
    assert kept["a", "weights@best"] == 1.0
    assert ("gone", "weights@best") not in kept
    assert kept["gone", "weights@last"] == kept["align_similarity", "weights@best"] == 1.0
