"""Timing of functions on a device."""

import time
from collections.abc import Callable

import torch


def seconds_of(action: Callable[[], object], device: str, repetitions: int, warm_up: int = 3) -> list[float]:
    """Seconds of each repetition, after warm-up repetitions."""
    for _ in range(warm_up):
        action()
    return [_one(action, device) for _ in range(repetitions)]


def _one(action: Callable[[], object], device: str) -> float:
    if device == "cpu":
        started = time.perf_counter()
        action()
        return time.perf_counter() - started
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda.synchronize()
    events[0].record()
    action()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / 1e3
