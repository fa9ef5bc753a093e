"""The trainers of transformers and TRL with a patched model: nothing that disables a method passes in silence."""

import re
import warnings

import pytest
import torch
from tests.library.test_huggingface import TYPES, batches, tiny, tokenizer

import raretok
from raretok import AGG, Threshold, count_targets

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
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
    return [str(one.message) for one in seen if issubclass(one.category, raretok.NoEffectWarning)]


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
