"""Training loop of a single run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.errors import Interrupted
from rarepapers.machine.clock import Saves
from rarepapers.machine.device import keep_freed_memory
from rarepapers.machine.signals import StopFlag
from rarepapers.training.distributed import agree
from rarepapers.training.training_run import Training


@dataclass
class Options:
    """Options of a training that do not change its result.

    checkpoint_seconds: interval between saves. checkpoint_steps: also save after this many steps. compile: whether to
    use torch.compile on a GPU; rounding then differs, as between two GPUs.
    """

    device: str = "cpu"
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None
    compile: bool = True


def train(
    run: dict, corpus, output: Path, state: Path, options: Options, outside_counts: np.ndarray | None = None
) -> None:
    """Train one run to the end, continuing from `state` if it holds one.

    See `Training` for the other arguments. At the end, `state` keeps only links to the final files. Raises Interrupted
    if a signal stopped the training after saving, NotFinite if the loss is not finite, UserError if the state belongs
    to another run.
    """
    stop = StopFlag()
    training = Training(run, corpus, output, state, outside_counts)
    if training.restore_finished():
        return
    if options.device == "cpu":
        torch.set_num_threads(run["settings"]["training"]["threads"])
        keep_freed_memory()
    training.start(options.device, options.compile)
    progress, trainer = training.progress, training.trainer

    def asked() -> str | None:
        """The signal that asks to stop, whichever process it reached."""
        return agree(stop.signal, False)[0]

    def save_and_stop(signal: str) -> None:
        training.save()
        raise stop_error(signal, progress.step, training.steps)

    saves = Saves(options.checkpoint_seconds, options.checkpoint_steps)
    while True:
        if training.must_validate and not training.validate(asked):
            save_and_stop(asked())
        training.look()
        if training.at_end:
            break

        result = training.backward()
        signal, is_save_step = agree(stop.signal, saves.is_due(progress.step + 1))
        # Reading a number from a GPU waits for it, so numbers are read only when something is written.
        if options.device == "cpu" or training.is_log_step or is_save_step:
            training.check(result)
        trainer.step(training.learning_rate)
        training.advance(result)

        if is_save_step:
            if signal:
                save_and_stop(signal)
            saves.make(training.save)
        training.clock.report(result.nll)

    training.clock.stop()
    training.finish()


def stop_error(signal: str, step: int, steps: int) -> Interrupted:
    """The exception for a training that a signal stopped."""
    return Interrupted(
        f"{signal}: stopped at step {step} of {steps}; the state is saved, start the same command again to continue"
    )
