"""Precision and processor of trainings, also from older records, and seeds of one row in several precisions."""

import json
import shutil
from pathlib import Path

import pytest
from fake_results import PUBLISHED

from rarepapers.__main__ import main
from rarepapers.core.files import read_json, write_json
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.record import provenance
from rarepapers.reporting.recorded_precision import NOT_RECORDED, mixed_precision, precision_of, processor_of

ROOT = Path(__file__).parents[2]


def training(wanted=None, used=None, **facts):
    settings = {"training": {"precision": wanted} if wanted else {}}
    return {"settings": settings, "device": "CPU, A 1, 2 thread(s)"} | ({"precision": used} if used else {}) | facts


@pytest.mark.parametrize(
    ("wanted", "used", "expected"),
    [
        ("bfloat16", "bfloat16", "bfloat16"),
        ("bfloat16", "float32", "float32"),
        # Older records: only a wish for bfloat16 depends on the processor.
        (None, None, "float32"),
        ("float32", None, "float32"),
        ("bfloat16", None, NOT_RECORDED),
    ],
)
def test_the_precision_is_the_one_used(wanted, used, expected):
    assert precision_of(training(wanted, used)) == expected


def test_the_processor_is_recorded_or_part_of_the_device():
    assert processor_of(training(processor="A 1 (family 2, model 3)")) == "A 1 (family 2, model 3)"
    assert processor_of(training()) == "A 1"
    assert processor_of(training(device="NVIDIA H100")) == NOT_RECORDED


def test_recorded_runs_have_precision_and_processor():
    for path in (ROOT / "results/recorded/small").glob("runs/*/*/seed1/metrics.json"):
        record = json.loads(path.read_text())["training"]
        assert precision_of(record) == record["settings"]["training"].get("precision", "float32")
        assert processor_of(record) != ""


def test_provenance_names_both():
    folder = ROOT / "results/recorded/small/runs/language_model/agg/seed1"
    assert "CPU, AMD EPYC, 1 thread(s) | AMD EPYC | bfloat16 | " in provenance([folder])


def test_seeds_in_several_precisions_are_named():
    low, high = training("bfloat16", "bfloat16"), training("bfloat16", "float32")
    assert mixed_precision({1: low, 2: low}) == mixed_precision({}) == ""
    words = "trained in different precisions: seeds 1, 3 in bfloat16, seed 2 in float32"
    assert mixed_precision({3: low, 2: high, 1: low}) == words


def test_the_note_stands_below_the_table(bias, tmp_path):
    """In the Markdown and the LaTeX that the command writes, for the row whose first seed is made another precision."""
    definition = definition_of(bias.definition)
    item = next(iter(definition.tables))
    method = next(iter(definition.of(item).behind(item)))
    results = tmp_path / "small"
    shutil.copytree(bias.folder, results)
    path = method.run_folder(results, method.seeds[0]) / "metrics.json"
    content = read_json(path)
    content["training"]["precision"] = "float64"
    write_json(path, content)
    options = ["--item", item, "--definition", json.dumps(bias.definition), "--results", str(results)]
    assert main(["table", *options, "--published", str(PUBLISHED), "--output-stem", str(tmp_path / "table")]) == 0
    note = f"{method.label} ({method.experiment}): trained in different precisions: seeds 2, 3 in float32, seed 1 in "
    assert f"- {note}float64." in (tmp_path / "table.md").read_text()
    assert "trained in different precisions" in (tmp_path / "table.tex").read_text()
