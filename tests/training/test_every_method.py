"""Every method of the comparison on every kind of task: parts combine, losses are finite."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from rarepapers.experiments import run_table
from rarepapers.training.tasks import CharacterTask, LanguageTask
from rarepapers.training.trainer import Trainer
from rarepapers.training.translation_task import TranslationTask

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
TABLE = run_table.load(CONFIG | {"scale": "small_gpu", "papers": ["cross"], "seeds": 1}, ROOT)
# The candidate of each method with the first values.
FAMILIES = TABLE.papers["cross"]["tables"]["table1"]["candidates"]
FIRST = [next(iter(family["methods"])) for family in FAMILIES.values()]
TASKS = {
    "cross_character": (CharacterTask, "corpus", "make_run"),
    "cross_bpe": (LanguageTask, "language", "make_language_run"),
    "cross_translation": (TranslationTask, "translation", "make_translation_run"),
}


def tiny(experiment, method, request):
    """Settings of a method in a task with a tiny model, and the task."""
    kind, corpus, make = TASKS[experiment]
    real = TABLE.run(experiment, method, 1).settings
    settings = request.getfixturevalue(make)(
        model={"dropout": 0.0, "output_bias": real["model"].get("output_bias")},
        training={key: real["training"][key] for key in ("rare", "schedule")},
        method=real["method"],
    )["settings"]
    return settings, kind(request.getfixturevalue(corpus), settings, "cpu")


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("experiment", TASKS)
def test_every_method_trains(experiment, method, request):
    if method not in TABLE.papers["cross"]["methods"] or experiment not in TABLE.experiments_of("cross", method):
        pytest.skip("left out of this task, with a reason in config/papers/cross/paper.yaml")
    settings, task = tiny(experiment, method, request)
    trainer = Trainer(settings, task.facts())
    before = trainer.model.output_weight.detach().clone()
    for step in range(3):
        result = trainer.backward(task.micro_batches(step))
        assert torch.isfinite(torch.stack([result.loss.double(), result.norm.double()])).all()
        trainer.step(0.01)
    assert not torch.equal(trainer.model.output_weight, before)


@pytest.mark.parametrize("experiment", TASKS)
def test_every_candidate_starts(experiment, request):
    """Its parts are built, its gate starts, and it differs from the method's other candidates.

    The fixtures' text is too short to have rare types at half of AGG's bound, so counts are synthetic.
    """
    for family in FAMILIES.values():
        started = []
        for method in family["methods"]:
            settings, task = tiny(experiment, method, request)
            facts = task.facts()
            counts = np.geomspace(1e6, 1, len(facts.counts)).astype(np.int64)
            trainer = Trainer(settings, replace(facts, counts=counts))
            assert (trainer.criterion.gate is None) == ("gate" not in settings["method"]), method
            parts = repr(trainer.criterion._parts)
            started.append((trainer.criterion.derived(), parts, settings["training"]["schedule"]))
        assert all(one not in started[:place] for place, one in enumerate(started)), family["label"]


def test_every_method_is_in_these_tests():
    paper = yaml.safe_load((ROOT / "config/papers/cross/paper.yaml").read_text(encoding="utf-8"))
    assert set(FAMILIES) == set(paper["methods"])
