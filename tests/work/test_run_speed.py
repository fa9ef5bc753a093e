"""Estimates of the remaining time of runs."""

from collections import namedtuple

import pytest
import torch

from raretok.work.run_speed import Speed


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
    # A run that was only evaluated has no training time.
    speed.note(language, 100 * planned, share=0)
    assert speed.expected(language) == pytest.approx(2 * planned)


@pytest.mark.parametrize(
    ("gpu", "machine"), [("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA H200", "H200"), ("NVIDIA B200", "H200")]
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
