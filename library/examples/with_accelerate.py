"""AGG with accelerate, in one process, or in several with weights sharded by FSDP2; also stopped and resumed.

python examples/with_accelerate.py
torchrun --nproc_per_node 2 examples/with_accelerate.py
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from made_text import TYPES, made_text
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

import raretok


def train(accelerator: Accelerator, folder: Path, last: int):
    """Train up to step `last`, from the folder if it exists, and save to it."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=TYPES, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    model, texts = LlamaForCausalLM(config).train(), made_text(512)
    counts = raretok.count_targets(texts[:, 1:], TYPES)
    alpha = raretok.agg_alpha(counts, targets_per_step=2 * 16 * 31)
    rank, size = accelerator.process_index, accelerator.num_processes
    # [accelerate]
    gate = raretok.AGG(alpha, memory=20)
    patched = raretok.patch(model, gate=gate, counts=counts, processes="all")  # gradients are averaged
    if size > 1:
        for layer in model.model.layers:
            fully_shard(layer)
        fully_shard(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    # [end]
    start, own = 0, folder / f"criterion-{rank}.pt"
    if own.exists():
        states = dict(zip(("model", "optimiser"), get_state_dict(model, optimiser), strict=True))
        dcp.load(states, checkpoint_id=folder / "weights", no_dist=size == 1)
        parts = {"model_state_dict": states["model"], "optim_state_dict": states["optimiser"]}
        set_state_dict(model, optimiser, **parts)
        saved = torch.load(own, weights_only=True)
        patched.criterion.load_state_dict(saved["criterion"])
        start = saved["step"]
    for step in range(start, last):
        chosen = torch.randint(len(texts), (2, 16), generator=torch.Generator().manual_seed(step))
        micro_batches = [texts[rows][rank::size].to(accelerator.device) for rows in chosen]
        patched.begin_step(micro_batches)
        for ids in micro_batches:
            accelerator.backward(model(ids, labels=ids).loss)
        optimiser.step()
        optimiser.zero_grad()
    states = dict(zip(("model", "optimiser"), get_state_dict(model, optimiser), strict=True))
    dcp.save(states, checkpoint_id=folder / "weights", no_dist=size == 1)
    torch.save({"criterion": patched.criterion.state_dict(), "step": last}, own)
    accelerator.print(f"step {last}: {int(patched.criterion.rare().sum())} rare types")
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in model.parameters()]


if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    with tempfile.TemporaryDirectory() as folder:
        (shared,) = broadcast_object_list([folder])
        whole = train(accelerator, Path(shared, "whole"), 40)
        train(accelerator, Path(shared, "stopped"), 25)
        resumed = train(accelerator, Path(shared, "stopped"), 40)
        accelerator.wait_for_everyone()
    same = all(torch.equal(ours, theirs) for ours, theirs in zip(whole, resumed, strict=True))
    accelerator.print(f"resumed equals unbroken: {same}")
    accelerator.end_training()
