"""Learning rate schedules: functions of the step."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from rarepapers.core.errors import UserError


@dataclass(frozen=True)
class Cosine:
    """Linear warm-up from 0 to `peak` over `warmup` steps, then half a cosine down to `final` at the last step.

    With a warm-up, step 0 has learning rate 0, as in nanoGPT, which the authors of stop_jostling used.
    """

    peak: float
    final: float
    warmup: int
    steps: int

    def __call__(self, step: int) -> float:
        """Learning rate of step `step`, counted from 0."""
        if step < self.warmup:
            return self.peak * step / self.warmup
        if step >= self.steps:
            return self.final
        progress = (step - self.warmup) / (self.steps - self.warmup)
        return self.final + 0.5 * (1.0 + math.cos(math.pi * progress)) * (self.peak - self.final)


@dataclass(frozen=True)
class InverseSqrt:
    """Linear warm-up from `start` to `peak` over `warmup` steps, then peak x sqrt(warmup / step).

    As fairseq's `inverse_sqrt`: step 0 has the rate `start`; step n < warmup has start + n (peak - start) / warmup;
    step `warmup` is the first with rate `peak`.
    """

    peak: float
    warmup: int
    steps: int
    start: float = 1e-7

    def __post_init__(self):
        if self.warmup < 1:
            raise UserError(f"training.schedule.warmup is {self.warmup}; inverse_sqrt needs at least 1 step")

    def __call__(self, step: int) -> float:
        """Learning rate of step `step`, counted from 0."""
        if step < self.warmup:
            return self.start + step * (self.peak - self.start) / self.warmup
        return self.peak * math.sqrt(self.warmup / step)


SCHEDULES = {"cosine": Cosine, "inverse_sqrt": InverseSqrt}


def build_schedule(settings: dict, steps: int) -> Callable[[int], float]:
    """The schedule described by `training.schedule` for `steps` steps; raises UserError if it is invalid."""
    options = dict(settings)
    name = options.pop("name", None)
    if name not in SCHEDULES:
        raise UserError(f"training.schedule.name is {name!r}; it can be {', '.join(SCHEDULES)}")
    try:
        schedule = SCHEDULES[name](steps=steps, **options)
    except TypeError as error:
        raise UserError(f"training.schedule ({name}) is configured wrongly: {error}") from None
    if schedule.warmup >= steps:
        raise UserError(f"training.schedule.warmup is {schedule.warmup}, but training has only {steps} steps")
    return schedule
