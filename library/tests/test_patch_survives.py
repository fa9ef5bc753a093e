"""What people do to a patched model, or before they patch it: the loss stays that of the method, and errors help.

Every sentence of advice in an error is carried out here.
"""

import copy

import pytest
import torch
from test_patch import TYPES, labelled, same_training, tiny
from torch import distributed, multiprocessing
from torch.distributed import fsdp
from torch.nn import functional as F

import raretok
from raretok import AGG, Threshold

transformers = pytest.importorskip("transformers")
MARGIN = 0.02


def llama(**more):
    return tiny("llama", tie_word_embeddings=False, **more)


def threshold_loss(model):
    """The loss that a patched model must have, from hidden vectors; and the model's own, which is not the same."""
    ids, labels = labelled()
    training, targets = model.training, F.pad(labels[:, 1:], (0, 1), value=-100)
    with torch.no_grad():
        own = model.eval()(ids, labels=labels)
        hidden = model.get_base_model() if hasattr(model, "get_base_model") else model
        hidden = hidden.model(ids).last_hidden_state
    model.train(training)
    head = model.get_output_embeddings()
    head = head.modules_to_save["default"] if hasattr(head, "modules_to_save") else head
    expected = raretok.OutputLoss(Threshold(margin=MARGIN))(hidden, head.weight, targets)
    assert (own.loss - expected).abs() > 1e-2
    return expected


def assert_patched(model):
    """Assert that the model's loss is that of the method, with a gradient of its head."""
    ids, labels = labelled()
    loss = model(input_ids=ids, labels=labels).loss
    torch.testing.assert_close(loss, threshold_loss(model), rtol=1e-5, atol=1e-6)
    loss.backward()
    model.zero_grad()


def lora(model, **more):
    peft = pytest.importorskip("peft")
    torch.manual_seed(2)
    return peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, **more))


@pytest.mark.parametrize("first", ["patch", "peft"])
@pytest.mark.parametrize("more", [{}, {"modules_to_save": ["lm_head"]}])
def test_adapters_before_and_after(first, more):
    """PEFT copies a head that it saves; the copy is what trains."""
    models = []
    for patches in (True, False):
        model = llama()
        if patches and first == "patch":
            raretok.patch(model)
        model = lora(model, **more)
        if patches and first == "peft":
            raretok.patch(model)
        models.append(model)
    same_training(*models)
    found = models[0].get_output_embeddings()
    assert (getattr(found, "modules_to_save", None) is None) == (not more)
    assert "forward" not in vars(found)


@pytest.mark.parametrize("more", [{}, {"modules_to_save": ["lm_head"]}])
def test_adapters_that_are_switched_off_merged_and_removed(more):
    model = llama()
    raretok.patch(model, Threshold(margin=MARGIN))
    model = lora(model, **more)
    assert_patched(model)
    ids, labels = labelled()
    with model.disable_adapter():
        model(input_ids=ids, labels=labels)
    merged = model.merge_and_unload()
    merged.requires_grad_(True)
    assert isinstance(merged.lm_head, torch.nn.Linear)
    assert_patched(merged)


def test_new_rows_after_the_patch():
    model, own = llama(), llama()
    raretok.patch(model)
    for each in (model, own):
        torch.manual_seed(3)
        each.resize_token_embeddings(64, mean_resizing=False)
    same_training(model, own)


def test_a_gate_needs_counts_of_new_rows_and_the_advice_works():
    model, (ids, labels) = llama(), labelled()
    counts = torch.arange(TYPES, 0, -1)
    patched = raretok.patch(model, gate=AGG(alpha=0.5, memory=2), counts=counts)
    model.resize_token_embeddings(64, mean_resizing=False)
    with pytest.raises(ValueError, match=r"counts has 61 types, but weight has 64 rows; count all types"):
        model(ids, labels=labels)
    more = torch.cat([counts, torch.zeros(3, dtype=counts.dtype)])
    with pytest.raises(ValueError, match=r"is already patched; call undo\(\) of the handle"):
        raretok.patch(model, gate=AGG(alpha=0.5, memory=2), counts=more)
    patched.undo()
    again = raretok.patch(model, gate=AGG(alpha=0.5, memory=2), counts=more)
    model(ids, labels=labels).loss.backward()
    assert again.criterion.steps == 1


def test_a_copy_has_its_own_patch():
    model = llama()
    patched = raretok.patch(model, Threshold(margin=MARGIN))
    other = copy.deepcopy(model)
    for each in (other, model):
        assert_patched(each)
    assert patched.criterion.steps == 1
    patched.undo()
    assert_patched(other)
    # A copy of a copy, made after the original is gone.
    del model, patched
    assert_patched(copy.deepcopy(other))


@pytest.fixture
def accelerator():
    """In bfloat16; its state is global, and other tests leave theirs."""
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    yield accelerate.Accelerator(mixed_precision="bf16", cpu=True)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("first", ["patch", "accelerate"])
def test_wrapping_and_unwrapping_by_accelerate(first, accelerator):
    """It replaces the forward method for autocast, and takes the wrapper off again."""
    model, (ids, labels) = llama(), labelled()
    if first == "patch":
        patched = raretok.patch(model, Threshold(margin=MARGIN))
    whole = accelerator.prepare(model)
    if first == "accelerate":
        patched = raretok.patch(model, Threshold(margin=MARGIN))
    expected = threshold_loss(model)
    loss = whole(ids, labels=labels).loss
    accelerator.backward(loss)
    torch.testing.assert_close(loss.float(), expected, rtol=2e-2, atol=0)
    if first == "patch":
        bare = accelerator.unwrap_model(whole, keep_fp32_wrapper=False)
        assert bare is model
        assert_patched(bare)
    steps = patched.criterion.steps
    patched.undo()
    model(ids, labels=labels)
    assert patched.criterion.steps == steps


def test_undo_keeps_what_wrapped_the_model_since(accelerator):
    model, (ids, labels) = llama(), labelled()
    patched = raretok.patch(model, Threshold(margin=MARGIN))
    whole = accelerator.prepare(model)
    patched.undo()
    own = llama()(ids, labels=labels).loss
    with_autocast = whole(ids, labels=labels).loss
    assert patched.criterion.steps == 0
    assert 0 < (with_autocast - own).abs() < 0.02
    again = raretok.patch(model, Threshold(margin=MARGIN))
    torch.testing.assert_close(whole(ids, labels=labels).loss, threshold_loss(model), rtol=2e-2, atol=0)
    assert again.criterion.steps == 1


def test_a_model_without_weights_is_refused_and_the_advice_works():
    with torch.device("meta"):
        model = llama()
    with pytest.raises(ValueError, match=r"has no weights yet \(device meta\); load them, then patch it"):
        raretok.patch(model)
    model.to_empty(device="cpu")
    model.load_state_dict(llama().state_dict())
    # Buffers of rotary embeddings are in no state dict.
    model.model.rotary_emb = llama().model.rotary_emb
    raretok.patch(model)
    same_training(model, llama())


def test_an_adapter_of_the_head_is_refused_and_the_advice_works():
    peft = pytest.importorskip("peft")
    everything = {"r": 2, "target_modules": ["q_proj", "lm_head"]}
    with pytest.raises(ValueError, match=r"exclude_modules=\['lm_head'\]") as error:
        raretok.patch(peft.get_peft_model(llama(), peft.LoraConfig(**everything)))
    assert "modules_to_save=['lm_head']" in str(error.value)
    ids, labels = labelled()
    late = llama()
    raretok.patch(late)
    with pytest.raises(ValueError, match=r"exclude_modules=\['lm_head'\]"):
        peft.get_peft_model(late, peft.LoraConfig(**everything))(input_ids=ids, labels=labels)
    for more in (
        {"target_modules": "all-linear", "exclude_modules": ["lm_head"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    ):
        model = peft.get_peft_model(llama(), peft.LoraConfig(r=2, **more))
        raretok.patch(model, Threshold(margin=MARGIN))
        assert_patched(model)


class Quantised(torch.nn.Linear):
    """Stands for a head of a quantisation library."""

    def forward(self, hidden):
        return super().forward(hidden)


def test_a_quantised_head_is_refused_and_the_advice_works():
    model = llama()
    plain, model.lm_head = model.lm_head, Quantised(32, TYPES, bias=False)
    with pytest.raises(ValueError, match=r"Quantised, not a torch.nn.Linear; leave the head out of quantisation"):
        raretok.patch(model)
    model.lm_head = plain
    raretok.patch(model, Threshold(margin=MARGIN))
    assert_patched(model)


def test_logits_of_some_positions_and_the_advice():
    model, own, (ids, labels) = llama(), llama(), labelled()
    raretok.patch(model)
    with pytest.raises(ValueError, match=r"leave out logits_to_keep, or give labels\[:, -5:\]"):
        model(ids, labels=labels, logits_to_keep=5)
    for named in ({"labels": labels}, {"labels": labels[:, -5:], "logits_to_keep": 5}):
        torch.testing.assert_close(model(ids, **named).loss, own(ids, **named).loss, rtol=1e-5, atol=1e-6)


def test_compiled():
    """The body is compiled; the loss is not."""
    model, own = llama(), llama()
    raretok.patch(model)
    ids, labels = labelled()
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(ids, labels=labels).loss, own(ids, labels=labels).loss, rtol=1e-5, atol=1e-6)


def process(rank, store, folder):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = llama()
    fsdp.fully_shard(model.lm_head)
    fsdp.fully_shard(model)
    raretok.patch(model, Threshold(margin=MARGIN), processes="all")
    ids, labels = labelled()
    part = slice(0, 1) if rank == 0 else slice(1, 3)
    loss = model(ids[part], labels=labels[part]).loss
    loss.backward()
    found = [parameter.grad.full_tensor() for parameter in model.parameters()]
    torch.save(found, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_a_model_that_is_sharded_before_the_patch(tmp_path):
    multiprocessing.start_processes(process, (tmp_path / "store", tmp_path), nprocs=2, start_method="fork")
    model, (ids, labels) = llama(), labelled()
    raretok.patch(model, Threshold(margin=MARGIN))
    model(ids, labels=labels).loss.backward()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for ours, parameter in zip(found, model.parameters(), strict=True):
            torch.testing.assert_close(ours, parameter.grad, rtol=1e-4, atol=1e-6)


# The remedies of the other sentences of test_patch.py.
REMEDIES = [
    lambda: raretok.patch(llama(), raretok.OutputLoss(penalty=raretok.CosReg())),
    lambda: raretok.patch(llama(), raretok.OutputLoss(reduction="mean", ignore_index=-100)),
    lambda: raretok.patch(tiny("cohere")),
    lambda: raretok.patch(tiny("gemma2"), Threshold(margin=0.1)),
    lambda: raretok.patch(transformers.AutoModelForCausalLM.from_config(llama().config)),
]


@pytest.mark.parametrize("remedy", REMEDIES)
def test_other_advice_works(remedy):
    patched = remedy()
    ids, labels = labelled()
    patched.begin_step([labels])
    patched.model.train()(ids, labels=labels).loss.backward()
    assert patched.criterion.steps == 1
