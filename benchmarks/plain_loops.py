"""Plain training loops that training_step.py compares with: what a user would write with PyTorch alone.

A decoder as nanoGPT has it on blocks at random places, and torch.nn.Transformer on batches of sentences. Their sizes,
optimiser and clipping are those of a run's settings. Dropout is at the same places as in ours: embeddings and residual
branches, neither attention weights nor inside the feed-forward part.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from rarepapers.core.special_types import PAD


class PlainAttention(nn.Module):
    def __init__(self, model: dict):
        super().__init__()
        self.heads = model["heads"]
        self.qkv = nn.Linear(model["width"], 3 * model["width"], bias=model["bias"])
        self.out = nn.Linear(model["width"], model["width"], bias=model["bias"])

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(d, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, d))


class PlainBlock(nn.Module):
    def __init__(self, model: dict):
        super().__init__()
        d, bias = model["width"], model["bias"]
        self.norm1, self.attention, self.norm2 = (
            nn.LayerNorm(d, bias=bias),
            PlainAttention(model),
            nn.LayerNorm(d, bias=bias),
        )
        self.up, self.gelu, self.down = nn.Linear(d, 4 * d, bias=bias), nn.GELU(), nn.Linear(4 * d, d, bias=bias)
        self.dropout = nn.Dropout(model["dropout"])

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.down(self.gelu(self.up(self.norm2(x)))))


class PlainModel(nn.Module):
    """Embeddings and a head tied to them, which both plain models have."""

    def __init__(self, model: dict, types: int):
        super().__init__()
        d = model["width"]
        self.scale = d**0.5 if model.get("scale_embedding") else 1.0
        self.tokens, self.dropout = nn.Embedding(types, d), nn.Dropout(model["dropout"])
        is_learned = model.get("positions", "learned") == "learned"
        self.positions = nn.Parameter(0.02 * torch.randn(model["context"], d), requires_grad=is_learned)
        self.head = nn.Linear(d, types, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=model.get("init_std", d**-0.5))

    def embedded(self, ids):
        return self.dropout(self.tokens(ids) * self.scale + self.positions[: ids.shape[1]])


class PlainDecoder(PlainModel):
    def __init__(self, model: dict, types: int):
        super().__init__(model, types)
        self.blocks = nn.ModuleList(PlainBlock(model) for _ in range(model["layers"]))
        self.norm = nn.LayerNorm(model["width"], bias=model["bias"])

    def forward(self, ids, targets):
        x = self.embedded(ids)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class PlainTransformer(PlainModel):
    def __init__(self, model: dict, types: int, label_smoothing: float):
        super().__init__(model, types)
        self.label_smoothing = label_smoothing
        self.transformer = nn.Transformer(
            d_model=model["width"],
            nhead=model["heads"],
            num_encoder_layers=model["encoder_layers"],
            num_decoder_layers=model["decoder_layers"],
            dim_feedforward=model.get("inner") or 4 * model["width"],
            dropout=model["dropout"],
            batch_first=True,
            norm_first=model["norm"] == "pre",
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0

    def forward(self, source, inputs, targets):
        padding = source == PAD
        hidden = self.transformer(
            self.embedded(source),
            self.embedded(inputs),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(inputs.shape[1], device=inputs.device),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        logits, smoothing = self.head(hidden).flatten(0, 1), self.label_smoothing
        return F.cross_entropy(logits, targets.flatten(), ignore_index=PAD, label_smoothing=smoothing)


class Plain:
    """The plain loop of a run's settings. A translation model takes the batches of `task`."""

    def __init__(self, settings: dict, task, corpus, device: str, compiled: bool):
        torch.manual_seed(1)
        self.settings, self.task, self.corpus, self.device = settings, task, corpus, device
        model, options = settings["model"], settings["training"]["optimiser"]
        if corpus.kind == "translation":
            smoothing = settings["method"].get("loss", {}).get("label_smoothing", 0.0)
            self.model = plain = PlainTransformer(model, corpus.types, smoothing).to(device)
        else:
            plain = PlainDecoder(model, len(task.counts())).to(device)
            self.model = torch.compile(plain) if compiled and device == "cuda" else plain
            self.text = torch.from_numpy(corpus.tokens("train").astype(np.int64))
        self.parameters = [parameter for parameter in plain.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in self.parameters if p.dim() > 1], "weight_decay": options["weight_decay"]},
                {"params": [p for p in self.parameters if p.dim() < 2], "weight_decay": 0.0},
            ],
            lr=settings["training"]["schedule"]["peak"],
            betas=tuple(options["betas"]),
            fused=device == "cuda",
        )

    def batch(self, number: int) -> list[torch.Tensor]:
        if self.corpus.kind == "translation":
            (((source, inputs), targets),) = self.task.micro_batches(number)
            return [source, inputs, targets]
        context, size = self.settings["model"]["context"], self.settings["training"]["batch_size"]
        starts = torch.randint(len(self.text) - context, (size,))
        low_resource = torch.rand(size) < self.settings["corpus"].get("low_resource_probability", 0.0)
        shifts = low_resource.long()[:, None] * self.corpus.types
        sides = [torch.stack([self.text[i + k : i + k + context] for i in starts]) + shifts for k in (0, 1)]
        return [side.pin_memory().to("cuda", non_blocking=True) for side in sides] if self.device == "cuda" else sides

    def step(self, number: int) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.model(*self.batch(number))
        loss.backward()
        if self.settings["training"]["clip_norm"] is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.settings["training"]["clip_norm"])
        if self.device == "cpu":
            loss.item()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
