"""Evaluation on a simulated GPU: no mixed devices, and the numbers of a CPU."""

import json

import numpy as np
import torch
from tests.evaluation import test_evaluate_command, test_evaluate_language, test_evaluate_translation

from tests import fake_gpu

run = test_evaluate_command.run


def assert_same_numbers(evaluate, root, monkeypatch):
    """`evaluate` on the simulated device writes the same root/out/metrics.json as on a CPU."""
    written = root / "out" / "metrics.json"
    assert evaluate() == 0
    expected = json.loads(written.read_text())["metrics"]
    monkeypatch.setattr("rarepapers.evaluation.evaluate_command.choose_device", lambda *_: fake_gpu.DEVICE)
    # Its tensors have no version counters, which torch needs for tensors held by Python.
    monkeypatch.setattr(torch._C, "_InferenceMode", lambda _: torch.no_grad())
    with fake_gpu.FakeGpu() as gpu:
        assert evaluate() == 0
    assert gpu.waits
    rows = json.loads(written.read_text())["metrics"]
    assert [{**row, "value": None} for row in rows] == [{**row, "value": None} for row in expected]
    # Near its best value the likelihood hardly depends on the temperature, so rounding moves that; not what follows.
    kept = [row["metric"] != "fitted_temperature" for row in rows]
    values = (np.array([row["value"] for row in measured], dtype=float) for measured in (rows, expected))
    ours, others = (column[kept] for column in values)
    np.testing.assert_allclose(ours, others, rtol=1e-4)
    assert 0 < len(ours) < len(rows) or all(kept)


def test_characters(run, monkeypatch):
    assert_same_numbers(lambda: test_evaluate_command.evaluate(run), run, monkeypatch)


def test_language(language_run, prepared, monkeypatch):
    settings = test_evaluate_language.SETTINGS | {"fit_temperature": True}
    measure = test_evaluate_language.evaluate
    assert_same_numbers(lambda: measure(language_run, prepared, settings), language_run, monkeypatch)


def test_translation(translation_run, prepared_pairs, pair_links, monkeypatch):
    root = translation_run
    measure = test_evaluate_translation.evaluate
    assert_same_numbers(lambda: measure(root, prepared_pairs, links=pair_links), root, monkeypatch)
