"""The examples of docs/losses.md with tiny random models of Hugging Face, without network."""

import re
from pathlib import Path

import pytest
import torch

from raretok import AGG, OutputLoss, Threshold, count_targets, start_bias

transformers = pytest.importorskip("transformers")

DOCS = (Path(__file__).parents[2] / "docs/losses.md").read_text(encoding="utf-8")
TYPES = 61
SIZES = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "llama": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
    },
}
NO_DROPOUT = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
MODELS = list(SIZES)


def tiny(name, **more):
    """A random model in training mode."""
    torch.manual_seed(0)
    settings = (
        SIZES[name] | NO_DROPOUT | {"vocab_size": TYPES, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    )
    config = transformers.AutoConfig.for_model(name, **(settings | more))
    return transformers.AutoModelForCausalLM.from_config(config).train()


def batches(number=6, rows=4, length=16):
    """Ids by a falling distribution, of which a model can learn something."""
    generator = torch.Generator().manual_seed(1)
    weights = 1 / torch.arange(1, TYPES + 1).double()
    drawn = torch.multinomial(weights, number * rows * length, replacement=True, generator=generator)
    return list(drawn.view(number, rows, length))


def example(mark):
    """Code between two marks of the docs."""
    (code,) = re.findall(rf"<!-- {mark}:begin -->\n```python\n(.*?)```\n<!-- {mark}:end -->", DOCS, flags=re.DOTALL)
    return code


def own_loss(criterion, model, ids, labels):
    head = model.get_output_embeddings()
    hidden = model.base_model(ids).last_hidden_state
    return criterion(hidden[:, :-1], head.weight, labels[:, 1:], bias=head.bias)


def gradients(model):
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bias", [False, True])
def test_without_parts_it_is_the_models_own_loss(name, tied, bias):
    model = tiny(name, tie_word_embeddings=tied)
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == tied
    ids = batches(1)[0]
    if bias:
        start_bias(model.get_output_embeddings(), count_targets([ids], TYPES))
    labels = ids.clone()
    labels[0, :9] = -100
    theirs = model(ids, labels=labels).loss
    theirs.backward()
    expected = gradients(model)
    ours = own_loss(OutputLoss(), model, ids, labels)
    ours.backward()
    torch.testing.assert_close(ours, theirs)
    found = gradients(model)
    assert ("lm_head.bias" in found) == bias
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_example_trains(name, monkeypatch):
    code = example("example")
    assert len([line for line in code.splitlines() if line]) <= 15
    model, names = tiny(name), {"batches": batches() * 12}
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: model)
    ids = names["batches"][0]
    before = model(ids, labels=ids).loss.item()
    exec(code, names)
    assert names["criterion"].steps == 72
    rare = names["criterion"].rare()
    assert 0 < rare.sum() < TYPES / 2
    assert model(ids, labels=ids).loss.item() < before - 0.5


def test_all_code_of_the_page_runs_in_its_order(monkeypatch):
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: tiny("gpt2"))
    names = {"batches": batches(), "micro_batches": batches(2)}
    for code in re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL):
        exec(code, names)
    assert names["hidden"].shape == (4, 15, 32)
    # Six steps of the loop, and one of two micro-batches.
    assert names["criterion"].steps == 7
    assert names["head"].bias.requires_grad


def test_agg_gates_rare_rows_of_the_matrix_alone():
    """Untied: all other gradients are those of the model's own loss."""
    model, (ids,) = tiny("llama", tie_word_embeddings=False), batches(1)
    model(ids, labels=ids).loss.backward()
    expected = gradients(model)
    counts = count_targets([ids], TYPES)
    criterion = OutputLoss(gate=AGG(alpha=2.0, memory=4), counts=counts)
    own_loss(criterion, model, ids, ids).backward()
    found, rare = gradients(model), criterion.rare()
    for key, gradient in expected.items():
        if key != "lm_head.weight":
            torch.testing.assert_close(found[key], gradient, rtol=1e-4, atol=1e-6)
    differs = (found["lm_head.weight"] - expected["lm_head.weight"]).abs().amax(1) > 1e-6
    assert differs.any()
    assert not (differs & ~rare).any()
    # A type that is no target is pushed away by none of the frequent ones: only rare targets push, less.
    absent = torch.from_numpy(counts == 0)
    norms = [grads["lm_head.weight"][absent].norm() for grads in (found, expected)]
    assert norms[0] < 0.5 * norms[1]


@pytest.mark.parametrize("name", MODELS)
def test_a_bfloat16_model_trains(name):
    """Same loss as in 32 bits, to bfloat16's precision, and the matrix' gradient in the model's precision."""
    ids = batches(1)[0]
    losses = []
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny(name).to(dtype)
        criterion = OutputLoss(Threshold(margin=1.0), gate=AGG(alpha=2.0, memory=4), counts=count_targets([ids], TYPES))
        loss = own_loss(criterion, model, ids, ids)
        loss.backward()
        assert model.get_output_embeddings().weight.grad.dtype == dtype
        assert all(gradient.isfinite().all() for gradient in gradients(model).values())
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def trainer(model, criterion, folder, rows, **arguments):
    """A `RareTokenTrainer` of the docs over four steps' texts."""
    names = {"criterion": criterion}
    exec(example("trainer"), names)
    texts = torch.cat(batches(4, 8))
    data = [{"input_ids": text, "labels": text.where(text != 5, -100)} for text in texts]
    settings = transformers.TrainingArguments(
        folder, per_device_train_batch_size=rows, gradient_accumulation_steps=8 // rows, report_to=[], use_cpu=True,
        num_train_epochs=1, learning_rate=1e-2, save_strategy="no", logging_steps=1, disable_tqdm=True,
        max_grad_norm=0, **arguments,
    )  # fmt: skip
    return names["RareTokenTrainer"](model=model, args=settings, train_dataset=data, eval_dataset=data[:5])


def test_trainer_accumulates_as_one_large_batch(tmp_path):
    pytest.importorskip("accelerate")
    counts = count_targets(batches(4, 8), TYPES)
    found = []
    for rows in (8, 2):
        model, criterion = tiny("gpt2"), OutputLoss(gate=AGG(alpha=2.0, memory=2), counts=counts)
        run = trainer(model, criterion, tmp_path, rows)
        run.train()
        assert criterion.steps == 4
        found.append(model.get_output_embeddings().weight.detach())
        assert criterion.rare().any()
    assert (found[0] - tiny("gpt2").get_output_embeddings().weight).abs().max() > 0.01
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
    score = run.evaluate()["eval_loss"]
    assert criterion.steps == 4
    with torch.no_grad():
        ids = torch.stack([row["input_ids"] for row in run.eval_dataset])
        labels = torch.stack([row["labels"] for row in run.eval_dataset])
        assert score == pytest.approx(model.eval()(ids, labels=labels).loss.item(), rel=1e-2)


def test_trainer_without_parts_is_the_plain_trainer(tmp_path):
    pytest.importorskip("accelerate")
    ours, theirs = tiny("llama"), tiny("llama")
    trainer(ours, OutputLoss(), tmp_path, 2).train()
    run = trainer(theirs, OutputLoss(), tmp_path, 2)
    transformers.Trainer(model=theirs, args=run.args, train_dataset=run.train_dataset).train()
    torch.testing.assert_close(
        ours.get_output_embeddings().weight, theirs.get_output_embeddings().weight, rtol=1e-3, atol=1e-4
    )
