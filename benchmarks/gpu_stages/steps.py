"""Whole training steps of the 6 x 512 decoder in turns: the bar of AGG, 1.05 of the best maximum likelihood.

`benchmarks/output_layer.py` measures one row after another, so the clock of the GPU can drift between them. Here rows
take turns, in bursts of 5 and of 25 steps; a burst begins with an idle GPU, training does not. The last rows pass over
the logits with the Triton kernel of the stage `parts`.
"""

import contextlib
import importlib.util
import statistics
from functools import partial
from unittest import mock

import output_layer
import torch

from gpu_stages.timing import seconds
from raretok.output import fused_gradient

ROUNDS, BURSTS = 10, (5, 25)
# Block size and number of warps of the Triton kernel.
CONFIG = (4096, 32)


def main(bench) -> None:
    on_gpu = bench.device == "cuda"
    preset = output_layer.PRESETS["empirical" if on_gpu else "small"]
    first = output_layer.COMPILED if on_gpu else output_layer.PLAIN
    rows = {name: output_layer.Row(name, preset, bench.device, True) for name in (first, "ours, MLE", "ours, AGG")}
    # By name: the row, and a context in which it runs.
    cases = {name: (row, contextlib.nullcontext) for name, row in rows.items()}
    if on_gpu and importlib.util.find_spec("triton"):
        cases |= {f"{name}, Triton": (rows[name], with_triton) for name in ("ours, MLE", "ours, AGG")}
    bursts = (1,) if bench.tiny else BURSTS
    for case in cases.values():
        run(*case, bursts[0])
    for burst in bursts:
        taken = {name: [] for name in cases}
        for _ in range(2 if bench.tiny else ROUNDS):
            for name, (row, context) in cases.items():
                run(row, context, 1)
                taken[name].append(1e3 * seconds(partial(run, row, context, burst), bench.device) / burst)
        for name, each in taken.items():
            ratio = statistics.median(own / other for own, other in zip(each, taken[first], strict=True))
            bench.emit(
                row=name,
                burst=burst,
                ms=round(statistics.median(each), 3),
                least=round(min(each), 3),
                of_first=round(ratio, 4),
                ok=name != "ours, AGG" or ratio <= 1.05,
            )
    if on_gpu:
        for name, (row, context) in cases.items():
            bench.emit(row=name, **kernels(row, context))


def run(row, context, steps: int) -> None:
    with context():
        for _ in range(steps):
            row.step()


def with_triton():
    """Our layer, with the Triton kernel where it would pass over the logits of plain cross-entropy."""
    from gpu_stages import row_kernel

    compiled = fused_gradient.fusion

    def fusion(function, *arguments):
        if function is not fused_gradient.softmax_gradient:
            return compiled(function, *arguments)
        z, _, targets, *_ = arguments
        return row_kernel.softmax_gradient(z, targets, *CONFIG), None

    return mock.patch.object(fused_gradient, "fusion", fusion)


def kernels(row, context) -> dict:
    """Number of kernels of a step, their milliseconds, the most expensive ones, and peak memory."""
    run(row, context, 2)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run(row, context, 1)
        torch.cuda.synchronize()
    found = [event for event in profile.key_averages() if event.self_device_time_total]
    found.sort(key=lambda event: -event.self_device_time_total)
    return {
        "kernels": sum(event.count for event in found),
        "kernel_ms": round(sum(event.self_device_time_total for event in found) / 1e3, 2),
        "most": [[event.key[:60], event.count, round(event.self_device_time_total / 1e3, 2)] for event in found[:12]],
        "mib": torch.cuda.max_memory_allocated() // 2**20,
    }
