"""Parts of the output layer alone: its three matrix products by rows of a chunk, and its pass over the logits.

Times are for all 32,768 positions of a step with 44,256 types and width 512, so that they add up to those of the layer.
`whole` is one chunk. The pass is measured as compiled, as compiled with the compiler's search for better block sizes,
and as a Triton kernel that reads each row twice while few rows are in flight.
"""

import importlib.util
import statistics
from functools import partial

import torch

from gpu_stages.timing import seconds_of
from raretok.output.fused_gradient import softmax_gradient
from raretok.output.gated_gradient import accumulate, multiply
from raretok.output.output_layer import linear

POSITIONS, TYPES, WIDTH = 32_768, 44_256, 512
# 128 rows are a tile; 4,736 and 5,504 rows make seven and six chunks.
ROWS = (4096, 4224, 4736, 5504, 8192, POSITIONS)
# Block size and number of warps of the Triton kernel.
CONFIGS = ((4096, 16), (4096, 32), (8192, 32), (16384, 32))


def main(bench) -> None:
    positions, types, width = (256, 103, 16) if bench.tiny else (POSITIONS, TYPES, WIDTH)
    rows = (128, 256) if bench.tiny else ROWS
    low = torch.bfloat16 if bench.device == "cuda" else torch.float32
    hidden = torch.randn(positions, width, device=bench.device)
    weight = torch.randn(types, width, device=bench.device, dtype=low) * width**-0.5
    targets = torch.randint(types, (positions,), device=bench.device)
    sums = torch.zeros(types, width, device=bench.device)
    for number in rows:
        z = torch.empty(number, types, device=bench.device, dtype=low)
        h = hidden[:number].to(low)
        linear(h, weight, None, z)
        for name, action in {
            "h W^T": partial(linear, h, weight, None, z),
            "D W, in low precision": partial(torch.mm, z, weight, out=torch.empty_like(h)),
            "D W, in high precision": partial(multiply, z, weight, torch.empty_like(hidden[:number])),
            "D^T h, added": partial(accumulate, sums, z, h),
        }.items():
            bench.emit(product=name, rows=number, ms=milliseconds(action, bench.device, positions / number))
    number = rows[1] if bench.tiny else 4736
    logits = torch.randn(number, types, device=bench.device, dtype=low)
    expected = None
    for name, action in passes(bench.device).items():
        # Times do not depend on the values, so each pass overwrites the results of the one before.
        z = logits.clone()
        nll = action(z, targets[:number]).flatten()
        expected = nll if expected is None else expected
        wrong = (nll - expected).abs().max().item()
        ms = milliseconds(partial(action, z, targets[:number]), bench.device, positions / number)
        bench.emit(passes=name, rows=number, ms=ms, differs=wrong, ok=wrong < 1e-4)
        del z


def passes(device: str) -> dict:
    """(z, targets) -> NLL, by name."""

    def uncompiled(z, targets):
        return softmax_gradient(z, z.gather(1, targets[:, None]), targets, 0.0)[0]

    found = {"uncompiled": uncompiled}
    if device == "cuda":
        found["compiled"] = torch.compile(uncompiled)
        found["compiled, with a search"] = torch.compile(uncompiled, options={"coordinate_descent_tuning": True})
    if device == "cuda" and importlib.util.find_spec("triton"):
        from gpu_stages import row_kernel

        for block, warps in CONFIGS:
            found[f"Triton, {block} entries, {warps} warps"] = partial(
                row_kernel.softmax_gradient, block=block, warps=warps
            )
    return found


def milliseconds(action, device: str, times: float) -> float:
    """Of all chunks, each of which takes one call."""
    return round(1e3 * times * statistics.median(seconds_of(action, device, 10)), 3)
