"""Language runs: batches, micro-batches, facts for gates, frozen rows, validation, files."""

import math

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.nn import functional as F

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.models.building import load_model
from rarepapers.training import tasks
from rarepapers.training.loop import Options, train
from rarepapers.training.tasks import LanguageTask
from rarepapers.training.trainer import Trainer


def trained(folder, corpus, run, **options):
    train(run, corpus, folder / "output", folder / "state", Options(**options))
    return folder / "output"


def trainer_of(corpus, run):
    task = LanguageTask(corpus, run["settings"], "cpu")
    return task, Trainer(run["settings"], task.facts())


def stepped(corpus, run, steps):
    """A trainer after some steps, as in the loop."""
    task, trainer = trainer_of(corpus, run)
    for step in range(steps):
        trainer.backward(task.micro_batches(step))
        trainer.step(0.01)
    return trainer


def test_micro_batches_are_parts_of_the_batch_of_a_step(language, make_language_run):
    task = LanguageTask(language, make_language_run()["settings"], "cpu")
    whole = LanguageTask(language, make_language_run(training={"batch_size": 6, "accumulation": 1})["settings"], "cpu")
    assert task.tokens_per_step == whole.tokens_per_step == 6 * 8
    for step in (0, 30):
        batches, ((inputs, targets),) = task.micro_batches(step), whole.micro_batches(step)
        assert [part.shape for part, _ in batches] == [(3, 8), (3, 8)]
        assert torch.equal(torch.cat([part for part, _ in batches]), inputs)
        assert torch.equal(torch.cat([part for _, part in batches]), targets)
        assert torch.equal(task.targets(step), targets.flatten())


def test_a_gate_gets_the_training_facts(language, make_language_run):
    rare = {"alpha": 0.03, "share": 0.2, "mass": 0.048, "tokens": 103_227_021}
    facts = LanguageTask(language, make_language_run(training={"rare": rare})["settings"], "cpu").facts()
    assert np.array_equal(facts.counts, language.counts)
    assert facts.special == (0, 1, 2, 3)
    assert facts.tokens_per_step == 48
    assert facts.steps_per_epoch == (language.splits["train"] - 1) // 8 // 6
    assert facts.rare == rare


METHODS = {
    "mle": {},
    "agg": {"gate": {"name": "agg", "alpha": 0.3}},
    "freeze_b": {"gate": {"name": "freeze", "part": "b"}},
    "cosreg": {"penalty": {"name": "cosreg", "gamma": 1.0}},
    "unlikelihood": {"penalty": {"name": "unlikelihood", "alpha": 1.0}},
}


@pytest.mark.parametrize("method", METHODS)
def test_gradient_accumulation_changes_nothing(language, make_language_run, method):
    """With one micro-batch or two, the gate counts the whole step first, and penalties count once."""
    gradients, losses = [], []
    for sizes in ({"batch_size": 3, "accumulation": 2}, {"batch_size": 6, "accumulation": 1}):
        run = make_language_run(model={"dropout": 0.0}, training=sizes, method=METHODS[method])
        task, trainer = trainer_of(language, run)
        trainer.model.double()
        for step in range(3):
            trainer.model.zero_grad()
            result = trainer.backward(task.micro_batches(step))
        gradients.append([parameter.grad for parameter in trainer.model.parameters()])
        losses.append((result.loss, result.nll, result.norm))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    for one, other in zip(*losses, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9, check_dtype=False)


def test_the_logged_loss_is_the_plain_one(tmp_path, language, make_language_run, no_signals):
    """Also with a penalty and with gates, it is -log p of the plain logits."""
    method = {"penalty": {"name": "cosreg", "gamma": 50.0}}
    run = make_language_run(model={"dropout": 0.0}, training={"steps": 12}, method=method)
    task, trainer = trainer_of(language, run)
    targets = task.targets(0)
    inputs = torch.cat([part for part, _ in task.micro_batches(0)])
    expected = F.cross_entropy(trainer.model.logits(trainer.model(inputs)).flatten(0, 1), targets)
    result = trainer.backward(task.micro_batches(0))
    assert result.nll.item() == pytest.approx(expected.item(), rel=1e-6)
    assert abs(result.loss.item() - result.nll.item()) > 0.1
    rows = (trained(tmp_path, language, run) / "history.csv").read_text().splitlines()
    assert float(rows[1].split(",")[2]) == pytest.approx(expected.item(), rel=1e-6)


def test_counters_hold_the_targets_of_the_last_epoch(language, make_language_run):
    """After any number of steps, they equal sums over an array of every step's counts."""
    run = make_language_run(training={"batch_size": 6, "accumulation": 1})
    run["settings"]["method"]["gate"]["memory"] = 5
    for steps in (3, 5, 12):
        trainer = stepped(language, run, steps)
        task = LanguageTask(language, run["settings"], "cpu")
        expected = sum(
            task.targets(step).bincount(minlength=language.types) for step in range(max(0, steps - 5), steps)
        )
        assert torch.equal(trainer.criterion.gate.total, expected)


def test_the_loop_regenerates_the_targets_that_leave_the_memory(tmp_path, language, make_language_run, no_signals):
    """The types that are rare at each step follow from the targets of the last five."""
    run = make_language_run(training={"steps": 50})
    run["settings"]["method"] = {
        "gate": {"name": "agg", "alpha": 0.9, "memory": 5},
        "observe": [{"name": "rare_types", "steps": 50}],
    }
    sizes = np.load(trained(tmp_path, language, run) / "observations.npz")["rare_types.sizes"]
    task = LanguageTask(language, run["settings"], "cpu")
    for step in range(50):
        remembered = [task.targets(number) for number in range(max(0, step - 4), step + 1)]
        mean = torch.cat(remembered).bincount(minlength=language.types).double() / len(remembered)
        assert sizes[step] == (mean[4:] < 0.9).sum()
    assert len(set(sizes)) > 3


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_frozen_rows_do_not_change(language, make_language_run, tied, clip_norm):
    run = make_language_run(
        model={"tied": tied},
        training={"clip_norm": clip_norm},
        method={"gate": {"name": "freeze", "share": 0.3}},
    )
    start, end = trainer_of(language, run)[1], stepped(language, run, 30)
    frozen = end.criterion.frozen()
    assert 0 < frozen.sum() < len(frozen) / 2
    for before, after in zip(start.optimiser.embeddings, end.optimiser.embeddings, strict=True):
        moved = (before != after).any(dim=1)
        assert torch.equal(before[frozen], after[frozen])
        assert moved[~frozen].all()
    assert len(end.optimiser.embeddings) == (1 if tied else 2)


def test_rows_change_after_the_freeze_ends(language, make_language_run):
    run = make_language_run(method={"gate": {"name": "freeze", "share": 0.3, "until": 5}})
    weights = [stepped(language, run, steps).model.input_weight.detach() for steps in (0, 5, 6)]
    rare = stepped(language, run, 1).criterion.rare()
    assert torch.equal(weights[0][rare], weights[1][rare])
    assert (weights[1][rare] != weights[2][rare]).any(dim=1).all()


def test_frozen_rows_do_not_count_for_clipping(language, make_language_run):
    """The norm is over the rows that change."""
    run = make_language_run(model={"dropout": 0.0}, method={"gate": {"name": "freeze", "share": 0.5}})
    task, trainer = trainer_of(language, run)
    norm = trainer.backward(task.micro_batches(0)).norm
    assert (trainer.model.input_weight.grad[trainer.criterion.frozen()] == 0).all()
    squares = sum(parameter.grad.square().sum() for parameter in trainer.model.parameters())
    assert norm.item() == pytest.approx(squares.sqrt().item(), rel=1e-5)


@pytest.mark.parametrize("at_once", [2**24, 64, 1])
def test_validation_is_plain_cross_entropy_of_consecutive_blocks(language, make_language_run, monkeypatch, at_once):
    """For any chunk size and any method, and without changing counters or weights."""
    monkeypatch.setattr(tasks, "LOGITS_AT_ONCE", at_once)
    run = make_language_run(training={"validation": {"every": 20, "tokens": 100}})
    task, trainer = trainer_of(language, run)
    trainer.backward(task.micro_batches(0))
    total = trainer.criterion.gate.total.clone()
    loss = task.validation_loss(trainer.model, 0, lambda: False)
    ids = torch.from_numpy(np.array(language.tokens("valid")[: 12 * 8 + 1]).astype(np.int64))
    model = trainer.model.eval()
    logits = model.logits(model(ids[:-1].view(12, 8))).double()
    assert loss == pytest.approx(F.cross_entropy(logits.flatten(0, 1), ids[1:]).item(), rel=1e-6)
    assert torch.equal(trainer.criterion.gate.total, total)
    everything = make_language_run(training={"validation": {"every": 20, "tokens": None}})["settings"]
    shapes = [inputs.shape for inputs, _ in LanguageTask(language, everything, "cpu").validation_batches(0)]
    assert sum(rows for rows, _ in shapes) == (language.splits["valid"] - 1) // 8
    assert task.validation_loss(model, 0, lambda: True) is None


def test_validation_has_at_least_one_block(language, make_language_run):
    few = make_language_run(training={"validation": {"every": 20, "tokens": 3}})["settings"]
    assert [inputs.shape for inputs, _ in LanguageTask(language, few, "cpu").validation_batches(0)] == [(1, 8)]


def test_files_of_a_language_run(tmp_path, language, make_language_run, no_signals):
    run = make_language_run()
    output = trained(tmp_path, language, run)
    record = read_json(output / "training.json")
    assert record["tokenizer"] == {"name": "words", "merges": None, "library": None}
    assert record["precision"] == "float32"
    assert record["derived"]["memory"] == (language.splits["train"] - 1) // 8 // 6
    assert record["tokens"] == 120 * 48
    weights = load_file(output / "last.safetensors")
    assert record["parameters"] == sum(tensor.size for tensor in weights.values())
    snapshots = load_file(output / "snapshots.safetensors")
    assert list(snapshots) == ["step000030", "step000060", "step000090", "step000120"]
    assert np.array_equal(snapshots["step000120"], weights["token_embedding.weight"].astype(np.float16))
    assert not np.array_equal(snapshots["step000030"], snapshots["step000060"])
    observed = np.load(output / "observations.npz")
    assert observed["rare_types.sizes"].shape == (50,)
    assert list(observed["rare_alignment.steps"]) == list(range(7, 120, 7))
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["finished"]
    model = load_model(output / "model.safetensors", run["settings"]["model"], language.types)
    task = LanguageTask(language, run["settings"], "cpu")
    loss = task.validation_loss(model, 0, lambda: False)
    assert loss == pytest.approx(record["best_validation_loss"], rel=1e-9)


def test_no_snapshots_are_an_empty_file(tmp_path, language, make_language_run, no_signals):
    output = trained(tmp_path, language, make_language_run(training={"steps": 20}, method={}))
    assert load_file(output / "snapshots.safetensors") == {}
    assert read_json(output / "training.json")["derived"] == {}


def test_snapshots_are_of_steps_that_exist(language, make_language_run):
    def steps_of(steps):
        entry = {"name": "snapshots", "steps": steps}
        run = make_language_run(training={"steps": 20}, method={"observe": [entry]})
        return trainer_of(language, run)[1].observations["snapshots"].steps

    assert steps_of([20, 10, 10, 0]) == [0, 10, 20]
    for steps, wrong in (([-5, 10], "-5"), ([10, 21], "21")):
        with pytest.raises(UserError, match=f"asks for step {wrong}, but training has steps 0 to 20"):
            steps_of(steps)


def test_recomputed_activations_change_no_bit(tmp_path, language, make_language_run, no_signals):
    plain = make_language_run(training={"steps": 40})
    recomputed = make_language_run(training={"steps": 40, "activation_checkpointing": True})
    one, other = trained(tmp_path / "a", language, plain), trained(tmp_path / "b", language, recomputed)
    assert (one / "last.safetensors").read_bytes() == (other / "last.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"training": {"batch_size": 400}}, "one step takes 800"),
        ({"model": {"context": 3000}}, "3,001 are needed"),
        ({"training": {"schedule": {"name": "inverse_sqrt", "peak": 1, "warmup": 120}}}, "warmup is 120, but training"),
        ({"method": {"gate": {"name": "agg", "alpha": 1e9}}}, "alpha"),
        ({"method": {"gate": {"name": "agps", "rare_from": 5000, "mu_1": 1.0, "mu_2": 1.0}}}, "rare_from"),
        ({"method": {"observe": ["norms"]}}, "observe names 'norms'; it can be gradient_norms"),
        ({"method": {"observe": [{"name": "rare_types", "steps": 9}]}}, "rare_types needs a method with a gate"),
        ({"method": {"observe": [{"name": "snapshots", "steps": [200]}]}}, "step 200, but training has steps 0 to 120"),
        ({"method": {"observe": [{"name": "snapshots"}]}}, "either steps"),
        ({"method": {"observe": [{"name": "snapshots", "nth": 3}]}}, "snapshots is configured wrongly"),
        ({"method": {"observe": [{"name": "snapshots", "every": 9}] * 2}}, "snapshots twice"),
        ({"method": {"observe": ["gradient_norms"]}}, "in one batch"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, language, make_language_run, no_signals, changes, expected):
    with pytest.raises(UserError, match=expected):
        trained(tmp_path, language, make_language_run(**changes))


def test_observing_changes_no_bit(tmp_path, language, make_language_run, no_signals):
    observed = make_language_run(training={"steps": 60})
    plain = make_language_run(training={"steps": 60}, method={"gate": {"name": "agg", "alpha": 0.3}})
    one, other = trained(tmp_path / "a", language, observed), trained(tmp_path / "b", language, plain)
    assert (one / "last.safetensors").read_bytes() == (other / "last.safetensors").read_bytes()
    assert (one / "history.csv").read_bytes() == (other / "history.csv").read_bytes()


def test_rare_types_and_their_alignment(language, make_language_run):
    """|V_r| at every step; products of rare rows and hidden vectors, one by one, over both micro-batches."""
    run = make_language_run(model={"dropout": 0.0})
    run["settings"]["method"]["observe"] = [{"name": "rare_types", "steps": 4}, {"name": "rare_alignment", "every": 3}]
    task, trainer = trainer_of(language, run)
    sizes = []
    for step in range(6):
        with torch.no_grad():
            hidden = torch.cat([trainer.model(inputs).flatten(0, 1) for inputs, _ in task.micro_batches(step)])
        weight = trainer.model.output_weight.detach().clone()
        trainer.backward(task.micro_batches(step))
        rare = trainer.criterion.gate.rare()
        sizes.append(int(rare.sum()))
        trainer.step(0.01)
    products = [float(w @ h) for w in weight[rare] for h in hidden]
    tensors = trainer.observations["rare_alignment"].tensors
    assert tensors["steps"][:2].tolist() == [3, 6]
    assert tensors["mean"][1].item() == pytest.approx(np.mean(products), abs=1e-6)
    assert tensors["negative_share"][1].item() == pytest.approx(np.mean([p < 0 for p in products]), abs=1e-9)
    assert tensors["mean"][0].item() != 0
    assert trainer.observations["rare_types"].tensors["sizes"].tolist() == sizes[:4]
    assert len(set(sizes)) > 1
    assert math.isfinite(tensors["mean"][1].item())


def test_a_parametrised_matrix_is_written_as_a_plain_one(tmp_path, language, make_language_run, no_signals):
    """Spectrum control trains U, sigma and V; files and snapshots hold their product under the model's own names."""
    run = make_language_run(training={"steps": 40}, method={"penalty": {"name": "spectrum"}})
    run["settings"]["method"]["observe"] = [{"name": "snapshots", "steps": [40]}]
    output = trained(tmp_path, language, run)
    weights = load_file(output / "last.safetensors")
    assert not any("parametrizations" in name for name in weights)
    snapshot = load_file(output / "snapshots.safetensors")["step000040"]
    assert np.array_equal(snapshot, weights["token_embedding.weight"].astype(np.float16))
    best = load_model(output / "model.safetensors", run["settings"]["model"], language.types)
    task = LanguageTask(language, run["settings"], "cpu")
    expected = read_json(output / "training.json")["best_validation_loss"]
    assert task.validation_loss(best, 0, lambda: False) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("works", [True, False])
def test_a_machine_that_cannot_compile_trains_uncompiled(language, make_language_run, monkeypatch, capsys, works):
    """The attempt changes neither gradients nor random numbers; a compiler's failure is one line in the log."""
    _, trainer = trainer_of(language, make_language_run())
    compiled = []

    def stand_in(model, dynamic):
        def forward(ids):
            if not works:
                raise RuntimeError("no compiler\nat all")
            compiled.append(ids.shape)
            return model(ids)

        return forward

    monkeypatch.setattr(torch, "compile", stand_in)
    before = torch.get_rng_state()
    forward = trainer._compiled(3, 8)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in trainer.model.parameters())
    assert (forward is trainer.model) is not works
    assert compiled == ([(3, 8)] if works else [])
    assert ("torch.compile does not work here (no compiler)" in capsys.readouterr().err) is not works
