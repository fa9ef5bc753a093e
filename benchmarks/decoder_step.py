"""Training step of a language model, compared with a plain nanoGPT-style loop on the same model, batch and optimiser.

    python benchmarks/decoder_step.py [--threads 1 2] [--methods]
    python benchmarks/decoder_step.py --device cuda [--presets empirical gpt2-medium] [--no-compile]

The plain loop is a straightforward implementation: separate modules, cross-entropy over all logits, `torch.optim.AdamW`
(fused on a GPU), and on a GPU torch.compile of the whole model with bf16 autocast. Repetitions are interleaved (plain,
ours, plain, ours, ...), so that drift of the machine's speed affects both. On a CPU with bfloat16 arithmetic, ours
trains in both precisions. It reports wall time and, on a GPU, peak memory.
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from raretok.machine.device import has_bfloat16, keep_freed_memory
from raretok.training.schedule import build_schedule
from raretok.training.tasks import LanguageTask
from raretok.training.trainer import Trainer


@dataclass(frozen=True)
class Preset:
    """A model and a step: `batch` sequences of `context` tokens."""

    layers: int
    heads: int
    width: int
    vocabulary: int
    context: int
    batch: int


PRESETS = {
    "small": Preset(4, 4, 128, 8000, 128, 16),
    "empirical": Preset(6, 8, 512, 44_256, 1024, 32),
    "gpt2-medium": Preset(24, 16, 1024, 44_256, 1024, 32),
}
METHODS = {
    "mle": {},
    "freeze (b)": {"gate": {"name": "freeze", "part": "b"}},
    "agg": {"gate": {"name": "agg", "alpha": 0.03}},
    "agps": {"gate": {"name": "agps", "rare_from": 5000, "mu_1": 500.0, "mu_2": 20.0}},
    "unlikelihood": {"penalty": {"name": "unlikelihood", "alpha": 1.0}},
    "cosreg": {"penalty": {"name": "cosreg", "gamma": 1.0}},
}
TRAIN_TOKENS = 2_000_000


def settings_of(preset: Preset, method: dict, precision: str) -> dict:
    """A run's settings at a preset's size, as in the paper."""
    return {
        "model": {
            "name": "decoder",
            "layers": preset.layers,
            "heads": preset.heads,
            "width": preset.width,
            "context": preset.context,
            "dropout": 0.1,
            "attention_dropout": 0.0,
            "bias": True,
            "tied": True,
            "positions": "sinusoidal",
            "scale_embedding": True,
            "linear_init": "xavier",
            "init_std": preset.width**-0.5,
        },
        "training": {
            "steps": 40_000,
            "batch_size": preset.batch,
            "optimiser": {"name": "adamw", "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.01},
            "schedule": {"name": "inverse_sqrt", "peak": 7e-4, "warmup": 4000, "start": 1e-7},
            "clip_norm": None,
            "validation": {"every": 1000, "tokens": None},
            "precision": precision,
            "threads": 1,
        },
        "method": {"loss": {"name": "cross_entropy"}} | method,
        "seed": 1,
    }


class Ours:
    """The project's step, as in `raretok.training.loop.train` between two saves."""

    def __init__(self, preset: Preset, text: np.ndarray, method: dict, precision: str, device: str, compiled: bool):
        settings = settings_of(preset, method, precision)
        corpus = SimpleNamespace(
            types=preset.vocabulary,
            special=(0, 1, 2, 3),
            counts=np.bincount(text, minlength=preset.vocabulary),
            tokens=lambda split, at_least=1: text,
        )
        self.task = LanguageTask(corpus, settings, device)
        self.trainer = Trainer(settings, self.task.facts(), compiled)
        assert self.trainer.precision == precision, "this CPU has no bfloat16"
        self.schedule = build_schedule(settings["training"]["schedule"], settings["training"]["steps"])
        self.number = 0
        self.reads = device == "cpu"

    def step(self) -> None:
        result = self.trainer.backward(self.task.micro_batches(self.number))
        if self.reads:
            result.loss.item(), result.norm.item()
        self.trainer.step(self.schedule(self.number))
        self.number += 1


class PlainAttention(nn.Module):
    def __init__(self, preset: Preset):
        super().__init__()
        self.heads = preset.heads
        self.qkv = nn.Linear(preset.width, 3 * preset.width)
        self.out = nn.Linear(preset.width, preset.width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(d, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.dropout(self.out(y.transpose(1, 2).contiguous().view(b, t, d)), 0.1)


class PlainBlock(nn.Module):
    def __init__(self, preset: Preset):
        super().__init__()
        d = preset.width
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(d), PlainAttention(preset), nn.LayerNorm(d)
        self.up, self.gelu, self.down = nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + F.dropout(self.down(self.gelu(self.up(self.norm2(x)))), 0.1)


class PlainModel(nn.Module):
    def __init__(self, preset: Preset):
        super().__init__()
        self.scale = preset.width**0.5
        self.tokens = nn.Embedding(preset.vocabulary, preset.width)
        self.register_buffer("positions", torch.randn(preset.context, preset.width))
        self.blocks = nn.ModuleList(PlainBlock(preset) for _ in range(preset.layers))
        self.norm = nn.LayerNorm(preset.width)
        self.head = nn.Linear(preset.width, preset.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=preset.width**-0.5)

    def forward(self, ids, targets):
        x = F.dropout(self.tokens(ids) * self.scale + self.positions, 0.1)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


class Plain:
    """A straightforward training loop."""

    def __init__(self, preset: Preset, text: np.ndarray, device: str, compiled: bool):
        torch.manual_seed(1)
        self.preset, self.device, self.reads = preset, device, device == "cpu"
        self.text = text
        model = PlainModel(preset).to(device)
        self.model = torch.compile(model) if compiled and device == "cuda" else model
        parameters = list(model.parameters())
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
                {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
            ],
            lr=7e-4,
            betas=(0.9, 0.98),
            fused=device == "cuda",
        )

    def step(self) -> None:
        context = self.preset.context
        starts = torch.randint(len(self.text) - context, (self.preset.batch,))
        inputs = torch.stack([torch.from_numpy(self.text[i : i + context].astype(np.int64)) for i in starts])
        targets = torch.stack([torch.from_numpy(self.text[i + 1 : i + 1 + context].astype(np.int64)) for i in starts])
        if self.device == "cuda":
            inputs, targets = (part.pin_memory().to(self.device, non_blocking=True) for part in (inputs, targets))
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.model(inputs, targets)
        loss.backward()
        if self.reads:
            loss.item()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)


def tokens_per_second(contender, preset: Preset, device: str, steps: int) -> float:
    started = time.perf_counter()
    for _ in range(steps):
        contender.step()
    if device == "cuda":
        torch.cuda.synchronize()
    return steps * preset.batch * preset.context / (time.perf_counter() - started)


def compare(
    name: str, methods: dict, precisions: list[str], device: str, compiled: bool, repetitions: int, steps: int
) -> None:
    """Print tokens per second: median, minimum and maximum over repetitions, and the ratio to the plain loop."""
    preset = PRESETS[name]
    generator = np.random.default_rng(1)
    # Zipfian ids, so that a gate has rare types.
    weights = 1 / np.arange(1, preset.vocabulary + 1)
    text = generator.choice(preset.vocabulary, TRAIN_TOKENS, p=weights / weights.sum()).astype(np.uint16)
    makers = {"plain loop": lambda: Plain(preset, text, device, compiled)} | {
        f"{method}, {precision}": lambda parts=parts, precision=precision: Ours(
            preset, text, parts, precision, device, compiled
        )
        for method, parts in methods.items()
        for precision in precisions
    }
    contenders, speeds, memory = {}, {}, {}
    for contender, make in makers.items():
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if device == "cuda" else 0
        contenders[contender], speeds[contender] = make(), []
        tokens_per_second(contenders[contender], preset, device, 5 if device == "cuda" else 2)
        memory[contender] = (torch.cuda.max_memory_allocated() - before) / 2**30 if device == "cuda" else 0
    for _ in range(repetitions):
        for contender, object_ in contenders.items():
            speeds[contender].append(tokens_per_second(object_, preset, device, steps))
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} thread(s)"
    print(f"\n{name}, {where}\n{'tokens a second':30}{'median':>11}{'least':>11}{'most':>11}{'of plain':>10}{'GiB':>8}")
    for contender, values in speeds.items():
        # The median of ratios within a repetition, because both sides then ran within the same seconds.
        ratio = statistics.median(ours / plain for ours, plain in zip(values, speeds["plain loop"], strict=True))
        line = f"{contender:30}{statistics.median(values):11,.0f}{min(values):11,.0f}{max(values):11,.0f}{ratio:10.2f}"
        print(line + (f"{memory[contender]:8.1f}" if device == "cuda" else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(default: %(default)s)")
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), help="(default: small, on a GPU the others)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of a CPU (default: 1 2)")
    parser.add_argument("--repetitions", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="steps a repetition (default: %(default)s)")
    parser.add_argument("--methods", action="store_true", help="measure every kind of method, not MLE alone")
    parser.add_argument("--no-compile", action="store_true", help="neither side uses torch.compile on a GPU")
    arguments = parser.parse_args()
    presets = arguments.presets or (["small"] if arguments.device == "cpu" else ["empirical", "gpt2-medium"])
    methods = METHODS if arguments.methods else {"mle": METHODS["mle"]}
    precisions = ["bfloat16"]
    if arguments.device == "cpu":
        keep_freed_memory()
        precisions = ["float32", "bfloat16"] if has_bfloat16("cpu") else ["float32"]
    for threads in arguments.threads if arguments.device == "cpu" else [1]:
        torch.set_num_threads(threads)
        for name in presets:
            compiled = not arguments.no_compile
            compare(name, methods, precisions, arguments.device, compiled, arguments.repetitions, arguments.steps)


if __name__ == "__main__":
    main()
