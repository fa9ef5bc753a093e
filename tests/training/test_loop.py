"""Training steps, observations and files."""

import csv
import math

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.machine.device import choose_device
from rarepapers.training.loop import Options, train
from rarepapers.training.tasks import CharacterTask
from rarepapers.training.trainer import Trainer


def trained(folder, corpus, run, **options):
    train(run, corpus, folder / "output", folder / "state", Options(**options))
    return folder / "output"


def test_final_files(tmp_path, corpus, make_run, no_signals):
    run = make_run(training={"steps": 120})
    output = trained(tmp_path, corpus, run)
    record = read_json(output / "training.json")
    assert record["hash"] == run["hash"]
    assert record["settings"] == run["settings"]
    assert record["data"] == corpus.sha256
    assert record["tokens"] == 120 * 4 * 16
    assert record["versions"]["torch"] == torch.__version__
    with (output / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    valid = {int(row["step"]): float(row["loss"]) for row in rows if row["split"] == "valid"}
    assert sorted(valid) == [50, 100, 120]
    assert record["best_step"] == min(valid, key=valid.get)
    train_rows = [row for row in rows if row["split"] == "train"]
    assert len(train_rows) == 120
    assert float(train_rows[-1]["loss"]) < float(train_rows[0]["loss"])
    best, last = load_file(output / "model.safetensors"), load_file(output / "last.safetensors")
    assert best.keys() == last.keys()


def test_the_best_checkpoint_has_the_lowest_validation_loss(tmp_path, corpus, make_run, no_signals, monkeypatch):
    losses = {50: 2.0, 100: 3.0, 120: 4.0}
    monkeypatch.setattr(CharacterTask, "validate", lambda self, model, step, must_stop: {"valid": losses[step]})
    output = trained(tmp_path, corpus, make_run(training={"steps": 120}))
    assert read_json(output / "training.json")["best_step"] == 50
    best, last = load_file(output / "model.safetensors"), load_file(output / "last.safetensors")
    assert any(not np.array_equal(best[name], last[name]) for name in best)


def test_observing_changes_no_bit(tmp_path, corpus, make_run, no_signals):
    observed = make_run(training={"steps": 60})
    plain = make_run(training={"steps": 60})
    plain["settings"]["method"].pop("observe")
    one, other = trained(tmp_path / "a", corpus, observed), trained(tmp_path / "b", corpus, plain)
    assert (one / "last.safetensors").read_bytes() == (other / "last.safetensors").read_bytes()
    assert not np.load(other / "observations.npz").files


def test_observed_norms_equal_three_separate_backward_passes(corpus, make_run):
    """g1, g2, g3 by detaching all but one path to the embeddings (stop_jostling, section 2.2)."""
    # Two positions with likely targets, so that some tokens are below the threshold at both.
    settings = make_run(model={"dropout": 0.0, "context": 2}, training={"batch_size": 1})["settings"]
    settings["method"].pop("gate")
    settings["method"]["loss"]["margin"] = 0.1
    task = CharacterTask(corpus, settings, "cpu")
    trainer = Trainer(settings, task.facts())
    inputs = task.micro_batches(0)[0][0]
    targets = trainer.model.logits(trainer.model(inputs)).argmax(dim=2)
    weight = trainer.model.input_weight
    margin = settings["method"]["loss"]["margin"]

    def gradient(part):
        w = weight.detach().clone().requires_grad_()
        source = {name: weight.detach() for name in ("input", "target", "other")} | {part: w}
        x = source["input"][inputs] + trainer.model.position_embedding.weight[: inputs.shape[1]]
        for block in trainer.model.blocks:
            x = block(x)
        hidden = trainer.model.final_norm(x).flatten(0, 1)
        y = targets.flatten()
        own = torch.nn.functional.one_hot(y, 40).bool()
        z = torch.where(own, hidden @ source["target"].T, hidden @ source["other"].T)
        z = z.masked_fill(z < z.gather(1, y[:, None]) - margin, -math.inf)
        return torch.autograd.grad(torch.nn.functional.cross_entropy(z, y), w)[0].norm(dim=1).double()

    aligned, marginal = gradient("input") + gradient("target"), gradient("other")
    trainer.backward([(inputs, targets)])
    sums = trainer.observations["gradient_norms"].tensors
    assert (marginal == 0).any()
    assert (marginal > 0).any()
    zero = marginal == 0
    close = {"rtol": 1e-4, "atol": 1e-7}
    torch.testing.assert_close(sums["sum_aligned"], aligned, **close)
    torch.testing.assert_close(sums["sum_marginal"], marginal, **close)
    torch.testing.assert_close(sums["zero_steps"], zero.double())
    torch.testing.assert_close(sums["sum_aligned_zero"], aligned * zero, **close)
    torch.testing.assert_close(sums["sum_ratio"], torch.where(zero, 0.0, aligned / marginal), rtol=1e-3, atol=1e-6)


def test_methods_of_one_seed_see_the_same_batches(corpus, make_run):
    """Dropout draws random numbers, but the batches stay the same."""
    one = CharacterTask(corpus, make_run()["settings"], "cpu")
    first = [one.draw(step)[0] for step in range(5)]
    torch.manual_seed(99)
    torch.rand(7)
    plain = make_run(model={"dropout": 0.5})["settings"]
    plain["method"] = {}
    other = CharacterTask(corpus, plain, "cpu")
    assert all(np.array_equal(batch, other.draw(step)[0]) for step, batch in enumerate(first))


def test_a_text_shorter_than_a_block_is_refused(corpus, make_run):
    with pytest.raises(UserError, match="5,001 are needed"):
        CharacterTask(corpus, make_run(model={"context": 5000})["settings"], "cpu")


def test_a_missing_device_is_refused():
    assert choose_device("cpu") == "cpu"
    with pytest.raises(UserError, match="device is 'tpu'"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        assert choose_device("auto") == "cpu"
        with pytest.raises(UserError, match="torch sees no GPU"):
            choose_device("cuda")
