"""Wall and CPU time of a run's training, its progress line, and the schedule of its checkpoints."""

import sys
import time
from collections.abc import Callable

# Seconds between two progress lines in the log.
PROGRESS_SECONDS = 10.0


class Clock:
    """Wall and CPU time of a run's training over all attempts, and its progress line."""

    def __init__(self, progress, steps: int):
        """progress: a `progress.Progress` whose `seconds` and `cpu_seconds` this keeps up to date."""
        self.progress, self.steps = progress, steps
        self.started = self.reported = time.monotonic()
        self.cpu_started = time.process_time()

    def stop(self) -> None:
        """Add the time since the last call to the run's."""
        now, cpu_now = time.monotonic(), time.process_time()
        self.progress.seconds += now - self.started
        self.progress.cpu_seconds += cpu_now - self.cpu_started
        self.started, self.cpu_started = now, cpu_now

    def report(self, loss) -> None:
        """Log step, loss, speed and remaining time, every PROGRESS_SECONDS."""
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
    """Schedule of a run's checkpoints: after a number of seconds, or of steps."""

    def __init__(self, seconds: float, steps: int | None):
        """seconds: minimum time between two saves. steps: also save after every so many steps; None: never."""
        self.seconds, self.steps = seconds, steps
        self.due = time.monotonic() + seconds

    def is_due(self, step: int) -> bool:
        """Whether to save the state after `step` steps."""
        return time.monotonic() >= self.due or bool(self.steps and step % self.steps == 0)

    def make(self, save: Callable[[], None]) -> None:
        """Save, and schedule the next save so that saving takes at most a thirtieth of the time."""
        before = time.monotonic()
        save()
        spent = time.monotonic() - before
        self.due = time.monotonic() + max(self.seconds, 30 * spent)


def log(line: str) -> None:
    """Print a line with the time of day to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)
