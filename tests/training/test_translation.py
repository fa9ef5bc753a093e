"""Translation runs: padding, accumulation, output bias, validation by BLEU, averages of checkpoints, observations."""

import csv

import numpy as np
import pytest
import torch
from benchmarks.decode import run_case
from safetensors.torch import load_file
from torch.nn import functional as F

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.core.special_types import PAD
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.metrics.translation_scores import Scoring
from rarepapers.models.building import load_model
from rarepapers.training import translation_task as translation_module
from rarepapers.training.checkpoint import load_weights
from rarepapers.training.distribution_probes import chosen_steps, divergences
from rarepapers.training.loop import Options, selection_criterion, train
from rarepapers.training.progress import Progress
from rarepapers.training.tasks import negative_log_likelihood
from rarepapers.training.trainer import Trainer
from rarepapers.training.translation_task import TranslationTask, evenly_spaced, lengths, scored
from raretok.methods.unigram import log_unigram


def trained(folder, corpus, run, **options):
    train(run, corpus, folder / "output", folder / "state", Options(), **options)
    return folder / "output"


def trainer_of(corpus, run, **options):
    task = TranslationTask(corpus, run["settings"], "cpu")
    return task, Trainer(run["settings"], task.facts(), **options)


def history_of(output):
    with (output / "history.csv").open() as file:
        return list(csv.DictReader(file))


PLAIN = {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}}


def test_a_step_equals_its_pairs_one_by_one(translation, make_translation_run):
    """Loss and gradients over two padded micro-batches are the mean over real targets, pair by pair."""
    run = make_translation_run(model={"dropout": 0.0}, training={"clip_norm": None}, method=PLAIN)
    task, trainer = trainer_of(translation, run)
    trainer.model.double()
    pairs = load_pairs(translation, "train")
    step = next(k for k in range(20) if any((targets == PAD).any() for _, targets in task.micro_batches(k)))
    chosen = np.concatenate(task.batches.draw(step))
    total, number = 0.0, 0
    for i in chosen:
        source = torch.tensor(np.array(pairs.source[pairs.source_offsets[i] : pairs.source_offsets[i + 1]], dtype=int))
        target = torch.tensor(np.array(pairs.target[pairs.target_offsets[i] : pairs.target_offsets[i + 1]], dtype=int))
        inputs = torch.cat([torch.tensor([0]), target[:-1]])
        z = trainer.model.logits(trainer.model(source[None], inputs[None])[0])
        total = total + F.cross_entropy(z, target, reduction="sum", label_smoothing=0.1)
        number += len(target)
    parameters = list(trainer.model.parameters())
    expected = torch.autograd.grad(total / number, parameters)
    result = trainer.backward(task.micro_batches(step))
    assert result.loss.item() == pytest.approx(total.item() / number, rel=1e-9)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-7, atol=1e-11)
    assert task.target_tokens(step) == number == len(task.targets(step))


ANY_METHOD = {
    "smoothing": {},
    "agg": {"gate": {"name": "agg", "alpha": 0.9}},
    "agps": {"gate": {"name": "agps", "rare_from": 30, "mu_1": 50.0, "mu_2": 20.0}},
    "freeze": {"gate": {"name": "freeze", "share": 0.6}},
    "freeze_bc": {"gate": {"name": "freeze", "part": "bc", "share": 0.6}},
    "cosreg": {"penalty": {"name": "cosreg", "gamma": 1.0}},
    "unlikelihood": {"penalty": {"name": "unlikelihood"}},
    "unigram": {"penalty": {"name": "unigram", "strength": 0.3}},
    "spectrum": {"penalty": {"name": "spectrum"}},
    "adversarial": {"perturbation": {"name": "adversarial", "alpha": 0.05}},
    "unigram_agg": {"penalty": {"name": "unigram", "strength": 0.3}, "gate": {"name": "agg", "alpha": 0.9}},
}


@pytest.mark.parametrize("tying", ["three_way", "encoder_decoder"])
@pytest.mark.parametrize("parts", ANY_METHOD)
def test_the_step_of_a_method_does_not_depend_on_its_micro_batches(translation, make_translation_run, parts, tying):
    """One pair per micro-batch, without padding, gives the loss, NLL and gradients of padded micro-batches."""
    run = make_translation_run(
        model={"dropout": 0.0, "tying": tying}, training={"clip_norm": None}, method=PLAIN | ANY_METHOD[parts]
    )
    (task, padded), (_, alone), (_, plain) = (
        trainer_of(translation, settings) for settings in (run, run, {"settings": run["settings"] | {"method": PLAIN}})
    )
    for step in range(3):  # counters see several steps
        chosen = np.random.default_rng(step).permutation(len(task.train))[:12]
        batches = [task._batch(task.train, part) for part in (chosen[:4], chosen[4:])]
        pairs = [task._batch(task.train, [i]) for i in chosen]
        results = []
        for trainer, micro_batches in ((padded, batches), (alone, pairs), (plain, batches)):
            trainer.model.double()
            trainer.model.zero_grad()
            results.append(trainer.backward(micro_batches))
    assert all((ids == PAD).any() for (source, _), targets in batches for ids in (source, targets))
    assert results[0].loss.item() == pytest.approx(results[1].loss.item(), rel=1e-12)
    assert results[0].nll.item() == pytest.approx(results[1].nll.item(), rel=1e-12)
    expected = dict(alone.model.named_parameters())
    for name, parameter in padded.model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-9, atol=1e-12)
    # Each method has an effect, or equality would prove nothing.
    assert (parts == "smoothing") == (results[0].norm.item() == pytest.approx(results[2].norm.item(), rel=1e-9))


def test_gates_count_real_targets_of_the_target_side(translation, make_translation_run):
    run = make_translation_run()
    task, trainer = trainer_of(translation, run)
    for step in range(3):
        trainer.begin([targets for _, targets in task.micro_batches(step)])
    expected = sum(task.targets(step).bincount(minlength=translation.types) for step in range(3))
    assert torch.equal(trainer.criterion.gate.total, expected)
    assert expected[PAD] == 0
    facts = task.facts()
    assert np.array_equal(facts.counts, translation.counts)
    assert facts.padding == PAD
    assert facts.steps_per_epoch * facts.tokens_per_step == pytest.approx(translation.splits["train"], rel=0.1)


@pytest.mark.parametrize("tying", ["three_way", "encoder_decoder"])
def test_frozen_rows_stay_as_they_are(translation, make_translation_run, tying):
    """With three-way tying, rare rows are also frozen as source embeddings."""
    run = make_translation_run(model={"tying": tying}, method={"gate": {"name": "freeze", "share": 0.6}})
    task, trainer = trainer_of(translation, run)
    start = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    for step in range(10):
        trainer.backward(task.micro_batches(step))
        trainer.step(0.01)
    frozen = trainer.criterion.frozen()
    for name in {"three_way": ["token_embedding.weight"]}.get(tying, ["token_embedding.weight", "output_embedding"]):
        before, after = start[name], trainer.model.state_dict()[name]
        assert torch.equal(before[frozen], after[frozen])
        assert not torch.equal(before[~frozen], after[~frozen])


@pytest.mark.parametrize(
    "part",
    [
        {"penalty": {"name": "cosreg"}},
        {"penalty": {"name": "unlikelihood"}},
        {"penalty": {"name": "spectrum"}},
        {"perturbation": {"name": "adversarial", "alpha": 0.05}},
    ],
)
def test_runs_with_other_parts_finish(tmp_path, translation, make_translation_run, no_signals, part):
    """Including validation, search and final files."""
    run = make_translation_run(
        model={"tying": "three_way"},
        training={"steps": 15},
        method=part | {"gate": {"name": "agps", "rare_from": 30, "mu_1": 50.0, "mu_2": 20.0}},
    )
    output = trained(tmp_path, translation, run)
    losses = [float(row["loss"]) for row in history_of(output) if row["split"] in ("train", "valid")]
    assert losses[-1] < losses[0] - 0.1
    load_model(output / "model.safetensors", run["settings"]["model"], translation.types)


def test_the_penalty_stops_after_its_last_step(translation, make_translation_run):
    """After step `until` the loss equals that of a run without it."""
    run = make_translation_run(model={"dropout": 0.0}, training={"clip_norm": None})
    plain = make_translation_run(
        model={"dropout": 0.0},
        training={"clip_norm": None},
        method={"loss": {"name": "cross_entropy", "label_smoothing": 0.1}, "gate": {"name": "agg", "alpha": 0.9}},
    )
    (task, with_penalty), (_, without) = trainer_of(translation, run), trainer_of(translation, plain)
    losses = {}
    for step in (32, 33):
        for trainer in (with_penalty, without):
            trainer.criterion.steps = step
            losses.setdefault(step, []).append(trainer.backward(task.micro_batches(step)).loss.item())
            trainer.model.zero_grad()
    assert losses[32][0] < losses[32][1] - 0.001
    assert losses[33][0] == pytest.approx(losses[33][1], rel=1e-6)


@pytest.mark.parametrize("start", [None, "zero", "unigram", "file"])
def test_where_the_output_bias_starts(translation, make_translation_run, start):
    """The three starts differ only in the bias."""
    outside = np.arange(translation.types) if start == "file" else None
    run = make_translation_run(model={"output_bias": start}, method=PLAIN)
    model = trainer_of(translation, run, outside_counts=outside)[1].model
    reference = trainer_of(translation, make_translation_run(model={"output_bias": None}, method=PLAIN))[1].model
    for name, tensor in reference.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    expected = {
        None: None,
        "zero": torch.zeros(translation.types),
        "unigram": log_unigram(translation.counts).float(),
        "file": log_unigram(np.arange(translation.types)).float(),
    }[start]
    assert (model.output_bias is None) if expected is None else torch.equal(model.output_bias.data, expected)


def test_scaling_of_the_output_matrix_is_the_same_for_every_start(translation, make_translation_run):
    """By the norm of the training text's log-unigram bias, also if the bias is from another text."""
    outside = np.arange(translation.types)
    models = []
    for start in (None, "zero", "unigram", "file"):
        run = make_translation_run(model={"output_bias": start, "output_scale": "frobenius"}, method=PLAIN)
        models.append(trainer_of(translation, run, outside_counts=outside if start == "file" else None)[1].model)
    assert models[0].output_weight.norm().item() == pytest.approx(log_unigram(translation.counts).norm().item())
    assert all(torch.equal(model.output_weight, models[0].output_weight) for model in models)
    assert torch.equal(models[3].output_bias.data, log_unigram(outside).float())


def test_a_bias_from_other_text_needs_its_counts(translation, make_translation_run):
    run = make_translation_run(model={"output_bias": "file"}, method=PLAIN)
    with pytest.raises(UserError, match=r"model\.output_bias is 'file', but no counts were given"):
        trainer_of(translation, run)
    with pytest.raises(UserError, match=r"has shape \(5,\), but the vocabulary has 80 types"):
        trainer_of(translation, run, outside_counts=np.arange(5))


def test_validation_sees_every_pair_once(translation, make_translation_run):
    task, trainer = trainer_of(translation, make_translation_run(method=PLAIN))
    valid = load_pairs(translation, "valid")
    targets = [targets for _, targets in task.validation_batches(0)]
    assert sum((part != PAD).sum() for part in targets) == len(valid.target)
    total = 0.0
    trainer.model.eval()
    for i in range(len(valid)):
        ids = np.array(valid.target[valid.target_offsets[i] : valid.target_offsets[i + 1]], dtype=int)
        source = np.array(valid.source[valid.source_offsets[i] : valid.source_offsets[i + 1]], dtype=int)
        inputs = (torch.tensor(source)[None], torch.tensor([[0, *ids[:-1]]]))
        total += negative_log_likelihood(trainer.model, inputs, torch.tensor(ids)[None]).item()
    assert task.validation_loss(trainer.model, 0, lambda: False) == pytest.approx(total / len(valid.target), rel=1e-6)
    assert trainer.model.training


def test_validation_leaves_out_pairs_that_are_too_long(translation, make_translation_run):
    run = make_translation_run(method=PLAIN)
    source, target = lengths(load_pairs(translation, "valid"))
    longest = int(np.median(np.maximum(source, target)))
    fits = np.maximum(source, target) <= longest
    run["settings"]["model"]["context"] = longest
    task = TranslationTask(translation, run["settings"], "cpu")
    for batches in (task.validation_batches(0), task.sample(10**6)):
        assert sum(int((targets != PAD).sum()) for _, targets in batches) == target[fits].sum()
    assert task.derived()["dropped_validation_pairs"] == (~fits).sum() > 0
    run["settings"]["model"]["context"] = int(np.maximum(source, target).min()) - 1
    with pytest.raises(UserError, match=r"no pair of the validation split is at most model\.context \d+ tokens long"):
        TranslationTask(translation, run["settings"], "cpu")


def test_validation_bleu_of_the_references_is_100(translation, make_translation_run, monkeypatch):
    """Also, hypotheses are in the order of the sentences."""
    run = make_translation_run()
    decoding = run["settings"]["training"]["validation"]["bleu"]
    decoding |= {"sentences": None, "length_exponent": 0.6}
    task, trainer = trainer_of(translation, run)
    valid = load_pairs(translation, "valid")
    found = {}
    for i in range(len(valid)):
        source = tuple(valid.source[valid.source_offsets[i] : valid.source_offsets[i + 1]])
        found[source] = list(valid.target[valid.target_offsets[i] : valid.target_offsets[i + 1]])
    asked = []

    def oracle(model, sources, beam, length_exponent):
        asked.append((beam, length_exponent))
        return [found[tuple(source)] for source in sources]

    monkeypatch.setattr(translation_module, "translate", oracle)
    monkeypatch.setattr(translation_module, "SENTENCES_AT_ONCE", 7)
    scores = task.validate(trainer.model, 0, lambda: False)
    assert scores["valid_bleu"] == pytest.approx(100)
    assert scores["valid_chrf"] == pytest.approx(100)
    assert asked == [(2, 0.6)] * 5
    assert trainer.model.training
    # A part of the split: evenly spread sentences, with their own references.
    decoding["sentences"] = 12
    asked.clear()
    assert task.validate(trainer.model, 0, lambda: False)["valid_bleu"] == pytest.approx(100)
    assert len(asked) == 2
    decoding["sentences"] = None
    asked += [None] * 3
    # A signal between two batches of sentences ends the validation without scores.
    assert task.validate(trainer.model, 0, lambda: len(asked) > 6) is None
    assert trainer.model.training


def test_the_history_and_the_final_model(tmp_path, translation, make_translation_run, no_signals):
    run = make_translation_run()
    output = trained(tmp_path, translation, run)
    rows, record = history_of(output), read_json(output / "training.json")
    for split in ("valid", "valid_bleu", "valid_chrf"):
        assert [int(row["step"]) for row in rows if row["split"] == split] == [15, 30, 45, 60]
    bleu = {int(row["step"]): float(row["loss"]) for row in rows if row["split"] == "valid_bleu"}
    loss = {int(row["step"]): float(row["loss"]) for row in rows if row["split"] == "valid"}
    assert record["best_step"] == max(bleu, key=bleu.get)
    assert record["best_validation_bleu"] == bleu[record["best_step"]]
    assert record["best_validation_loss"] == loss[record["best_step"]]
    assert record["averaged_steps"] == [30, 45, 60]
    task = TranslationTask(translation, run["settings"], "cpu")
    assert record["tokens"] == sum(task.target_tokens(step) for step in range(60)) == int(rows[-1]["tokens"])
    assert record["derived"]["dropped_pairs"] == record["derived"]["dropped_validation_pairs"] == 0
    signatures = record["derived"]["validation_signatures"]
    assert signatures["valid_bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert signatures["valid_chrf"].startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    assert record["derived"]["steps_per_epoch"] == task.steps_per_epoch
    # benchmarks/decode.py reads it in this way.
    model, sources, most = run_case(output, translation.folder, 4)
    assert model.config.width == 16
    pairs = load_pairs(translation, "test")
    assert [source.tolist() for source in sources] == [
        pairs.source[pairs.source_offsets[i] : pairs.source_offsets[i + 1]].tolist() for i in range(4)
    ]
    assert max(map(len, sources)) <= most <= 40


def test_the_final_model_is_the_mean_of_the_last_validated_ones(
    tmp_path, translation, make_translation_run, no_signals, monkeypatch
):
    """Compared with trainings that stop at those validations."""
    monkeypatch.setattr("rarepapers.training.checkpoint.drop_state", lambda state: None)
    run = make_translation_run(method=PLAIN)
    output = trained(tmp_path, translation, run)
    kept = [load_weights(tmp_path / "state", "validated", step) for step in (30, 45, 60)]
    final, last = load_file(output / "model.safetensors"), load_file(output / "last.safetensors")
    for name, tensor in final.items():
        mean = sum(weights[name].double() for weights in kept) / 3
        assert torch.equal(tensor, mean.to(tensor.dtype))
        assert torch.equal(last[name], kept[-1][name])
    assert not torch.equal(final["output_bias"], last["output_bias"])


def test_the_best_checkpoint_has_the_highest_bleu():
    progress, better = Progress(), []
    scores = [(4.0, 10.0), (3.0, 30.0), (2.0, 20.0), (5.0, 30.0)]
    for progress.step, (loss, bleu) in enumerate(scores, 1):
        better.append(progress.note({"valid": loss, "valid_bleu": bleu}, "bleu", 2))
    assert better == [True, True, False, False]
    assert (progress.best_step, progress.best_loss, progress.best_bleu) == (2, 3.0, 30.0)
    assert progress.kept == [3, 4]
    by_loss = Progress()
    for by_loss.step, (loss, bleu) in enumerate(scores, 1):
        by_loss.note({"valid": loss, "valid_bleu": bleu}, "loss", 0)
    assert (by_loss.best_step, by_loss.best_loss, by_loss.best_bleu, by_loss.kept) == (3, 2.0, 20.0, [])


@pytest.mark.parametrize(
    ("training", "kind", "message"),
    [
        (
            {"select": "bleu", "validation": {}},
            "translation",
            r"training\.select is bleu, but training\.validation\.bleu",
        ),
        ({"select": "best", "validation": {}}, "translation", r"training\.select is 'best'; it can be loss or bleu"),
        ({"select": "bleu", "validation": {"bleu": {}}}, "language", "a corpus of kind language is not translated"),
    ],
)
def test_an_impossible_selection_is_refused(training, kind, message):
    with pytest.raises(UserError, match=message):
        selection_criterion(training, kind)


def test_observations_before_the_first_step_and_after_the_last(tmp_path, translation, make_translation_run, no_signals):
    run = make_translation_run(
        method=PLAIN
        | {"observe": [{"name": "output_bias", "every": 25}, {"name": "divergence", "steps": [0, 60, 1000]}]}
    )
    output = trained(tmp_path, translation, run)
    arrays = np.load(output / "observations.npz")
    assert arrays["output_bias.steps"].tolist() == [0, 25, 50, 60]
    assert arrays["divergence.steps"].tolist() == [0, 60]
    log_q = log_unigram(translation.counts).numpy()
    assert arrays["output_bias.norm"][0] == pytest.approx(np.linalg.norm(log_q), rel=1e-6)
    assert arrays["output_bias.divergence"][0] == pytest.approx(0, abs=1e-6)
    model = load_model(output / "last.safetensors", run["settings"]["model"], translation.types)
    bias = model.output_bias.double().numpy()
    assert arrays["output_bias.norm"][-1] == pytest.approx(np.linalg.norm(bias))
    log_p = bias - np.log(np.exp(bias).sum())
    assert arrays["output_bias.divergence"][-1] == pytest.approx((np.exp(log_q) * (log_q - log_p)).sum())
    # All validation positions are sampled, so -log p(y) is the validation loss.
    valid = [float(row["loss"]) for row in history_of(output) if row["split"] == "valid"]
    assert arrays["divergence.empirical"][-1] == pytest.approx(valid[-1], rel=1e-5)
    # A model that starts at the unigram distribution is nearer to it than to the uniform one.
    assert arrays["divergence.unigram"][0] < arrays["divergence.uniform"][0]


def test_observing_a_translation_changes_no_bit(tmp_path, translation, make_translation_run, no_signals):
    """Dropout draws the same numbers and stays on."""
    observe = [{"name": "output_bias", "every": 3}, {"name": "divergence", "every": 2, "positions": 30}]
    written = []
    for name, method in (("plain", PLAIN), ("observed", PLAIN | {"observe": observe})):
        run = make_translation_run(training={"steps": 15}, method=method)
        written.append((trained(tmp_path / name, translation, run) / "last.safetensors").read_bytes())
    assert written[0] == written[1]


def test_divergences_equal_their_definitions():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    q = torch.rand(6, generator=generator, dtype=torch.float64)
    q /= q.sum()
    y = torch.tensor([0, 3, 5, 5])
    p = z.softmax(dim=1)
    expected = [
        sum(float(q[k] * torch.log(q[k] / p[t, k])) for t in range(4) for k in range(6)),
        sum(float(torch.log(1 / 6 / p[t, k])) / 6 for t in range(4) for k in range(6)),
        sum(-float(torch.log(p[t, y[t]])) for t in range(4)),
    ]
    assert divergences(z, y, q.log()).tolist() == pytest.approx(expected, rel=1e-12)


def test_steps_of_an_observation():
    assert chosen_steps("x", 100, steps=[50, 0, 200]) == [0, 50]
    assert chosen_steps("x", 100, every=40) == [0, 40, 80, 100]
    assert chosen_steps("x", 100, number=4) == [0, 1, 10, 100]
    with pytest.raises(UserError, match="needs one of steps"):
        chosen_steps("x", 100)


def test_observing_a_bias_requires_one(translation, make_translation_run):
    run = make_translation_run(
        model={"output_bias": None}, method=PLAIN | {"observe": [{"name": "output_bias", "number": 5}]}
    )
    with pytest.raises(UserError, match="observe: output_bias needs a model with one"):
        trainer_of(translation, run)


def test_the_sample_is_spread_over_the_split(translation, make_translation_run):
    task, _ = trainer_of(translation, make_translation_run(method=PLAIN))
    source, target = lengths(load_pairs(translation, "valid"))
    drawn = [inputs for inputs, _ in task.sample(100)]
    again = [inputs for inputs, _ in task.sample(100)]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(drawn, again, strict=True))
    seen = np.concatenate([(inputs[0] != PAD).sum(dim=1).numpy() for inputs in drawn])
    assert abs(len(seen) * target.mean() - 100) < target.mean()
    assert seen.min() < np.median(source) < seen.max()
    assert evenly_spaced(np.arange(10, 20), 4).tolist() == [10, 12, 15, 17]


def test_observations_ignore_padding(translation, make_translation_run):
    """w_r . h is over rare types and the real positions of a step."""
    method = {"gate": {"name": "agg", "alpha": 0.9}, "observe": [{"name": "rare_alignment", "every": 1}]}
    run = make_translation_run(model={"dropout": 0.0}, method=method)
    task, trainer = trainer_of(translation, run)
    step = next(k for k in range(20) if any((targets == PAD).any() for _, targets in task.micro_batches(k)))
    batches = task.micro_batches(step)
    hidden = torch.cat([trainer.model(*inputs)[targets != PAD] for inputs, targets in batches]).detach()
    weight = trainer.model.output_weight.detach().clone()
    trainer.backward(batches)
    products = hidden @ weight[trainer.criterion.gate.rare()].T
    observed = trainer.observations["rare_alignment"].tensors
    assert observed["mean"][0].item() == pytest.approx(products.mean().item(), rel=1e-5)
    assert observed["negative_share"][0].item() == pytest.approx((products < 0).double().mean().item(), abs=1e-3)


def test_validation_scores_follow_the_corpus():
    chinese = scored(["今天天气很好，我们去公园。"], ["今天天气很好，我们一起去公园。"], Scoring("zh"))
    assert chinese["valid_bleu"][0] > 50
    assert "|tok:zh|" in chinese["valid_bleu"][1]
    for score, signature in scored(["a dog sits down"], ["A Dog sits down"], Scoring("en", lowercase=True)).values():
        assert score == pytest.approx(100)
        assert "case:lc|" in signature
