"""`raretok.patch` on tiny random models of transformers, without network."""

import copy
import inspect
import re
import sys

import pytest
import torch
from test_huggingface import DOCS, batches, gradients
from torch import distributed, multiprocessing
from torch.distributed import fsdp
from torch.nn import functional as F

import raretok
from raretok import AGG, Adversarial, CosReg, Freeze, OutputLoss, Threshold, Unlikelihood, count_targets

transformers = pytest.importorskip("transformers")

TYPES = 61
SIZES = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 16,
}  # fmt: skip
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
STATES = {
    "mamba_d_ssm": 32, "mamba_n_heads": 2, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8,
}  # fmt: skip
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "output_router_logits": True}
# Architectures: their sizes, and the scale and soft cap that the patch must find.
MODELS = {
    "gpt2": (GPT2, 1.0, None),
    "gptj": (GPT2 | {"rotary_dim": 8}, 1.0, None),  # a bias
    "gpt_neox": (SIZES, 1.0, None),
    "llama": (SIZES, 1.0, None),
    "mistral": (SIZES, 1.0, None),
    "mixtral": (SIZES | EXPERTS, 1.0, None),  # adds a loss of its routers to the total
    "qwen2": (SIZES, 1.0, None),
    "gemma2": (SIZES | {"final_logit_softcapping": 0.2}, 1.0, 0.2),
    "cohere": (SIZES | {"logit_scale": 0.3}, 0.3, None),
    "granite": (SIZES | {"logits_scaling": 4.0}, 0.25, None),
    "falcon_h1": (SIZES | STATES | {"lm_head_multiplier": 0.5}, 0.5, None),
    "hyperclovax": (SIZES | {"logits_scaling": 2.0}, 2.0, None),  # multiplies by what Granite divides by
    "opt": (  # projects to the width of its embedding
        {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
         "max_position_embeddings": 64, "word_embed_proj_dim": 16}, 1.0, None,
    ),
    "phi": (SIZES, 1.0, None),  # a bias
    "falcon": ({"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}, 1.0, None),
    "bloom": ({"hidden_size": 32, "n_layer": 2, "n_head": 2}, 1.0, None),
    "olmo2": (SIZES, 1.0, None),
}  # fmt: skip


def tiny(name, **more):
    """A random model in training mode, without dropout."""
    torch.manual_seed(0)
    settings = {"vocab_size": TYPES, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0} | MODELS[name][0] | more
    config = transformers.AutoConfig.for_model(name, **settings)
    for key, value in vars(config).items():
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    return transformers.AutoModelForCausalLM.from_config(config).train()


def labelled(seed=0):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, TYPES, (3, 12), generator=generator)
    labels = ids.clone()
    labels[0, :7] = -100
    return ids, labels


def same_training(model, own, **named):
    """Assert that a patched model's loss and gradients equal those of `own`, the original."""
    ids, labels = labelled()
    expected = own(ids, labels=labels, **named)
    expected.loss.backward()
    ours = model(ids, labels=labels, **named)
    ours.loss.backward()
    torch.testing.assert_close(ours.loss, expected.loss, rtol=1e-5, atol=1e-6)
    assert ours.logits.shape[:2] == (3, 1)
    theirs = {name: p.grad for name, p in own.named_parameters() if p.grad is not None}
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == theirs.keys()
    for name, gradient in theirs.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("tied", [True, False])
def test_without_parts_the_loss_equals_the_models_own(name, tied):
    model, own = tiny(name, tie_word_embeddings=tied), tiny(name, tie_word_embeddings=tied)
    touched = model, model.get_output_embeddings()
    signature, before = inspect.signature(model.forward), [set(vars(module)) for module in touched]
    patched = raretok.patch(model)
    assert (patched.criterion.logit_scale, patched.criterion.soft_cap) == MODELS[name][1:]
    assert inspect.signature(model.forward) == signature
    same_training(model, own)
    patched.undo()
    assert [set(vars(module)) for module in touched] == before
    ids, labels = labelled()
    assert torch.equal(model(ids, labels=labels).loss, own(ids, labels=labels).loss)


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "granite", "phi"])
def test_a_matrix_with_padding_rows(name):
    model, own = tiny(name), tiny(name)
    for each in (model, own):
        torch.manual_seed(1)
        each.resize_token_embeddings(pad_to_multiple_of=64, mean_resizing=False)
    assert len(model.get_output_embeddings().weight) == 64
    raretok.patch(model)
    same_training(model, own)


def test_a_copy_of_a_patched_model_is_independent():
    model, own = tiny("gemma2"), tiny("gemma2")
    patched = raretok.patch(model)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    same_training(other, own)
    assert patched.criterion.steps == 0
    assert all(parameter.grad is None for parameter in model.parameters())


def test_loss_arguments_of_trainers_have_the_same_meaning():
    targets = F.pad(labelled()[1][:, 1:], (0, 1), value=-100)
    for named in ({"num_items_in_batch": 100}, {"num_items_in_batch": torch.tensor(70)}, {"shift_labels": targets}):
        model, own = tiny("llama"), tiny("llama")
        raretok.patch(model)
        same_training(model, own, **named)


def test_labels_can_be_positional_and_decide_alone():
    model, own = tiny("llama"), tiny("llama")
    ids, labels = labelled()
    patched = raretok.patch(model, Threshold(margin=0.05))
    place = list(inspect.signature(own.forward).parameters).index("labels")
    loss = model(ids, *[None] * (place - 1), labels).loss
    assert loss == model(ids, labels=labels).loss != own(ids, labels=labels).loss
    # Without labels a model of transformers returns no loss.
    found = model(ids, shift_labels=labels)
    assert found.loss is None
    torch.testing.assert_close(found.logits, own(ids).logits)
    assert patched.criterion.steps == 2


def test_masked_ids_are_no_earlier_tokens():
    """Padding on the left changes nothing; positions are given, because the model counts padding, too."""
    model = tiny("gpt2")
    raretok.patch(model, penalty=Unlikelihood(5.0))
    ids, labels = labelled()
    padded = [F.pad(tensor, (6, 0), value=value) for tensor, value in ((ids, 7), (labels, -100))]
    padded[1][:, 6] = -100  # without padding, nothing predicts the first label
    mask = F.pad(torch.ones_like(ids), (6, 0))
    places = (mask.cumsum(1) - 1).clamp_min(0)
    loss = model(padded[0], labels=padded[1], attention_mask=mask, position_ids=places).loss
    torch.testing.assert_close(loss, model(ids, labels=labels).loss)


def test_only_training_changes():
    model, own = tiny("qwen2"), tiny("qwen2")
    ids, labels = labelled()
    with raretok.patch(model, Threshold(margin=0.05)):
        assert model.training
        assert model(ids, labels=labels).loss < 0.95 * own(ids, labels=labels).loss
        torch.testing.assert_close(model(ids).logits, own(ids).logits)
        with torch.no_grad():
            assert torch.equal(model(ids, labels=labels).loss, own(ids, labels=labels).loss)
        found = model.eval()(ids, labels=labels)
        assert torch.equal(found.loss, own.eval()(ids, labels=labels).loss)
        assert found.logits.shape == (3, 12, TYPES)
        generated = model.generate(ids[:1], max_new_tokens=3, do_sample=False)
        assert torch.equal(generated, own.generate(ids[:1], max_new_tokens=3, do_sample=False))
    model.train()
    own.train()
    assert torch.equal(model(ids, labels=labels).loss, own(ids, labels=labels).loss)


@pytest.mark.parametrize("name", ["gemma2", "cohere", "granite"])
def test_the_example_of_metrics_has_the_models_own_loss(name):
    model = tiny(name).eval()
    criterion, head = raretok.patch(model).criterion, model.get_output_embeddings()
    ids = labelled()[0]
    names = {
        "torch": torch,
        "model": model,
        "criterion": criterion,
        "head": head,
        "ids": ids,
        "counts": torch.arange(1, TYPES + 1),
    }
    (code,) = re.findall(r"## Metrics by frequency\n\n```python\n(.*?)```", DOCS, flags=re.DOTALL)
    exec(code, names)
    torch.testing.assert_close(names["nll"].mean().float(), model(ids, labels=ids).loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gemma2", "cohere"])
def test_a_patched_method_equals_outputloss(name):
    """Unlikelihood gets the input sequences, and the loss the model's scale or soft cap."""
    model = tiny(name)
    ids, labels = labelled()
    parts = {"loss": Threshold(margin=1.0), "penalty": Unlikelihood(0.5)}
    patched = raretok.patch(model, OutputLoss(**parts))
    loss = model(ids, labels=labels).loss
    direct = OutputLoss(**parts, logit_scale=MODELS[name][1], soft_cap=MODELS[name][2])
    hidden, head = model.base_model(ids).last_hidden_state, model.get_output_embeddings()
    targets = F.pad(labels[:, 1:], (0, 1), value=-100)
    torch.testing.assert_close(loss, direct(hidden, head.weight, targets, inputs=ids, bias=head.bias))
    torch.testing.assert_close(patched.criterion.nll, direct.nll)


def test_micro_batches_with_a_gate_and_penalty_are_one_step():
    """`num_items_in_batch` divides the loss; without `begin_step`, the gate raises an error."""
    ids = batches(1, rows=4)[0]
    counts = count_targets([ids[:, 1:]], TYPES)
    found = []
    for parts in ([slice(0, 4)], [slice(0, 1), slice(1, 4)]):
        model = tiny("gpt2", tie_word_embeddings=False)
        patched = raretok.patch(model, gate=AGG(alpha=2.0, memory=2), penalty=CosReg(), counts=counts)
        patched.begin_step([ids[part] for part in parts])
        for part in parts:
            model(ids[part], labels=ids[part], num_items_in_batch=ids[:, 1:].numel()).loss.backward()
        assert patched.criterion.steps == 1
        found.append(gradients(model))
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-4, atol=1e-6)
    model = tiny("gpt2")
    raretok.patch(model, gate=AGG(alpha=2.0, memory=2), counts=counts)
    model(ids, labels=ids, num_items_in_batch=torch.tensor(60)).loss.backward()
    with pytest.raises(ValueError, match="this micro-batch has 15 of the step's 60 targets"):
        model(ids[:1], labels=ids[:1], num_items_in_batch=torch.tensor(60))


def test_a_lora_model():
    """Adapters of the body and a fully trained head work; adapters of the head are refused."""
    peft = pytest.importorskip("peft")
    settings = {"r": 2, "target_modules": ["q_proj"], "init_lora_weights": False}
    for more in ({}, {"modules_to_save": ["lm_head"]}):
        models = []
        for _ in range(2):
            base = tiny("llama", tie_word_embeddings=False)
            torch.manual_seed(2)
            models.append(peft.get_peft_model(base, peft.LoraConfig(**settings, **more)))
        patched = raretok.patch(models[0])
        same_training(*models)
        assert patched.criterion.steps == 1
    model = peft.get_peft_model(tiny("llama"), peft.LoraConfig(r=2, target_modules=["q_proj", "lm_head"]))
    with pytest.raises(
        ValueError, match=r"embedding of LlamaForCausalLM is a peft\.\S+\.Linear, not a torch.nn.Linear"
    ):
        raretok.patch(model)
    wrapped_later, own = (tiny("llama", tie_word_embeddings=False) for _ in range(2))
    raretok.patch(wrapped_later)
    for model in (wrapped_later, own):
        torch.manual_seed(2)
        model.wrapped = [peft.get_peft_model(model, peft.LoraConfig(**settings))]
    same_training(wrapped_later.wrapped[0], own.wrapped[0])
    model = tiny("llama", tie_word_embeddings=False)
    raretok.patch(model)
    model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["lm_head"]))
    ids, labels = labelled()
    with pytest.raises(ValueError, match="leave it out of the adapter"):
        model(ids, labels=labels)


def trained(rows, wrap):
    """The weights of a patched model after three steps on some rows, with or without FSDP2."""
    model = tiny("llama", tie_word_embeddings=False)
    counts = 3 + torch.arange(TYPES).flip(0) ** 2
    raretok.patch(model, Threshold(margin=0.1), gate=Freeze(part="bc", share=0.5), counts=counts, processes="all")
    whole = wrap(model)
    optimiser = torch.optim.SGD(whole.parameters(), lr=0.5)
    for seed in range(3):
        ids, labels = labelled(seed)
        whole(ids[rows], labels=labels[rows]).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    found = [getattr(p, "full_tensor", lambda p=p: p)().detach().flatten() for p in whole.parameters()]
    return torch.cat(found)


def sharded(model):
    """The head in its own group: its weights are gathered only in its own forward pass."""
    fsdp.fully_shard(model.lm_head)
    return fsdp.fully_shard(model)


def process(rank, store, folder):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.save(trained(slice(0, 1) if rank == 0 else slice(1, 3), sharded), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_with_sharded_weights_train_as_one(tmp_path):
    multiprocessing.start_processes(process, (tmp_path / "store", tmp_path), nprocs=2, start_method="fork")
    alone = trained(slice(None), lambda model: model)
    assert (trained(slice(0, 1), lambda model: model) - alone).abs().max() > 0.01
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-5)


def test_hidden_vectors_move_to_the_device_of_the_head():
    """As with accelerate's hook on the head of a model with a `device_map`; the device meta stands for another GPU."""
    model, devices = tiny("llama", tie_word_embeddings=False), []
    patched = raretok.patch(model)

    def record(hidden, weight, targets, number, **_):
        devices.extend((hidden.device.type, weight.device.type, number.device.type))
        return hidden.sum()

    patched.criterion.forward = record
    model.lm_head.to("meta")
    ids, labels = labelled()
    assert model(ids, labels=labels, num_items_in_batch=torch.tensor(29)).loss.requires_grad
    assert devices == ["meta"] * 3


def test_data_parallel_is_refused(monkeypatch):
    """It copies the model to every GPU, but the copies' forward passes are those of the original."""

    def sent(tensors, devices, *_, **__):
        return [tensors] * len(devices)

    module = sys.modules["torch.nn.parallel.replicate"]
    monkeypatch.setattr(module, "_broadcast_coalesced_reshape", sent)
    model = tiny("llama")
    with raretok.patch(model), pytest.raises(ValueError, match=r"DataParallel.*; start the script with torchrun"):
        module.replicate(torch.nn.Sequential(model), [0, 1])
    assert len(module.replicate(model, [0, 1])) == 2


class Squared(transformers.LlamaForCausalLM):
    """A model whose logits are not the head's."""

    def forward(self, *arguments, **named):
        outputs = super().forward(*arguments, **named)
        outputs.logits = outputs.logits**2
        return outputs


def other(model_class):
    return model_class(tiny("llama").config)


def with_loss(function):
    model = tiny("llama")
    model.loss_function = function
    return model


def twice():
    model = tiny("llama")
    raretok.patch(model)
    raretok.patch(model)


SENTENCES = [
    (lambda: raretok.patch(torch.nn.Linear(2, 2)), "Linear is not a causal language model of transformers"),
    (lambda: raretok.patch(other(Squared)), "logits of Squared are not its last hidden vectors times"),
    (twice, "LlamaForCausalLM is already patched; call undo\\(\\) of the handle"),
    (lambda: raretok.patch(tiny("llama"), OutputLoss(), penalty=CosReg()), "penalty= is an option of OutputLoss"),
    (lambda: raretok.patch(tiny("llama"), reduction="none"), "the loss of a model is one number"),
    (lambda: raretok.patch(tiny("llama"), ignore_index=0), "ignore_index is 0; models of transformers ignore"),
    (lambda: raretok.patch(tiny("cohere"), logit_scale=0.1), "^logit_scale=0.1 and soft_cap=None, but .* has 0.3"),
    (lambda: raretok.patch(tiny("llama"), soft_cap=1.0), "soft_cap=1.0, but LlamaForCausalLM has 1.0 and None"),
    (lambda: raretok.patch(tiny("gemma2"), perturbation=Adversarial(alpha=0.1)), "Gemma2.* has a soft cap"),
    (
        lambda: raretok.patch(tiny("gemma2"), Threshold(alpha=0.1)),
        r"with Threshold\(alpha\); leave that out",
    ),
    (lambda: raretok.patch(tiny("llama").model), "^LlamaModel has no output embedding; patch the model that has one"),
    (lambda: raretok.patch(tiny("llama")).begin_step([{"labels": labelled()[1]}]), "labels are of type dict; give"),
    (
        lambda: raretok.patch(with_loss(lambda logits, labels, **_: logits.square().mean())),
        "the loss of LlamaForCausalLM is .* on a tiny batch, but OutputLoss gives",
    ),
]


@pytest.mark.parametrize(("make", "words"), SENTENCES)
def test_models_that_cannot_be_patched_are_refused(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_refused_model_is_unchanged():
    model = other(Squared)
    before = set(vars(model)), set(vars(model.lm_head)), model.training
    with pytest.raises(ValueError, match="logits of Squared"):
        raretok.patch(model)
    assert (set(vars(model)), set(vars(model.lm_head)), model.training) == before
