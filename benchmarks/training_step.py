"""Training step of each kind of model, compared with a plain loop on the same model and optimiser.

    python benchmarks/training_step.py [characters language translation] [--threads 1 2] [--methods]
    python benchmarks/training_step.py --device cuda [empirical gpt2-medium translation-base] [--no-compile]

The plain loops are straightforward implementations (plain_loops.py): separate modules, cross-entropy over all logits,
`torch.optim.AdamW` (fused on a GPU). On a GPU they use bf16 autocast and, for decoders, torch.compile of the whole
model. Translation models train on the same batches on both sides. Repetitions are interleaved (plain, ours, plain,
ours, ...), so that drift of the machine's speed affects both. On a CPU with bfloat16 arithmetic, language and
translation models train in both precisions.

It reports target tokens per second, without padding, and on a GPU peak memory. On one CPU core the seconds are CPU
seconds, which other processes affect least, elsewhere wall time.
"""

import argparse
import math
import statistics
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from gpu_stages.tables import table
from plain_loops import Plain

from rarepapers.core.config_files import merge
from rarepapers.core.special_types import END, SPECIAL
from rarepapers.machine.device import has_bfloat16, keep_freed_memory
from rarepapers.training.loop import build

CHARACTERS, TOKENS, PAIRS = 100_000, 2_000_000, 20_000


@dataclass(frozen=True)
class Preset:
    """A run of the run table, the size of its vocabulary, and what is changed in its settings.

    words: mean length of a sentence of a translation.
    """

    paper: str
    scale: str
    experiment: str
    method: str
    vocabulary: int
    changes: dict = field(default_factory=dict)
    words: int = 0


WHOLE = {"training": {"batch_size": 32, "accumulation": 1}}
SMALL_TRANSLATION = {
    "model": {"width": 256, "inner": 1024, "context": 256, "embedding_std": 0.0625, "dropout": 0.1},
    "training": {"batch_tokens": 2048, "clip_norm": None},
}
BASE_TRANSLATION = {"model": {"norm": "pre"}, "training": {"accumulation": 1}}
PRESETS = {
    "characters": Preset("stop_jostling", "paper", "shakespeare", "baseline", 65),
    "language": Preset("agg", "small", "language_model", "mle", 8000),
    "translation": Preset("agg", "small", "translation_base", "transformer", 8000, SMALL_TRANSLATION, 14),
    "empirical": Preset("agg", "paper", "empirical", "mle", 44_256, WHOLE),
    "gpt2-medium": Preset("agg", "paper", "language_model", "mle", 44_256, WHOLE),
    "translation-base": Preset("agg", "paper", "translation_base", "transformer", 37_000, BASE_TRANSLATION, 28),
}
ON_CPU, ON_GPU = list(PRESETS)[:3], list(PRESETS)[3:]

# By kind of corpus: further methods, each as a change of the method's parts.
AGPS = {"gate": {"name": "agps", "rare_from": 5000, "mu_1": 500.0, "mu_2": 20.0}}
COSREG = {"penalty": {"name": "cosreg", "gamma": 1.0}}
METHODS = {
    "characters": {
        "threshold": {"loss": {"name": "threshold", "margin": 1}},
        "threshold, separated (skip)": {
            "loss": {"name": "threshold", "margin": 1},
            "embedding_update": {"name": "separated", "reading": "skip"},
        },
        "softminus": {"loss": {"name": "softminus", "margin": 1}},
        "agg": {"gate": {"name": "agg", "alpha": 0.3, "memory": 1600}},
        "cosreg": COSREG,
        "adversarial": {"perturbation": {"name": "adversarial", "alpha": 0.05}},
        "contrastive": {"loss": {"name": "contrastive"}},
        "baseline, gradient norms observed": {"observe": ["gradient_norms"]},
    },
    "language": {
        "freeze (b)": {"gate": {"name": "freeze", "part": "b"}},
        "agg": {"gate": {"name": "agg", "alpha": 0.03}},
        "agps": AGPS,
        "unlikelihood": {"penalty": {"name": "unlikelihood", "alpha": 1.0}},
        "cosreg": COSREG,
    },
    "translation": {
        "agg": {"gate": {"name": "agg", "alpha": 0.08}},
        "agps": AGPS,
        "cosreg": COSREG,
        "unigram": {"penalty": {"name": "unigram", "strength": 0.1}},
    },
}


def made_corpus(kind: str, preset: Preset, context: int) -> SimpleNamespace:
    """A corpus of random types: frequencies are like those of a text, and sentences vary in length as real ones do."""
    generator, special = np.random.default_rng(1), 0 if kind == "characters" else len(SPECIAL)
    ranks = np.arange(preset.vocabulary - special)
    weights = np.exp(-ranks / 8) if kind == "characters" else 1 / (ranks + 1)

    def draw(number: int) -> np.ndarray:
        ids = generator.choice(len(weights), number, p=weights / weights.sum()) + special
        return ids.astype(np.min_scalar_type(preset.vocabulary))

    sides = {}
    if kind == "translation":
        lengths = generator.poisson(preset.words * generator.gamma(10, 0.1, PAIRS)).clip(3, context - 8)
        for side in ("source", "target"):
            own = (lengths + generator.integers(-2, 4, PAIRS)).clip(2, context - 1)
            sides[side] = draw(own.sum() + PAIRS)
            sides[side][(own + 1).cumsum() - 1] = END
    else:
        sides["target"] = sides["source"] = draw(CHARACTERS if kind == "characters" else TOKENS)
    counts = {side: np.bincount(ids, minlength=preset.vocabulary) for side, ids in sides.items()}
    return SimpleNamespace(
        name="made",
        kind=kind,
        folder=Path(),
        types=preset.vocabulary,
        special=tuple(range(special)),
        sha256="",
        counts=counts["target"],
        source_counts=counts["source"],
        splits=dict.fromkeys(("train", "valid"), len(sides["target"])),
        ids=lambda split, side: sides[side],
        tokens=lambda split, at_least=1: sides["target"],
    )


class Ours:
    """The training of a run as `rarepapers train` does it, without validation and files."""

    def __init__(self, settings: dict, corpus, device: str, compiled: bool):
        self.task, self.trainer, self.schedule = build(settings, corpus, device, compiled)
        precision = settings["training"].get("precision", "float32")
        assert self.trainer.precision == precision, "this CPU has no bfloat16"

    def step(self, number: int) -> None:
        result = self.trainer.backward(self.task.micro_batches(number))
        if self.trainer.device == "cpu":
            # The loop reads them, too.
            assert all(map(math.isfinite, (result.loss.item(), result.norm.item())))
        self.trainer.step(self.schedule(number))


def seconds(contender, device: str, numbers: range) -> float:
    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    for number in numbers:
        contender.step(number)
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - started


def compare(name: str, arguments: argparse.Namespace) -> None:
    """Print one preset's table: a row for the plain loop and for ours with each method and precision."""
    preset, device, compiled = PRESETS[name], arguments.device, not arguments.no_compile
    run = table(preset.scale, papers=[preset.paper]).run(preset.experiment, preset.method, 1)
    settings = merge(run.settings, preset.changes)
    settings["training"].pop("rare", None)  # METHODS are for made corpora as they stand
    corpus = made_corpus(run.kind, preset, settings["model"]["context"])
    precisions = ["bfloat16"] if device == "cuda" else ["float32"]
    if device == "cpu" and has_bfloat16("cpu") and run.kind != "characters":
        precisions.append("bfloat16")
    methods = {preset.method: {}} | (METHODS[run.kind] if arguments.methods else {})

    def ours(method: dict, precision: str) -> Ours:
        changes = {"method": method, "training": {"precision": precision}}
        return Ours(merge(settings, changes), corpus, device, compiled)

    task = ours({}, precisions[0]).task
    makers = {"plain loop": lambda: Plain(settings, task, corpus, device, compiled)} | {
        f"{method}, {precision}": lambda parts=parts, precision=precision: ours(parts, precision)
        for method, parts in methods.items()
        for precision in precisions
    }
    contenders, speeds, memory = {}, {}, {}
    for contender, make in makers.items():
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() if device == "cuda" else 0
        contenders[contender], speeds[contender] = make(), []
        seconds(contenders[contender], device, range(5 if device == "cuda" else 2))
        memory[contender] = (torch.cuda.max_memory_allocated() - before) / 2**30 if device == "cuda" else 0
    for repetition in range(arguments.repetitions):
        numbers = range(10 + repetition * arguments.steps, 10 + (repetition + 1) * arguments.steps)
        tokens = sum(task.target_tokens(number) for number in numbers)
        for contender, trained in contenders.items():
            speeds[contender].append(tokens / seconds(trained, device, numbers))
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} thread(s)"
    print(f"\n{name}, {where}\n{'target tokens/s':44}{'median':>11}{'least':>11}{'most':>11}{'of plain':>10}{'GiB':>8}")
    for contender, values in speeds.items():
        ratio = statistics.median(ours / plain for ours, plain in zip(values, speeds["plain loop"], strict=True))
        line = f"{contender:44}{statistics.median(values):11,.0f}{min(values):11,.0f}{max(values):11,.0f}{ratio:10.2f}"
        print(line + (f"{memory[contender]:8.1f}" if device == "cuda" else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="*", metavar="PRESET", help=f"of {', '.join(PRESETS)} (default: as above)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(default: %(default)s)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of a CPU (default: 1 2)")
    parser.add_argument("--repetitions", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="steps a repetition (default: %(default)s)")
    parser.add_argument("--methods", action="store_true", help="measure every kind of method, not the baseline alone")
    parser.add_argument("--no-compile", action="store_true", help="neither side uses torch.compile on a GPU")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    if arguments.device == "cpu":
        keep_freed_memory()
    for threads in arguments.threads if arguments.device == "cpu" else [1]:
        torch.set_num_threads(threads)
        for name in arguments.presets or (ON_CPU if arguments.device == "cpu" else ON_GPU):
            compare(name, arguments)


if __name__ == "__main__":
    main()
