"""Description of the machine, and its two ceilings: bytes and operations per second."""

import importlib.util
import statistics

import torch

from gpu_stages.timing import seconds_of
from rarepapers.machine.device import describe_device, source_commit, versions


def main(bench) -> None:
    has_triton = importlib.util.find_spec("triton") is not None
    bench.emit(device=describe_device(bench.device), commit=source_commit(), triton=has_triton, **versions())
    size = 2**20 if bench.tiny else 2**30
    source = torch.randint(256, (size,), dtype=torch.uint8, device=bench.device)
    target = torch.empty_like(source)
    seconds = statistics.median(seconds_of(lambda: target.copy_(source), bench.device, 10))
    bench.emit(what="copy", gb_per_s=round(2 * size / seconds / 1e9, 1))
    n = 256 if bench.tiny else 8192
    a, b = (torch.randn(n, n, device=bench.device, dtype=torch.bfloat16) for _ in range(2))
    seconds = statistics.median(seconds_of(lambda: a @ b, bench.device, 10))
    bench.emit(what="matrix product, bfloat16", tflop_per_s=round(2 * n**3 / seconds / 1e12, 2))
