"""Training step of a translation model, compared with a plain loop around torch.nn.Transformer on the same batches.

    python benchmarks/translation_step.py [--threads 1 2] [--presets small] [--methods]
    python benchmarks/translation_step.py --device cuda [--presets base]

The plain loop is a straightforward implementation: `torch.nn.Transformer` with causal and padding masks, tied
embeddings, label-smoothed cross-entropy over all logits with padding ignored, `torch.optim.AdamW` (fused on a GPU, with
bf16 autocast). Both sides have the same size and optimiser, train on the same batches, and have dropout at the same
places: embeddings and residual branches, neither attention weights nor inside the feed-forward part. Repetitions are
interleaved (plain, ours, plain, ours, ...), so that drift of the machine's speed affects both. On a CPU with bfloat16
arithmetic, ours trains in both precisions. It reports target tokens per second without padding, by wall time, and on a
GPU peak memory.
"""

import argparse
import statistics
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from raretok.data.special_types import END, PAD, SPECIAL
from raretok.machine.device import has_bfloat16, keep_freed_memory
from raretok.training.schedule import build_schedule
from raretok.training.trainer import Trainer
from raretok.training.translation_task import TranslationTask


@dataclass(frozen=True)
class Preset:
    """A model, and batches by target tokens of sentences with mean length `words`."""

    layers: int
    heads: int
    width: int
    vocabulary: int
    batch_tokens: int
    words: float


PRESETS = {
    "small": Preset(3, 4, 256, 8000, 2048, 14),
    "base": Preset(6, 8, 512, 37_000, 8192, 28),
}
METHODS = {
    "mle": {},
    "agg": {"gate": {"name": "agg", "alpha": 0.08}},
    "agps": {"gate": {"name": "agps", "rare_from": 5000, "mu_1": 500.0, "mu_2": 20.0}},
    "cosreg": {"penalty": {"name": "cosreg", "gamma": 1.0}},
    "unigram": {"penalty": {"name": "unigram", "strength": 0.1}},
}
CONTEXT, PAIRS = 256, 20_000


def settings_of(preset: Preset, method: dict, precision: str) -> dict:
    """A run's settings at a preset's size."""
    return {
        "model": {
            "name": "encoder_decoder",
            "encoder_layers": preset.layers,
            "decoder_layers": preset.layers,
            "heads": preset.heads,
            "width": preset.width,
            "context": CONTEXT,
            "dropout": 0.1,
            "attention_dropout": 0.0,
            "activation": "relu",
            "norm": "pre",
            "bias": True,
            "tying": "three_way",
            "positions": "sinusoidal",
            "scale_embedding": True,
        },
        "training": {
            "steps": 40_000,
            "batch_tokens": preset.batch_tokens,
            "optimiser": {"name": "adamw", "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.01},
            "schedule": {"name": "inverse_sqrt", "peak": 7e-4, "warmup": 4000, "start": 1e-7},
            "clip_norm": None,
            "validation": {"every": 1000},
            "precision": precision,
            "threads": 1,
        },
        "method": {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}} | method,
        "seed": 1,
    }


def made_corpus(preset: Preset) -> SimpleNamespace:
    """Pairs of Zipfian ids in the form of `load_manifest`, with realistic lengths."""
    generator = np.random.default_rng(1)
    types = preset.vocabulary - len(SPECIAL)
    weights = 1 / np.arange(1, types + 1)
    # A Poisson-gamma mixture, with a spread like Multi30k's.
    lengths = generator.poisson(preset.words * generator.gamma(10, 0.1, PAIRS)).clip(3, CONTEXT - 8)
    sides = {}
    for side in ("source", "target"):
        own = (lengths + generator.integers(-2, 4, PAIRS)).clip(2, CONTEXT - 1)
        ids = generator.choice(types, own.sum() + PAIRS, p=weights / weights.sum()) + len(SPECIAL)
        ids[(own + 1).cumsum() - 1] = END
        sides[side] = ids.astype(np.uint16)
    return SimpleNamespace(
        name="made",
        kind="translation",
        folder=Path(),
        types=preset.vocabulary,
        special=tuple(range(len(SPECIAL))),
        counts=np.bincount(sides["target"], minlength=preset.vocabulary),
        source_counts=np.bincount(sides["source"], minlength=preset.vocabulary),
        splits={"train": len(sides["target"]), "valid": len(sides["target"])},
        ids=lambda split, side: sides[side],
    )


class Ours:
    """The project's step, as in `raretok.training.loop.train` between two saves."""

    def __init__(self, preset: Preset, corpus, method: dict, precision: str, device: str):
        settings = settings_of(preset, method, precision)
        self.task = TranslationTask(corpus, settings, device)
        self.trainer = Trainer(settings, self.task.facts(), compile_model=True)
        assert self.trainer.precision == precision, "this CPU has no bfloat16"
        self.schedule = build_schedule(settings["training"]["schedule"], settings["training"]["steps"])
        self.reads = device == "cpu"

    def step(self, number: int) -> None:
        result = self.trainer.backward(self.task.micro_batches(number))
        if self.reads:
            result.loss.item(), result.norm.item()
        self.trainer.step(self.schedule(number))


class PlainModel(nn.Module):
    """`nn.Transformer` between embeddings and a tied output layer; its loss is the mean over non-padding targets."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.scale = preset.width**0.5
        self.tokens = nn.Embedding(preset.vocabulary, preset.width)
        self.register_buffer("positions", torch.randn(CONTEXT, preset.width))
        self.transformer = nn.Transformer(
            d_model=preset.width,
            nhead=preset.heads,
            num_encoder_layers=preset.layers,
            num_decoder_layers=preset.layers,
            dim_feedforward=4 * preset.width,
            dropout=0.1,
            batch_first=True,
            norm_first=True,
        )
        # Dropout stays on in residual branches. It is off in attention weights and the feed-forward part, where ours
        # has none.
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0
        self.head = nn.Linear(preset.width, preset.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=preset.width**-0.5)

    def embedded(self, ids):
        return F.dropout(self.tokens(ids) * self.scale + self.positions[: ids.shape[1]], 0.1)

    def forward(self, source, inputs, targets):
        padding = source == PAD
        mask = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1], device=inputs.device)
        hidden = self.transformer(
            self.embedded(source),
            self.embedded(inputs),
            tgt_mask=mask,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        logits = self.head(hidden)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=0.1)


class Plain:
    """A straightforward training loop."""

    def __init__(self, preset: Preset, task: TranslationTask, device: str):
        torch.manual_seed(1)
        self.task, self.device, self.reads = task, device, device == "cpu"
        self.model = PlainModel(preset).to(device)
        parameters = list(self.model.parameters())
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
                {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
            ],
            lr=7e-4,
            betas=(0.9, 0.98),
            fused=device == "cuda",
        )

    def step(self, number: int) -> None:
        (((source, inputs), targets),) = self.task.micro_batches(number)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.model(source, inputs, targets)
        loss.backward()
        if self.reads:
            loss.item()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)


def tokens_per_second(contender, task: TranslationTask, device: str, numbers: range) -> float:
    """Target tokens per second of the steps `numbers`, without padding."""
    started = time.perf_counter()
    for number in numbers:
        contender.step(number)
    if device == "cuda":
        torch.cuda.synchronize()
    return sum(task.target_tokens(number) for number in numbers) / (time.perf_counter() - started)


def compare(name: str, methods: dict, precisions: list[str], device: str, repetitions: int, steps: int) -> None:
    """Print tokens per second: median, minimum and maximum over repetitions, and the ratio to the plain loop."""
    preset = PRESETS[name]
    corpus = made_corpus(preset)
    task = TranslationTask(corpus, settings_of(preset, {}, "float32"), device)
    makers = {"plain loop": lambda: Plain(preset, task, device)} | {
        f"{method}, {precision}": lambda parts=parts, precision=precision: Ours(
            preset, corpus, parts, precision, device
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
        tokens_per_second(contenders[contender], task, device, range(5 if device == "cuda" else 2))
        memory[contender] = (torch.cuda.max_memory_allocated() - before) / 2**30 if device == "cuda" else 0
    for repetition in range(repetitions):
        for contender, object_ in contenders.items():
            # Within a repetition, every contender trains on the same batches.
            numbers = range(10 + repetition * steps, 10 + (repetition + 1) * steps)
            speeds[contender].append(tokens_per_second(object_, task, device, numbers))
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} thread(s)"
    print(f"\n{name}, {where}\n{'target tokens/s':30}{'median':>11}{'least':>11}{'most':>11}{'of plain':>10}{'GiB':>8}")
    for contender, values in speeds.items():
        # The median of ratios within a repetition, because both sides then ran within the same seconds.
        ratio = statistics.median(ours / plain for ours, plain in zip(values, speeds["plain loop"], strict=True))
        line = f"{contender:30}{statistics.median(values):11,.0f}{min(values):11,.0f}{max(values):11,.0f}{ratio:10.2f}"
        print(line + (f"{memory[contender]:8.1f}" if device == "cuda" else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(default: %(default)s)")
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), help="(default: small, on a GPU base)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of a CPU (default: 1 2)")
    parser.add_argument("--repetitions", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="steps a repetition (default: %(default)s)")
    parser.add_argument("--methods", action="store_true", help="measure every kind of method, not MLE alone")
    arguments = parser.parse_args()
    # torch warns that its encoder does not skip padding with pre-norm.
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    methods = METHODS if arguments.methods else {"mle": METHODS["mle"]}
    precisions = ["bfloat16"]
    if arguments.device == "cpu":
        keep_freed_memory()
        precisions = ["float32", "bfloat16"] if has_bfloat16("cpu") else ["float32"]
    for threads in arguments.threads if arguments.device == "cpu" else [1]:
        torch.set_num_threads(threads)
        for name in arguments.presets or ["small" if arguments.device == "cpu" else "base"]:
            compare(name, methods, precisions, arguments.device, arguments.repetitions, arguments.steps)


if __name__ == "__main__":
    main()
