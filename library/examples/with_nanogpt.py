"""Thresholding and AGG in a loop and a model like nanoGPT's; a training that is stopped and resumed ends the same.

python examples/with_nanogpt.py
"""

import tempfile
from pathlib import Path

import torch
from made_text import TYPES, made_text
from torch import nn
from torch.nn import functional as F

import raretok

WIDTH, LENGTH = 64, 32


class Block(nn.Module):
    """Self-attention and a feed-forward layer."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).unflatten(-1, (3, 2, WIDTH // 2)).permute(2, 0, 3, 1, 4)
        x = x + self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """A small model with the names of nanoGPT's."""

    def __init__(self, config=None):
        super().__init__()
        parts = {"wte": nn.Embedding(TYPES, WIDTH), "wpe": nn.Embedding(LENGTH, WIDTH), "drop": nn.Dropout(0.0)}
        parts |= {"h": nn.ModuleList([Block(), Block()]), "ln_f": nn.LayerNorm(WIDTH)}
        self.transformer = nn.ModuleDict(parts)
        nn.init.normal_(self.transformer.wte.weight, std=0.02)
        self.lm_head = nn.Linear(WIDTH, TYPES, bias=False)
        self.lm_head.weight = self.transformer.wte.weight


# [nanogpt]
class RareGPT(GPT):
    def __init__(self, config):
        super().__init__(config)
        self.criterion = raretok.OutputLoss(raretok.Threshold(margin=1.0), ignore_index=-1)

    def forward(self, idx, targets=None):
        if targets is None:
            return super().forward(idx)
        parts, places = self.transformer, torch.arange(idx.shape[1], device=idx.device)
        x = parts.drop(parts.wte(idx) + parts.wpe(places))
        for block in parts.h:
            x = block(x)
        return None, self.criterion(parts.ln_f(x), self.lm_head.weight, targets)


# [end]
class GatedGPT(RareGPT):
    """With a gate, whose counts are part of the model's state dict."""

    def __init__(self, config, counts):
        super().__init__(config)
        alpha = raretok.agg_alpha(counts, targets_per_step=2 * 16 * (LENGTH - 1))
        gate = raretok.AGG(alpha, memory=20)
        self.criterion = raretok.OutputLoss(raretok.Threshold(margin=4.0), gate=gate, counts=counts, ignore_index=-1)


def train(file: Path, last: int):
    """Train up to step `last`, from the file if it exists, and save to it."""
    torch.manual_seed(0)
    texts = made_text(1024)
    model = GatedGPT(None, raretok.count_targets(texts[:, 1:], TYPES))
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = 0
    if file.exists():
        saved = torch.load(file, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        start = saved["step"]
    for step in range(start, last):
        chosen = torch.randint(len(texts), (2, 16), generator=torch.Generator().manual_seed(step))
        micro_batches = [texts[rows] for rows in chosen]
        model.criterion.begin_step([ids[:, 1:] for ids in micro_batches])
        for ids in micro_batches:
            model(ids[:, :-1], ids[:, 1:])[1].backward()
        optimiser.step()
        optimiser.zero_grad()
    torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": last}, file)
    print(f"step {last}: {model.criterion.nll.item():.3f} nats per token")
    return [parameter.detach() for parameter in model.parameters()]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        whole = train(Path(folder, "whole.pt"), 60)
        train(Path(folder, "stopped.pt"), 35)
        resumed = train(Path(folder, "stopped.pt"), 60)
    same = all(torch.equal(ours, theirs) for ours, theirs in zip(whole, resumed, strict=True))
    print(f"resumed equals unbroken: {same}")
