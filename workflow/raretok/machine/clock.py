"""Wall time of a training, and its log."""

import sys
import time
from collections.abc import Callable

from raretok.machine import processes

# Seconds between two progress lines in the log.
PROGRESS_SECONDS = 10.0


class Clock:
    """Wall time of a training over all its attempts, and its progress line."""

    def __init__(self, progress, steps: int):
        """progress: a `progress.Progress`, whose `seconds` are kept up."""
        self.progress, self.steps = progress, steps
        self.started = self.reported = time.monotonic()

    def stop(self) -> None:
        """Add the time since the last call to the training's."""
        now = time.monotonic()
        self.progress.seconds += now - self.started
        self.started = now

    def report(self, loss) -> None:
        """One log line with step, loss, speed and time left, every PROGRESS_SECONDS."""
        now = time.monotonic()
        if now - self.reported < PROGRESS_SECONDS:
            return
        progress = self.progress
        seconds = progress.seconds + now - self.started
        left = seconds / progress.step * (self.steps - progress.step)
        log(
            f"step {progress.step}/{self.steps}  loss {float(loss):.4f}  "
            f"{progress.tokens / seconds:,.0f} tokens/s  {left / 60:.1f} min left"
        )
        self.reported = now


class Saves:
    """When the state of a training is to be saved: every so many seconds, and after every so many updates."""

    def __init__(self, seconds: float, steps: int | None):
        """seconds: between two saves, at least. steps: also after each so many updates, None: not."""
        self.seconds, self.steps = seconds, steps
        self.due = time.monotonic() + seconds

    def is_due(self, step: int) -> bool:
        """Whether the state after `step` updates is to be saved."""
        return time.monotonic() >= self.due or bool(self.steps and step % self.steps == 0)

    def make(self, save: Callable[[], None]) -> None:
        """Save, and set the time of the next: a large state takes long; at most a thirtieth of all time goes there."""
        before = time.monotonic()
        save()
        spent = time.monotonic() - before
        self.due = time.monotonic() + max(self.seconds, 30 * spent)


def log(line: str) -> None:
    """A line with the time of day on standard error, once for all processes of a run."""
    if processes.is_first():
        print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)
