"""Thresholding in `SFTTrainer` of TRL.

python examples/with_trl.py
"""

# ruff: noqa: I001 (the documentation shows imports beside the class)
import tempfile

import torch
from datasets import Dataset
from made_text import TYPES, made_text
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import raretok

# [trl]
from trl import SFTConfig, SFTTrainer

from raretok.hf import PatchedTrainer


class RareSFTTrainer(PatchedTrainer, SFTTrainer):
    """TRL's `SFTTrainer` on the loss of a patched model."""


# [end]
def main(folder):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TYPES, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    patched = raretok.patch(model, raretok.Threshold(margin=4.0))
    words = Tokenizer(WordLevel({f"w{number}": number for number in range(TYPES)}, unk_token="w0"))
    arguments = SFTConfig(
        folder, per_device_train_batch_size=16, num_train_epochs=2, learning_rate=3e-3, save_strategy="no",
        logging_steps=20, report_to=[], use_cpu=True, bf16=False, disable_tqdm=True,
        dataset_kwargs={"skip_prepare_dataset": True},
    )  # fmt: skip
    trainer = RareSFTTrainer(
        model,
        arguments,
        train_dataset=Dataset.from_list([{"input_ids": text.tolist()} for text in made_text(512)]),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", eos_token="w0"),
    )
    trainer.train()
    print(f"steps with the method: {patched.criterion.steps} of {trainer.state.global_step}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
