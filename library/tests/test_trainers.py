"""The trainers of transformers and TRL with a patched model: nothing that disables a method passes in silence."""

import re
import warnings

import pytest
import torch
from test_huggingface import TYPES, batches, tiny, tokenizer

import raretok
from raretok import AGG, Threshold, count_targets

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
GATE = AGG(alpha=2.0, memory=50)
COUNTS = count_targets(batches(4, 8), TYPES)


def rows():
    return [{"input_ids": text, "labels": text.clone()} for text in torch.cat(batches(4, 8))]


def arguments(folder, kind=transformers.TrainingArguments, **more):
    settings = {
        "per_device_train_batch_size": 8, "report_to": [], "use_cpu": True, "bf16": False, "num_train_epochs": 1,
        "learning_rate": 1e-2, "save_strategy": "no", "disable_tqdm": True, "gradient_checkpointing": False,
    }  # fmt: skip
    return kind(str(folder), **(settings | more))


def sft(folder, trainer_class, model, **more):
    """A trainer of TRL."""
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    settings = arguments(folder, trl.SFTConfig, dataset_kwargs={"skip_prepare_dataset": True}, **more)
    texts = datasets.Dataset.from_list([{"input_ids": row["input_ids"].tolist()} for row in rows()])
    return trainer_class(model=model, args=settings, train_dataset=texts, processing_class=tokenizer())


def warned(run):
    """Warnings of raretok while running."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    return [
        str(one.message)
        for one in seen
        if issubclass(one.category, raretok.NoEffectWarning) or "the gate has counted" in str(one.message)
    ]


def test_label_smoothing_of_trainer_is_named_once(tmp_path):
    model = tiny("llama")
    patched = raretok.patch(model, Threshold(margin=0.1))
    run = transformers.Trainer(model, arguments(tmp_path, label_smoothing_factor=0.1), train_dataset=rows())
    (words,) = warned(run.train)
    assert "label_smoothing_factor" in words
    assert "CrossEntropy(label_smoothing=...)" in words
    (words,) = warned(patched.undo)
    assert "no step was counted" in words


def test_a_loss_function_of_trainer_is_named(tmp_path):
    model = tiny("llama")
    raretok.patch(model, Threshold(margin=0.1))

    def loss(outputs, labels, num_items_in_batch=None):
        return outputs.logits.square().mean()

    run = transformers.Trainer(model, arguments(tmp_path), train_dataset=rows(), compute_loss_func=loss)
    (words,) = warned(run.train)
    assert "compute_loss_func" in words


def test_trls_own_loss_is_named(tmp_path):
    """It reads hidden vectors from the body, and never asks the patched forward pass."""
    trl = pytest.importorskip("trl")
    model = tiny("llama")
    patched = raretok.patch(model, Threshold(margin=0.1))
    run = sft(tmp_path, trl.SFTTrainer, model)
    (words,) = warned(run.train)
    assert "TRL" in words
    assert "raretok.hf.PatchedTrainer" in words
    assert patched.criterion.steps == 0
    (words,) = warned(patched.undo)
    assert "no step was counted" in words


def test_a_pass_without_labels_is_named():
    model = tiny("llama")
    raretok.patch(model, Threshold(margin=0.1))
    ids = batches(1)[0]
    (words,) = warned(lambda: [model(ids).logits.sum().backward() for _ in range(2)])
    assert "without labels" in words


def test_nothing_is_said_where_the_method_acts_or_nothing_trains():
    def use():
        model, ids = tiny("llama"), batches(1)[0]
        patched = raretok.patch(model, Threshold(margin=0.1))
        model(ids, labels=ids).loss.backward()
        with torch.no_grad():
            model(ids)
        model.eval()
        model(ids)
        patched.undo()
        raretok.patch(model).undo()

    assert warned(use) == []


def mixed(base):
    from raretok.hf import PatchedTrainer

    return type("RareTrainer", (PatchedTrainer, base), {})


def test_the_trainer_class_gives_the_gate_its_steps(tmp_path):
    """One line, for gradient accumulation, too; the same model as a large batch."""
    found = []
    for batch, micro in ((8, 1), (2, 4)):
        model = tiny("llama", tie_word_embeddings=False)
        patched = raretok.patch(model, gate=AGG(alpha=2.0, memory=2), counts=COUNTS)
        settings = arguments(tmp_path, per_device_train_batch_size=batch, gradient_accumulation_steps=micro)
        run = mixed(transformers.Trainer)(model, settings, train_dataset=rows())
        assert warned(run.train) == []
        assert patched.criterion.steps == 4
        found.append(model.get_output_embeddings().weight.detach())
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)


def test_the_trainer_class_makes_trl_use_the_method(tmp_path):
    trl = pytest.importorskip("trl")
    model = tiny("llama")
    patched = raretok.patch(model, Threshold(margin=0.1))
    run = sft(tmp_path, mixed(trl.SFTTrainer), model)
    assert warned(run.train) == []
    assert patched.criterion.steps == 4
    assert warned(patched.undo) == []


def refused_by_sft(folder):
    return sft(folder, mixed(pytest.importorskip("trl").SFTTrainer), patched_llama(), loss_type="dft")


def refused_by_trainer(folder):
    settings = arguments(folder, label_smoothing_factor=0.1)
    return mixed(transformers.Trainer)(patched_llama(), settings, train_dataset=rows())


def refused_with_function(folder):
    function = {"compute_loss_func": lambda outputs, labels, **_: outputs.logits.mean()}
    return mixed(transformers.Trainer)(patched_llama(), arguments(folder), train_dataset=rows(), **function)


def patched_llama():
    model = tiny("llama")
    raretok.patch(model, Threshold(margin=0.1))
    return model


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (refused_by_sft, "loss_type='dft' replaces the loss of the patched model; leave it out"),
        (refused_by_trainer, "label_smoothing_factor makes the trainer compute a loss of its own; leave it out"),
        (refused_with_function, "compute_loss_func replaces the loss of the patched model; leave it out"),
    ],
)
def test_the_trainer_class_refuses_options_that_replace_the_loss(tmp_path, make, key):
    """Without them it trains, as the other tests show."""
    with pytest.raises(ValueError, match=f"^{re.escape(key)}"):
        make(tmp_path)


def test_the_advised_label_smoothing_works(tmp_path):
    """The same model as with the trainer's own smoothing, which is the reference."""
    found = []
    for smoothing in (0.0, 0.1):
        model = tiny("llama")
        if not smoothing:
            raretok.patch(model, raretok.CrossEntropy(label_smoothing=0.1))
        settings = arguments(tmp_path, label_smoothing_factor=smoothing)
        transformers.Trainer(model, settings, train_dataset=rows()).train()
        found.append(model.get_output_embeddings().weight.detach())
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-4)


def test_trainers_without_labels_are_refused_and_the_advice_works(tmp_path):
    """As those of DPO: their losses are made of log-probabilities."""
    texts = [{"input_ids": row["input_ids"]} for row in rows()]
    run = mixed(transformers.Trainer)(patched_llama(), arguments(tmp_path), train_dataset=texts)
    with pytest.raises(ValueError, match=r"batches have no labels; .* raretok.token_log_probs"):
        run.train()
    model, ids = tiny("llama"), batches(1)[0]
    hidden = model.model(ids).last_hidden_state
    found = raretok.token_log_probs(hidden[:, :-1], model.lm_head.weight, ids[:, 1:])
    torch.testing.assert_close(-found.mean(), model(ids, labels=ids).loss)


def test_the_trainer_class_needs_a_patched_model(tmp_path):
    run = mixed(transformers.Trainer)(tiny("llama"), arguments(tmp_path), train_dataset=rows())
    with pytest.raises(ValueError, match=r"LlamaForCausalLM is not patched; call raretok.patch"):
        run.train()
    raretok.patch(run.model)
    run.train()


def test_a_training_without_a_counted_step_says_so(tmp_path):
    """A subclass whose own loss ignores the model's."""

    class Ignoring(mixed(transformers.Trainer)):
        def compute_loss(self, model, inputs, return_outputs=False, **named):
            return model(inputs["input_ids"]).logits.square().mean()

    model = tiny("llama")
    raretok.patch(model, Threshold(margin=0.1))
    words = warned(Ignoring(model, arguments(tmp_path), train_dataset=rows()).train)
    assert any("no step was counted" in text for text in words)


class Stop(transformers.TrainerCallback):
    """Ends the training, with a checkpoint, after some steps."""

    def __init__(self, last):
        self.last = last

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.last:
            control.should_training_stop = control.should_save = True


def trained(base, folder, stop=None, resume=None, gate=GATE, **more):
    """The parameters and the criterion of a training of 8 steps of two micro-batches, or of its part up to `stop`."""
    model = tiny("llama", tie_word_embeddings=False)
    patched = raretok.patch(model, gate=gate, counts=COUNTS)
    settings = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "save_strategy": "steps"}
    settings |= {"save_steps": 6, "num_train_epochs": 2, "max_steps": 8, "seed": 0} | more
    if base is transformers.Trainer:
        run = mixed(base)(model, arguments(folder, **settings), train_dataset=rows())
    else:
        run = sft(folder, mixed(base), model, **settings)
    if stop:
        run.add_callback(Stop(stop))
    run.train(resume_from_checkpoint=resume)
    return [parameter.detach().clone() for parameter in model.parameters()], patched.criterion


def trainer_named(name):
    return transformers.Trainer if name == "Trainer" else pytest.importorskip("trl").SFTTrainer


@pytest.mark.parametrize("name", ["Trainer", "SFTTrainer"])
@pytest.mark.parametrize("by_folder", [False, True])
def test_a_resumed_training_ends_bit_for_bit_as_an_unbroken_one(tmp_path, name, by_folder):
    base = trainer_named(name)
    results = []
    whole, unbroken = trained(base, tmp_path / "whole")
    first, stopped = trained(base, tmp_path / "half", stop=6)
    assert stopped.steps == 6
    resume = str(tmp_path / "half" / "checkpoint-6") if by_folder else True
    assert warned(lambda: results.extend(trained(base, tmp_path / "half", resume=resume))) == []
    second, resumed = results
    assert resumed.steps == unbroken.steps == 8
    assert torch.equal(resumed.rare(), unbroken.rare())
    assert resumed.rare().any()
    for ours, theirs in zip(second, whole, strict=True):
        assert torch.equal(ours, theirs)
    assert any(not torch.equal(ours, theirs) for ours, theirs in zip(first, whole, strict=True))


def test_a_fresh_gate_at_a_later_step_warns(tmp_path):
    """For instance of a checkpoint that was written without `PatchedTrainer`."""
    trained(transformers.Trainer, tmp_path, stop=6)
    (state,) = (tmp_path / "checkpoint-6").glob("raretok*")
    state.unlink()
    elsewhere = (tmp_path / "checkpoint-6").rename(tmp_path / "moved")
    (words,) = warned(lambda: trained(transformers.Trainer, tmp_path, resume=str(elsewhere)))
    assert "the training continues at step 6, but the gate has counted 0 steps" in words
    assert f"{elsewhere} has no raretok-0-of-1.pt" in words


def test_a_method_that_counts_nothing_writes_and_needs_no_state(tmp_path):
    trained(transformers.Trainer, tmp_path, stop=6, gate=None)
    assert list((tmp_path / "checkpoint-6").glob("raretok*")) == []
    assert warned(lambda: trained(transformers.Trainer, tmp_path, resume=True, gate=None)) == []


def test_the_state_of_another_gate_names_its_file(tmp_path):
    trained(transformers.Trainer, tmp_path, stop=6)
    with pytest.raises(
        ValueError, match=r"checkpoint-6/raretok-0-of-1.pt: the state belongs to gate=AGG.*; give it the"
    ):
        trained(transformers.Trainer, tmp_path, resume=True, gate=AGG(alpha=3.0, memory=50))
    trained(transformers.Trainer, tmp_path, resume=True)
