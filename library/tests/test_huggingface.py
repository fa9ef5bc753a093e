"""The examples of docs/losses.md with tiny random models of Hugging Face, TRL, litgpt and nanoGPT, without network."""

import re
from pathlib import Path

import pytest
import torch

import raretok
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
    """Ids from a decreasing distribution, which a model can learn."""
    generator = torch.Generator().manual_seed(1)
    weights = 1 / torch.arange(1, TYPES + 1).double()
    drawn = torch.multinomial(weights, number * rows * length, replacement=True, generator=generator)
    return list(drawn.view(number, rows, length))


def example(mark):
    """The code between two marks of the page."""
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
def test_without_parts_the_loss_equals_the_models_own(name, tied, bias):
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
    criterion = names["patched"].criterion
    assert criterion.steps == 72
    assert 0 < criterion.rare().sum() < TYPES / 2
    assert model(ids, labels=ids).loss.item() < before - 0.5


def test_all_code_of_the_page_runs_in_order(monkeypatch):
    """Except for that of optional packages and of whole programs, which have their own tests."""
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda _: tiny("gpt2"))
    names = {"batches": batches(), "micro_batches": batches(2), "GPT": GPT}
    page = re.sub(r"<!-- (trl|litgpt|accelerate|constant):begin -->.*?<!-- \1:end -->", "", DOCS, flags=re.DOTALL)
    for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(code, names)
    assert names["hidden"].shape == (4, 15, 32)
    # Six steps of the loop, and one of two micro-batches.
    assert names["criterion"].steps == 7
    assert names["head"].bias.requires_grad


class GPT(torch.nn.Module):
    """A tied model with nanoGPT's names and minimal blocks."""

    def __init__(self, config):
        super().__init__()
        torch.manual_seed(0)
        wte = torch.nn.Embedding(TYPES, 32, _weight=0.1 * torch.randn(TYPES, 32))
        self.transformer = torch.nn.ModuleDict(
            {
                "wte": wte,
                "wpe": torch.nn.Embedding(64, 32),
                "drop": torch.nn.Dropout(0.0),
                "h": torch.nn.ModuleList([torch.nn.Linear(32, 32)]),
                "ln_f": torch.nn.LayerNorm(32),
            }
        )
        self.lm_head = torch.nn.Linear(32, TYPES, bias=False)
        self.lm_head.weight = wte.weight

    def forward(self, idx, targets=None):
        parts = self.transformer
        x = parts.drop(parts.wte(idx) + parts.wpe(torch.arange(idx.shape[1])))
        for block in parts.h:
            x = block(x)
        logits = self.lm_head(parts.ln_f(x))
        if targets is None:
            return logits[:, [-1]], None
        return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def test_the_nanogpt_example_equals_nanogpts_loss():
    names = {"GPT": GPT, "raretok": raretok, "torch": torch}
    exec(example("nanogpt"), names)
    assert len(example("nanogpt").splitlines()) <= 20
    ours, theirs = names["RareGPT"](None), GPT(None)
    ours.load_state_dict(theirs.state_dict())
    ids = batches(1)[0]
    targets = ids[:, 1:].clone()
    targets[0, :5] = -1
    plain = theirs(ids[:, :-1], targets)[1]
    assert ours(ids[:, :-1], targets)[1] < plain - 0.02
    assert torch.equal(ours(ids)[0], theirs(ids)[0])
    ours.eval()
    torch.testing.assert_close(ours(ids[:, :-1], targets)[1], plain)
    ours.train().criterion = OutputLoss(ignore_index=-1)
    ours(ids[:, :-1], targets)[1].backward()
    plain.backward()
    expected, found = gradients(theirs), gradients(ours)
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, rtol=1e-4, atol=1e-6)


def test_the_litgpt_example_trains_like_litgpts_loss(monkeypatch):
    litgpt = pytest.importorskip("litgpt")
    from litgpt.utils import chunked_cross_entropy

    settings = {"block_size": 32, "n_layer": 2, "n_embd": 32, "n_head": 2, "padded_vocab_size": TYPES}
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(litgpt.GPT(litgpt.Config(**settings)))
    theirs, ours = models
    for model in models:
        names = {"model": model, "batches": batches(3), "raretok": raretok}
        names["optimiser"] = torch.optim.SGD(model.parameters(), lr=0.5)
        if model is ours:
            monkeypatch.setattr(raretok, "Threshold", lambda margin: None)
            exec(example("litgpt"), names)
            continue
        for ids in names["batches"]:
            chunked_cross_entropy(model(ids[:, :-1]), ids[:, 1:].contiguous()).backward()
            names["optimiser"].step()
            names["optimiser"].zero_grad()
    for (name, mine), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5, msg=name)
    assert names["criterion"].steps == 3
    del ours.lm_head.forward
    assert ours(names["batches"][0]).shape[-1] == TYPES


def test_the_trl_example_trains_like_trl(tmp_path):
    """Also with micro-batches of different sizes; thresholding trains another model."""
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    names = {}
    exec(example("trl"), names)
    rows = [{"input_ids": text[: 5 + k % 9].tolist()} for k, text in enumerate(torch.cat(batches(2, 8)))]
    found = []
    for trainer_class, loss in (
        (trl.SFTTrainer, None),
        (names["RareSFTTrainer"], OutputLoss()),
        (names["RareSFTTrainer"], Threshold(margin=0.1)),
    ):
        model = tiny("llama")
        if loss is not None:
            raretok.patch(model, loss)
        settings = trl.SFTConfig(
            str(tmp_path), per_device_train_batch_size=2, gradient_accumulation_steps=4, report_to=[], use_cpu=True,
            num_train_epochs=1, learning_rate=1e-2, save_strategy="no", logging_steps=1, disable_tqdm=True, bf16=False,
            dataset_kwargs={"skip_prepare_dataset": True}, gradient_checkpointing=False,
        )  # fmt: skip
        run = trainer_class(
            model=model, args=settings, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer()
        )
        run.train()
        found.append(model.get_output_embeddings().weight.detach())
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
    assert (found[2] - found[0]).abs().max() > 1e-3


def tokenizer():
    """One that only pads."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{k}": k for k in range(TYPES)}
    whole = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=whole, pad_token="w0", eos_token="w0")


def test_agg_gates_only_rare_rows_of_the_matrix():
    """In an untied model, all other gradients equal those of the model's own loss."""
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
    # Only rare targets push away a rare type that is no target, and less; frequent targets do not.
    absent = torch.from_numpy(counts == 0)
    norms = [grads["lm_head.weight"][absent].norm() for grads in (found, expected)]
    assert norms[0] < 0.5 * norms[1]


@pytest.mark.parametrize("name", MODELS)
def test_a_bfloat16_model_trains(name):
    """The loss equals the float32 one within bfloat16's precision; the matrix's gradient is bfloat16."""
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
    """The trainer of the page on the texts of four steps."""
    raretok.patch(model, criterion)
    names = {}
    exec(example("trainer"), names)
    return started(names["RareTrainer"], model, folder, rows, **arguments)


def started(trainer_class, model, folder, rows, **arguments):
    texts = torch.cat(batches(4, 8))
    data = [{"input_ids": text, "labels": text.where(text != 5, -100)} for text in texts]
    settings = transformers.TrainingArguments(
        folder, per_device_train_batch_size=rows, gradient_accumulation_steps=8 // rows, report_to=[], use_cpu=True,
        num_train_epochs=1, learning_rate=1e-2, save_strategy="no", logging_steps=1, disable_tqdm=True,
        max_grad_norm=0, **arguments,
    )  # fmt: skip
    return trainer_class(model=model, args=settings, train_dataset=data, eval_dataset=data[:5])


def test_trainer_accumulation_equals_one_large_batch(tmp_path):
    pytest.importorskip("accelerate")
    counts = count_targets(batches(4, 8), TYPES)
    found = []
    for rows in (8, 2):
        model, criterion = tiny("llama"), OutputLoss(gate=AGG(alpha=2.0, memory=2), counts=counts)
        run = trainer(model, criterion, tmp_path, rows)
        run.train()
        assert criterion.steps == 4
        found.append(model.get_output_embeddings().weight.detach())
        assert criterion.rare().any()
    assert (found[0] - tiny("llama").get_output_embeddings().weight).abs().max() > 0.01
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
    score = run.evaluate()["eval_loss"]
    assert criterion.steps == 4
    with torch.no_grad():
        ids = torch.stack([row["input_ids"] for row in run.eval_dataset])
        labels = torch.stack([row["labels"] for row in run.eval_dataset])
        assert score == pytest.approx(model.eval()(ids, labels=labels).loss.item(), rel=1e-5)


def test_a_plain_trainer_trains_a_patched_model_like_the_original(tmp_path):
    """It raises an error if a gate would count micro-batches as steps."""
    pytest.importorskip("accelerate")
    for name in MODELS:
        ours, theirs = tiny(name), tiny(name)
        raretok.patch(ours)
        scores = []
        for model in (ours, theirs):
            run = started(transformers.Trainer, model, tmp_path, 2)
            run.train()
            scores.append(run.evaluate()["eval_loss"])
        torch.testing.assert_close(
            ours.get_output_embeddings().weight, theirs.get_output_embeddings().weight, rtol=1e-3, atol=1e-4
        )
        assert scores[0] == pytest.approx(scores[1], rel=1e-5)
        gated = tiny(name)
        patched = raretok.patch(gated, gate=AGG(alpha=2.0, memory=2), counts=count_targets(batches(4, 8), TYPES))
        started(transformers.Trainer, gated, tmp_path, 8).train()
        assert patched.criterion.steps == 4
    with pytest.raises(ValueError, match="call begin_step before each step"):
        started(transformers.Trainer, gated, tmp_path, 2).train()
