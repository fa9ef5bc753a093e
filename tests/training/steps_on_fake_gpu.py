"""Every kind of method and task on a simulated GPU: no mixed devices, no unexpected wait, equal numbers."""

import pytest
import torch
from tests.training.test_every_method import FIRST, TASKS, tiny

from rarepapers.training.trainer import Trainer
from tests import fake_gpu

*OTHERS, TRANSLATION = TASKS
STEPS = 2
# Every method on the task with padding, every third method on one of the others.
CASES = [(TRANSLATION, name) for name in FIRST] + [(OTHERS[k % 2], name) for k, name in enumerate(FIRST[::3])]


class Event:
    """Stands for `torch.cuda.Event`."""

    def record(self, stream):
        """Nothing is under way; a stream is its device here, which need not be the current one."""
        assert stream.type == fake_gpu.DEVICE

    def synchronize(self):
        """Nothing is under way."""


def trained(settings, task, device, waits):
    """The output matrix after some steps, and the waits of the host in each."""
    task.device = device
    trainer = Trainer(settings, task.facts())
    seen = []
    for step in range(STEPS):
        batches = task.micro_batches(step)
        waits.clear()
        trainer.backward(batches)
        trainer.step(0.01)
        seen.append(list(waits))
    return trainer.model.output_weight.detach().cpu().clone(), seen


@pytest.mark.parametrize(("experiment", "method"), CASES)
def test_a_step_has_no_wait_and_no_mixed_devices(experiment, method, request, monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    settings, task = tiny(experiment, method, request)
    expected, _ = trained(settings, task, "cpu", [])
    with fake_gpu.FakeGpu() as gpu:
        weights, seen = trained(settings, task, fake_gpu.DEVICE, gpu.waits)
    assert seen[1:] == [[]] * (STEPS - 1)
    torch.testing.assert_close(weights, expected)


def test_observations_between_steps_cost_no_wait_in_a_step(request, monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    settings, task = tiny(TRANSLATION, FIRST[0], request)
    settings["model"]["output_bias"] = "unigram"
    settings["method"] = settings["method"] | {"observe": [{"name": "output_bias", "every": 1}]}
    with fake_gpu.FakeGpu() as gpu:
        _, seen = trained(settings, task, fake_gpu.DEVICE, gpu.waits)
    assert seen[1:] == [[]] * (STEPS - 1)
