"""Timing of functions on a device."""

import time
from collections.abc import Callable

import torch


def seconds_of(action: Callable[[], object], device: str, repetitions: int, warm_up: int = 3) -> list[float]:
    """Seconds of each repetition, after warm-up repetitions."""
    for _ in range(warm_up):
        action()
    return [seconds(action, device) for _ in range(repetitions)]


def seconds(action: Callable[[], object], device: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call: by `clock` on a CPU, by the GPU's events on a GPU."""
    if device == "cpu":
        started = clock()
        action()
        return clock() - started
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda.synchronize()
    events[0].record()
    action()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / 1e3
