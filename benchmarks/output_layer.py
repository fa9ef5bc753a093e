"""Time and peak memory of output layers, ours and others, alone and in a whole training step.

    OMP_NUM_THREADS=1 python benchmarks/output_layer.py [--repetitions 15]
    python benchmarks/output_layer.py --device cuda --presets empirical gpt2-medium

Rows: plain cross-entropy over all logits, and the same compiled; other libraries if they can be imported (torch's own
`linear_cross_entropy` in chunks (2.13), Liger Kernel's fused linear cross-entropy, Cut Cross Entropy without its filter
of small gradients, the last two on a GPU); AGG as printed, with three sets of logits; and ours. `head frozen`: the
matrix needs no gradient. `observed`: with log-probabilities and entropy of every position.

The whole step has the same decoder and fused AdamW for all rows. On a CPU, repetitions are interleaved (row after row,
again and again), so that drift of the machine's speed affects all; time is CPU seconds of one core, and peak memory is
measured in a separate process: the peak of resident memory beyond that before the row's second step. On a GPU, rows
follow one another, under bf16 autocast and with the decoder compiled; one that should be compiled and is not fails.
"""

import argparse
import functools
import gc
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from gpu_stages.timing import seconds, seconds_of
from torch.nn import functional as F

from rarepapers.experiments.methods import build_method
from rarepapers.models.building import build_model
from raretok.methods import TrainingFacts
from raretok.output.fused_gradient import fusion
from raretok.output.output_layer import output_loss
from raretok.output.target_places import Places
from raretok.output.transfers import ToHost, put


@dataclass(frozen=True)
class Preset:
    """A model and a step: `sequences` of `context` tokens. memory: AGG's K, the steps of an epoch."""

    layers: int
    heads: int
    width: int
    vocabulary: int
    context: int
    sequences: int
    memory: int

    @property
    def tokens(self) -> int:
        """Targets of a step."""
        return self.context * self.sequences


PRESETS = {
    "small": Preset(4, 4, 128, 8000, 128, 16, 1000),
    "empirical": Preset(6, 8, 512, 44_256, 1024, 32, 3150),
    "gpt2-medium": Preset(24, 16, 1024, 44_256, 1024, 32, 3150),
}
# From which AGG's alpha is derived.
RARE = {"alpha": 0.03, "share": 0.2}
# Our rows: the config of the method.
METHODS = {
    "ours, MLE": {},
    "ours, MLE, head frozen": {},
    "ours, MLE, observed": {},
    "ours, label smoothing": {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
    "ours, AGG": {"gate": {"name": "agg", "alpha": 0.03}},
    "ours, threshold": {"loss": {"name": "threshold", "margin": 8}},
    "ours, softminus": {"loss": {"name": "softminus", "margin": 8}},
    "ours, z-loss": {"penalty": {"name": "z_loss"}},
    "ours, UL": {"penalty": {"name": "unlikelihood"}},
    "ours, UL + AGG, gated": {
        "gate": {"name": "agg", "alpha": 0.03},
        "penalty": {"name": "unlikelihood", "gated": True},
    },
    "ours, UL + AGG": {"gate": {"name": "agg", "alpha": 0.03}, "penalty": {"name": "unlikelihood"}},
}
PLAIN, COMPILED, LIGER = "MLE, plain", "MLE, torch.compile", "MLE, Liger"
TORCH, CUT = "MLE, torch linear_cross_entropy", "MLE, Cut Cross Entropy (exact)"
FROZEN = ", head frozen"
OTHERS = [other + frozen for other in (TORCH, LIGER, CUT) for frozen in ("", FROZEN)]
PRINTED, PRINTED_COMPILED = "AGG as printed, plain", "AGG as printed, torch.compile"
# Number of batches, used in turn.
BATCHES = 4
# Steps of a repetition on a GPU; as many come before the first.
STEPS = 5


def plain_loss(hidden, weight, targets):
    """Cross-entropy over all logits at once."""
    return F.cross_entropy(F.linear(hidden, weight), targets)


def printed_loss(hidden, weight, targets, gates, rare):
    """Three sets of logits (agg, Eqs. 9 and 10), as the authors' code computes them: whole matrices, masks."""
    own = targets[:, None] == torch.arange(len(weight), device=targets.device)
    plain = F.linear(hidden.detach(), weight)
    held = plain.detach()
    loss = F.cross_entropy(F.linear(hidden, weight.detach()), targets, reduction="none")
    losses = []
    for gate in gates.to(plain.dtype):
        gate = torch.where(own, 1.0, gate)
        losses.append(F.cross_entropy(gate * plain + (1 - gate) * held, targets, reduction="none"))
    return (loss + torch.where(rare[targets], losses[1], losses[0])).mean()


def others_loss(name: str) -> Callable:
    """(hidden, weight, inputs, targets) -> loss of a library; Triton kernels do not support float32."""
    low = torch.bfloat16
    if name == TORCH:
        options = torch.nn.LinearCrossEntropyOptions()
        return lambda h, w, x, y: F.linear_cross_entropy(h.flatten(0, 1), w.to(h.dtype), y.flatten(), options=options)
    if name == LIGER:
        from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

        return lambda h, w, x, y: liger_fused_linear_cross_entropy(h.flatten(0, 1).to(low), w.to(low), y.flatten())
    from cut_cross_entropy import linear_cross_entropy

    # Without the filter, which drops small gradients.
    return lambda h, w, x, y: linear_cross_entropy(h.flatten(0, 1).to(low), w.to(low), y.flatten(), filter_eps=None)


def zipf(preset: Preset) -> tuple[np.ndarray, np.ndarray]:
    """Zipfian probabilities and training counts of types."""
    probability = 1 / (np.arange(preset.vocabulary) + 2.7)
    probability /= probability.sum()
    return probability, np.maximum(1, probability * preset.memory * preset.tokens).astype(np.int64)


@functools.lru_cache(maxsize=1)
def decoder(preset: Preset, device: str):
    """A model, its optimiser and its compiled form, shared by all rows, since compiling takes longer than measuring."""
    settings = {name: getattr(preset, name) for name in ("layers", "heads", "width", "context")}
    settings |= {"name": "decoder", "dropout": 0.0, "bias": True, "tied": True, "init_std": 0.02}
    model = build_model(settings, preset.vocabulary, seed=1).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return model, optimiser, torch.compile(model) if device == "cuda" else model


class Row:
    """One form of the layer at a preset's size, and what its step needs.

    whole: with the decoder, its backward pass and AdamW, else the layer alone with its gradients.
    """

    def __init__(self, name: str, preset: Preset, device: str, whole: bool):
        torch.manual_seed(1)
        self.name, self.preset, self.device, self.whole = name, preset, device, whole
        probability, counts = zipf(preset)
        ids = np.random.default_rng(1).choice(
            preset.vocabulary, (BATCHES, preset.sequences, preset.context + 1), p=probability
        )
        ids = torch.from_numpy(ids)
        # Targets come from the CPU and are counted there, as in training.
        self.on_host = ids[..., 1:].contiguous()
        self.inputs, self.targets = ids[..., :-1].contiguous().to(device), self.on_host.to(device)
        self.number = 0
        if whole:
            self.model, self.optimiser, self.body = decoder(preset, device)
        else:
            std = preset.width**-0.5
            self.weight = (std * torch.randn(preset.vocabulary, preset.width, device=device)).requires_grad_()
            low = torch.bfloat16 if device == "cuda" else torch.float32
            self.hidden = torch.randn(preset.sequences, preset.context, preset.width, device=device, dtype=low)
        self.gate = None
        self.method = build_method(METHODS.get(name, METHODS["ours, AGG"]))
        if self.method.gate is not None:
            facts = TrainingFacts(
                counts, (0, 1, 2, 3), preset.tokens, preset.memory, RARE, device,
                earlier_targets=lambda step: self.on_host[step % BATCHES].flatten(),
            )  # fmt: skip
            self.gate = self.method.gate.start(facts)
            # The state after an epoch.
            self.gate.load({"total": torch.from_numpy(counts), "step": torch.tensor(preset.memory)})
        # Rows of plain cross-entropy have no gate.
        self.counts = self.gate is not None and (name in METHODS or name in (PRINTED, PRINTED_COMPILED))
        self.is_frozen = name.endswith(FROZEN)
        self.loss = self._loss()

    def _loss(self) -> Callable:
        """(hidden, weight, inputs, targets) -> loss."""
        name = self.name
        if name in METHODS:
            observe = name.endswith("observed")
            return lambda h, w, x, y: (
                output_loss(self.method, self.gate, h, w, y, inputs=x, observe=observe, places=self.places).loss
            )
        if name in OTHERS:
            return others_loss(name.removesuffix(FROZEN))
        is_plain = name.removesuffix(FROZEN) in (PLAIN, COMPILED)
        form = plain_loss if is_plain else printed_loss
        form = torch.compile(form, dynamic=False) if name in (COMPILED, PRINTED_COMPILED) else form
        if is_plain:
            return lambda h, w, x, y: form(h.flatten(0, 1), w, y.flatten())
        rare = functools.partial(put, device=self.device)
        return lambda h, w, x, y: form(h.flatten(0, 1), w, y.flatten(), self.places.gates, rare(self.gate.rare()))

    def step(self) -> None:
        """One step, or the layer's two passes."""
        x, y, on_host = (ids[self.number % BATCHES] for ids in (self.inputs, self.targets, self.on_host))
        self.number += 1
        if self.counts:
            self.gate.begin_step(on_host.flatten())
        self.places = Places(self.gate, y, None, ToHost(on_host))
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            if self.whole:
                hidden, weight = self.body(x), self.model.output_weight
                weight = weight.detach() if self.is_frozen else weight
            else:
                self.weight.grad = None
                hidden = self.hidden.detach().requires_grad_()
                weight = self.weight.detach() if self.is_frozen else self.weight
            loss = self.loss(hidden, weight, x, y)
        loss.backward()
        if self.whole:
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)


def rows_on(device: str) -> list[str]:
    """The rows that this machine can run."""
    here = {
        TORCH: hasattr(F, "linear_cross_entropy"),
        LIGER: device == "cuda" and importlib.util.find_spec("liger_kernel"),
        CUT: device == "cuda" and importlib.util.find_spec("cut_cross_entropy"),
    }
    others = [name for name in OTHERS if here[name.removesuffix(FROZEN)]]
    # What the bars need comes first, because the time on a GPU may end early.
    first = [PLAIN, COMPILED, *(name for name in others if not name.endswith(FROZEN)), "ours, MLE", "ours, AGG"]
    names = dict.fromkeys([*first, PRINTED, *METHODS, PLAIN + FROZEN, *others, PRINTED_COMPILED])
    # On a CPU compiling takes a minute per row and speeds up nothing that is compared.
    return [name for name in names if device == "cuda" or "compile" not in name]


def milliseconds(row: Row) -> float:
    """One step on a CPU."""
    return 1e3 * seconds(row.step, "cpu", time.process_time)


def times(names: list[str], preset: Preset, whole: bool, repetitions: int) -> dict[str, list[float]]:
    """Milliseconds of every row in every repetition on a CPU, rows interleaved."""
    rows = {name: Row(name, preset, "cpu", whole) for name in names}
    measured = {name: [] for name in names}
    for row in rows.values():
        milliseconds(row)
    for _ in range(repetitions):
        for name, row in rows.items():
            measured[name].append(milliseconds(row))
    return measured


def resident(kind: str) -> float:
    """Resident memory of this process, MiB; kind: VmRSS (now) or VmHWM (the peak)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(kind)) / 1024


def peak_mebibytes(name: str, preset: Preset, whole: bool) -> float:
    """Peak memory of one step on a CPU beyond parameters, inputs and optimiser state, MiB."""
    row = Row(name, preset, "cpu", whole)
    row.step()
    if not whole:
        row.weight.grad = None
    before = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # reset the peak
    row.step()
    return resident("VmHWM") - before


def peak_of(name: str, preset_name: str, whole: bool) -> float:
    """The same, in a process of its own, which returns freed memory at once."""
    command = [sys.executable, __file__, "--peak", json.dumps([name, preset_name, whole])]
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    return float(output.stdout)


def on_gpu(name: str, preset: Preset, whole: bool, repetitions: int) -> tuple[list[float], float]:
    """Milliseconds of every repetition on a GPU, and peak memory, MiB; one row at a time, since all may not fit.

    Memory of a whole step includes parameters and optimiser state, that of the layer alone neither.
    """
    row = Row(name, preset, "cuda", whole)

    def steps() -> None:
        # As in training, where the host prepares a step while the GPU computes the one before.
        for _ in range(STEPS):
            row.step()

    taken = [1e3 * taken / STEPS for taken in seconds_of(steps, "cuda", repetitions, warm_up=1)]
    if name in METHODS:
        assert fusion.is_at_work, "torch.compile failed"
    if not whole:
        row.weight.grad = None
    gc.collect()  # what the last step left
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    row.step()
    torch.cuda.synchronize()
    return taken, (torch.cuda.max_memory_allocated() - (0 if whole else before)) / 2**20


def compare(preset_name: str, device: str, whole: bool, repetitions: int, names: list[str]) -> None:
    """Print a table of a preset; on a GPU each row as soon as it is measured, and the error of a row that fails."""
    preset = PRESETS[preset_name]
    title = f"{preset_name}, {'whole step' if whole else 'layer alone'}: {preset.tokens:,} tokens, {device}"
    print(f"\n{title:44}{'ms':>9}{'least':>9}{'of plain':>10}{'MiB':>9}", flush=True)
    measured = times(names, preset, whole, repetitions) if device == "cpu" else {}
    for name in names:
        if device == "cpu":
            pairs = zip(measured[name], measured[PLAIN], strict=True)
            ratio, peak = statistics.median(value / plain for value, plain in pairs), peak_of(name, preset_name, whole)
        else:
            try:
                measured[name], peak = on_gpu(name, preset, whole, repetitions)
            except Exception as error:  # libraries, compilers and memory fail in many ways
                print(f"{name:44}  {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}", flush=True)
                continue
            finally:
                torch.cuda.empty_cache()
            plain = measured.get(PLAIN, [math.nan])
            ratio = statistics.median(measured[name]) / statistics.median(plain)
        print(
            f"{name:44}{statistics.median(measured[name]):9.2f}{min(measured[name]):9.2f}{ratio:10.3f}{peak:9.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(default: %(default)s)")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=["small"], help="(default: small)")
    parser.add_argument("--rows", nargs="+", help="only these rows, beside the plain and the printed one")
    parser.add_argument("--repetitions", type=int, default=15, help="(default: %(default)s)")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    if arguments.peak:
        name, preset, whole = json.loads(arguments.peak)
        print(peak_mebibytes(name, PRESETS[preset], whole))
        return
    names = rows_on(arguments.device)
    if arguments.rows:
        names = [name for name in names if name in (PLAIN, PRINTED, *arguments.rows)]
    for whole in (False, True):
        for preset in arguments.presets:
            compare(preset, arguments.device, whole, arguments.repetitions, names)


if __name__ == "__main__":
    main()
