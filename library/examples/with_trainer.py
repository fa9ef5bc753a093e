"""AGG in `Trainer` of transformers, with gradient accumulation; a training that is stopped and resumed ends the same.

python examples/with_trainer.py
"""

# ruff: noqa: I001 (the documentation shows imports beside the class)
import tempfile

import torch
from made_text import TYPES, made_text
from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback, TrainingArguments

import raretok

# [trainer]
from transformers import Trainer

from raretok.hf import PatchedTrainer


class RareTrainer(PatchedTrainer, Trainer):
    """`Trainer` on the loss of a patched model."""


# [end]
class Stop(TrainerCallback):
    """Stops a training, as a time limit would."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop |= state.global_step == self.step


def train(folder, resume=False, stop=None):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TYPES, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    model, texts = LlamaForCausalLM(config), made_text(512)
    counts = raretok.count_targets(texts[:, 1:], TYPES)
    targets_per_step = 2 * 8 * 31  # micro-batches x sequences x targets
    alpha = raretok.agg_alpha(counts, targets_per_step)
    patched = raretok.patch(model, gate=raretok.AGG(alpha, memory=20), counts=counts)
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=8, gradient_accumulation_steps=2, num_train_epochs=2, learning_rate=3e-3,
        save_steps=20, logging_steps=20, report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    rows = [{"input_ids": text, "labels": text.clone()} for text in texts]
    trainer = RareTrainer(model, arguments, train_dataset=rows, callbacks=[Stop(stop)] if stop else [])
    trainer.train(resume_from_checkpoint=resume)
    print(f"step {trainer.state.global_step}: {int(patched.criterion.rare().sum())} rare types")
    return [parameter.detach() for parameter in model.parameters()]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        whole = train(f"{folder}/whole")
        train(f"{folder}/stopped", stop=45)
        resumed = train(f"{folder}/stopped", resume=True)
    same = all(torch.equal(ours, theirs) for ours, theirs in zip(whole, resumed, strict=True))
    print(f"resumed equals unbroken: {same}")
