"""Estimates of the remaining time of runs."""

from collections import namedtuple

import pytest
import torch

from rarepapers.core.files import write_json
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.rule_inputs import train
from rarepapers.training.finished_files import FILES, KEPT, RECORD
from rarepapers.work.run_speed import Speed
from rarepapers.work.run_status import trained_share


def test_measured_times_correct_the_plan(table_with):
    table = table_with(config=["device=cpu"], scale="smoke", papers=None)
    speed, runs = Speed(table), table.runs
    character, other = runs["shakespeare", "baseline", 1], runs["shakespeare", "threshold_m2", 1]
    language = runs["language_model", "mle", 1]
    planned = speed.expected(language)
    assert planned == pytest.approx(speed.planned(language))
    assert planned > 0
    speed.note(character, 3 * speed.planned(character))
    assert speed.expected(other) == pytest.approx(3 * speed.planned(other))
    # For another experiment, only the plan's error on this machine is known.
    assert speed.expected(language) == pytest.approx(3 * planned)
    # A run that was half finished took half as long.
    speed.note(language, planned, share=0.5)
    assert speed.expected(language, share=0.25) == pytest.approx(planned / 2)
    # A run that was only evaluated or copied has no training time, and one that was almost finished hardly any.
    for share in (0, 0.02):
        speed.note(language, 100 * planned, share=share)
    assert speed.expected(language) == pytest.approx(2 * planned)


@pytest.mark.parametrize("source", ["another run", "its own state"])
def test_a_run_whose_files_are_copied_has_no_training_left(table_with, monkeypatch, source):
    table = table_with()
    run, other = (table.run("shakespeare", method, 1) for method in ("baseline", "threshold_m2"))
    assert trained_share(table, run) == 0
    folder = table.root / (table.folder(other) if source == "another run" else f"{train.state(table, run)}/{KEPT}")
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).touch()
    trained = other if source == "another run" else run
    write_json(folder / RECORD, {"hash": trained.hash, "sources": code_that_trains(trained)})
    monkeypatch.setattr("rarepapers.work.run_status.same_training", lambda *_: other)
    assert trained_share(table, run) == 1


@pytest.mark.parametrize(
    ("gpu", "machine"), [("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA B200", "H100")]
)
def test_a_gpu_is_found_by_name_and_an_unknown_one_is_fast(table_with, monkeypatch, gpu, machine):
    for name, value in {
        "is_available": True,
        "device_count": 1,
        "get_device_name": gpu,
        "get_device_properties": namedtuple("Properties", "total_memory")(2**30),
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda *index, value=value: value)
    assert Speed(table_with(config=["device=cuda"])).machine.name == machine
