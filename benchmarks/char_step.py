"""Training step of the character model (stop_jostling's size), compared with a plain loop on the same model and batch.

    python benchmarks/char_step.py [--methods] [--manifest results/smoke/data/synthetic_characters/manifest.json]

It uses one core. The plain loop is a straightforward implementation: separate modules, `torch.optim.AdamW`,
cross-entropy over all logits. Repetitions are interleaved (plain, ours, plain, ours, ...), so that drift of the
machine's speed affects both. It reports CPU seconds, which other processes affect least. With a manifest it also
measures the fixed cost of a job beyond `import torch`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from raretok.training.schedule import build_schedule
from raretok.training.tasks import CharacterTask
from raretok.training.trainer import Trainer

TYPES, CONTEXT, BATCH, WIDTH, LAYERS, HEADS = 65, 64, 12, 128, 4, 4
# Methods of every kind, to measure what each adds to the baseline's step.
METHODS = {
    "baseline": {},
    "threshold": {"loss": {"name": "threshold", "margin": 1}},
    "threshold, separated (skip)": {
        "loss": {"name": "threshold", "margin": 1},
        "embedding_update": {"name": "separated", "reading": "skip"},
    },
    "softminus": {"loss": {"name": "softminus", "margin": 1}},
    "agg": {"gate": {"name": "agg", "alpha": 0.3, "memory": 1600}},
    "cosreg": {"penalty": {"name": "cosreg", "gamma": 1}},
    "adversarial": {"perturbation": {"name": "adversarial", "alpha": 0.05}},
    "contrastive": {"loss": {"name": "contrastive"}},
    "baseline, gradient norms observed": {"observe": ["gradient_norms"]},
}


def settings_of(method: dict) -> dict:
    """A run's settings at the paper's size."""
    return {
        "corpus": {"low_resource_probability": 0.02},
        "model": {
            "name": "decoder",
            "layers": LAYERS,
            "heads": HEADS,
            "width": WIDTH,
            "context": CONTEXT,
            "dropout": 0.0,
            "bias": False,
            "tied": True,
            "init_std": 0.02,
        },
        "training": {
            "steps": 8000,
            "batch_size": BATCH,
            "optimiser": {"name": "adamw", "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1},
            "schedule": {"name": "cosine", "peak": 1e-3, "final": 1e-4, "warmup": 100},
            "clip_norm": 1.0,
            "validation": {"every": 250, "batches": 20},
            "threads": 1,
        },
        "method": {"loss": {"name": "cross_entropy"}} | method,
        "seed": 1,
    }


class Ours:
    """The project's step, as in `raretok.training.loop.train` between two saves."""

    def __init__(self, text: np.ndarray, method: dict):
        settings = settings_of(method)
        counts = np.bincount(text, minlength=TYPES)
        corpus = SimpleNamespace(types=TYPES, counts=counts, tokens=lambda split, at_least=1: text)
        self.task = CharacterTask(corpus, settings, "cpu")
        self.trainer = Trainer(settings, self.task.facts())
        self.schedule = build_schedule(settings["training"]["schedule"], settings["training"]["steps"])
        self.number = 0

    def step(self) -> float:
        result = self.trainer.backward(self.task.micro_batches(self.number))
        loss, _ = result.loss.item(), result.norm.item()
        self.trainer.step(self.schedule(self.number))
        self.number += 1
        return loss


class PlainNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class PlainAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, WIDTH))


class PlainBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = PlainNorm(), PlainAttention(), PlainNorm()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.gelu = nn.GELU()
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class PlainModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(2 * TYPES, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(PlainBlock() for _ in range(LAYERS))
        self.norm = PlainNorm()
        self.head = nn.Linear(WIDTH, 2 * TYPES, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


class Plain:
    """A straightforward training loop."""

    def __init__(self, text: np.ndarray):
        torch.manual_seed(1)
        self.text = torch.from_numpy(text.astype(np.int64))
        self.model = PlainModel()
        parameters = list(self.model.parameters())
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
                {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
            ],
            lr=1e-3,
            betas=(0.9, 0.99),
        )

    def step(self) -> float:
        starts = torch.randint(len(self.text) - CONTEXT, (BATCH,))
        shifts = (torch.rand(BATCH) < 0.02).long() * TYPES
        inputs = torch.stack([self.text[i : i + CONTEXT] for i in starts]) + shifts[:, None]
        targets = torch.stack([self.text[i + 1 : i + 1 + CONTEXT] for i in starts]) + shifts[:, None]
        loss = self.model(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return loss.item()


def steps_per_second(contender, steps: int) -> float:
    started = time.process_time()
    for _ in range(steps):
        contender.step()
    return steps / (time.process_time() - started)


def compare(methods: dict, repetitions: int, steps: int) -> None:
    """Print steps per second: median, minimum and maximum over repetitions, and the ratio to the plain loop."""
    text = np.random.default_rng(1).integers(0, TYPES, 100_000).astype(np.uint8)
    contenders = {"plain loop": Plain(text)} | {name: Ours(text, method) for name, method in methods.items()}
    speeds = {name: [] for name in contenders}
    for contender in contenders.values():
        steps_per_second(contender, 5)
    for _ in range(repetitions):
        for name, contender in contenders.items():
            speeds[name].append(steps_per_second(contender, steps))
    print(f"{'steps a CPU second, one core':36}{'median':>9}{'least':>9}{'most':>9}{'of plain':>10}")
    for name, values in speeds.items():
        # The median of ratios within a repetition, because both sides then ran within the same seconds.
        pairs = zip(values, speeds["plain loop"], strict=True)
        ratio = statistics.median(value / plain for value, plain in pairs)
        print(f"{name:36}{statistics.median(values):9.1f}{min(values):9.1f}{max(values):9.1f}{ratio:10.2f}")


def children(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident memory (MiB) of a command that must succeed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command[:5])} ... ended with status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def job_costs(manifest: Path, repetitions: int) -> None:
    """Print the cost of `raretok train` besides its steps: a run of one step compared with `import torch`."""
    settings = settings_of({})
    settings["training"] |= {"steps": 1, "validation": {"every": 1, "batches": 1}}
    settings["training"]["schedule"]["warmup"] = 0
    run = {
        "paper": "",
        "experiment": "char_step",
        "method": "baseline",
        "seed": 1,
        "label": "",
        "hash": "0" * 16,
    }
    run["settings"] = settings
    commands = {"import torch": lambda folder: [sys.executable, "-c", "import torch"]}
    commands["train, one step"] = lambda folder: [
        *(sys.executable, "-m", "raretok", "train", "--run", json.dumps(run), "--manifest", str(manifest)),
        *("--output", f"{folder}/output", "--state", f"{folder}/state", "--device", "cpu"),
    ]
    measured = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                measured[name].append(children(command(folder)))
    print(f"\n{'a job':36}{'CPU s':>9}{'MiB':>9}")
    for name, values in measured.items():
        seconds, memory = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"{name:36}{seconds:9.2f}{memory:9.0f}")
    medians = [statistics.median(value[0] for value in values) for values in measured.values()]
    print(f"{'fixed cost beyond import torch':36}{medians[1] - medians[0]:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=15, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=50, help="steps a repetition (default: %(default)s)")
    parser.add_argument("--methods", action="store_true", help="measure every kind of method, not the baseline alone")
    parser.add_argument("--manifest", type=Path, help="a prepared character corpus: measure whole jobs too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    methods = METHODS if arguments.methods else {"baseline": METHODS["baseline"]}
    compare(methods, arguments.repetitions, arguments.steps)
    if arguments.manifest:
        job_costs(arguments.manifest, min(arguments.repetitions, 5))


if __name__ == "__main__":
    main()
