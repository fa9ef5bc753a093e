"""Signals that ask a job to stop; it does so after the current step."""

import signal

# Ctrl-C, a scheduler's kill, and the warning that schedulers send before the time limit.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopFlag:
    """Whether one of SIGNALS has arrived; `signal` is its name, or None.

    A second signal has no further effect: the state is saved after the current step in any case.
    """

    def __init__(self):
        self.signal: str | None = None
        for number in SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number, frame) -> None:
        self.signal = signal.Signals(number).name
