"""Training of one run, from the saved state or the beginning to the final files."""

import dataclasses
import hashlib
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import parametrize

from rarepapers.core.errors import Interrupted, NotFinite, UserError
from rarepapers.core.files import CHECKPOINT
from rarepapers.experiments.run_code import TASKS, training_code
from rarepapers.machine.clock import Clock, Saves, log
from rarepapers.machine.device import keep_freed_memory
from rarepapers.machine.signals import StopFlag
from rarepapers.models.building import average_weights, plain_weights
from rarepapers.training import checkpoint, finished_files
from rarepapers.training.final_files import write_final_files
from rarepapers.training.progress import HISTORY_ROWS, Progress
from rarepapers.training.schedule import build_schedule
from rarepapers.training.tasks import Task
from rarepapers.training.trainer import Trainer

# Class of each kind of corpus, in the module named by `rarepapers.experiments.run_code.TASKS`.
TASK_CLASSES = {"characters": "CharacterTask", "language": "LanguageTask", "translation": "TranslationTask"}


@dataclass
class Options:
    """Options of a training that do not change its result.

    checkpoint_seconds: interval between saves. checkpoint_steps: also save after this many steps. compile: whether to
    use torch.compile on a GPU; rounding then differs, as between two GPUs. keep_copy: whether to keep a second copy
    of the final files in the state folder, so that a training whose end Snakemake missed is not repeated.
    """

    device: str = "cpu"
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None
    compile: bool = True
    keep_copy: bool = True


def train(
    run: dict, corpus, output: Path, state: Path, options: Options, outside_counts: np.ndarray | None = None
) -> None:
    """Train one run to the end, continuing from `state` if it holds one.

    run: {paper, experiment, method, seed, hash, settings}. corpus: prepared data. output: folder for the final files
    (docs/results.md). state: folder of the unfinished training; at the end it keeps only links to the final files.
    outside_counts: counts of the corpus's types (V) in another text, for an output bias that starts from them. Raises
    Interrupted if a signal stopped the training after saving, NotFinite if the loss is not finite, UserError if
    settings are inconsistent or the state belongs to another run.
    """
    stop = StopFlag()
    settings, training = run["settings"], run["settings"]["training"]
    name = f"{run['experiment']}/{run['method']} seed {run['seed']}"
    steps, average, device = training["steps"], training.get("average", 0), options.device
    select = selection_criterion(training, corpus.kind)
    log_every = max(1, steps // HISTORY_ROWS)
    counts = None if outside_counts is None else hashlib.sha256(outside_counts.tobytes()).hexdigest()
    identity = {"run": run["hash"], "data": corpus.sha256, "sources": training_code(settings, corpus.kind)}
    identity |= {"counts": counts}

    if finished_files.restore(state / finished_files.KEPT, output, identity):
        log(f"{name} was finished before; its files are in place again")
        return

    # Data, model and optimiser as before the first step.
    if device == "cpu":
        torch.set_num_threads(training["threads"])
        keep_freed_memory()
    task, trainer, schedule = build(settings, corpus, device, options.compile, outside_counts)
    snapshots = set(trainer.snapshot_steps)
    progress, best = Progress(), {}

    # The saved state, if there is one.
    saved = checkpoint.load_checkpoint(state, **identity)
    if saved is None:
        checkpoint.drop_weights(state, "best")
        checkpoint.drop_weights(state, "validated")
    else:
        groups, facts = saved
        # A run keeps its precision, even if it continues on another machine.
        trainer.precision = facts.get("precision", trainer.precision)
        progress = Progress(**facts["progress"])
        progress.resumes += 1
        drop_old_weights(state, progress)
        if progress.best_step and not average:
            best = checkpoint.load_weights(state, "best", progress.best_step)
        # For a GPU, if the state was saved on a CPU.
        torch.manual_seed(settings["seed"] + progress.step)
        trainer.load(groups)
        log(f"continuing {name} at step {progress.step} of {steps}")
    clock, saves = Clock(progress, steps), Saves(options.checkpoint_seconds, options.checkpoint_steps)

    def save() -> None:
        """Write the state, from which the same command continues exactly."""
        clock.stop()
        if best:
            # Before the checkpoint that names them.
            checkpoint.save_weights(state, "best", best, progress.best_step)
        facts = identity | {"progress": dataclasses.asdict(progress), "precision": trainer.precision}
        checkpoint.save_checkpoint(state, trainer.state(), facts)
        drop_old_weights(state, progress)

    def save_and_stop() -> None:
        save()
        raise Interrupted(
            f"{stop.signal}: stopped at step {progress.step} of {steps}; the state is saved, start the same command "
            "again to continue"
        )

    while True:
        # Validation; the final model is the best one, or the mean of the last ones.
        is_due = progress.step > 0 and progress.step % training["validation"]["every"] == 0
        if (is_due or progress.step == steps) and progress.validated_step != progress.step:
            with parametrize.cached():
                scores = task.validate(trainer.model, progress.step, lambda: stop.signal)
            if scores is None:
                save_and_stop()
            if not math.isfinite(scores["valid"]):
                raise not_finite(f"the validation loss of {name}", progress.step, {"loss": scores["valid"]}, state)
            is_best = progress.note(scores, select, average)
            if is_best or average:
                weights = {key: tensor.to("cpu", copy=True) for key, tensor in plain_weights(trainer.model).items()}
            if average:
                checkpoint.save_weights(state, "validated", weights, progress.step)
            elif is_best:
                best = weights
            if len(scores) > 1:
                log(f"step {progress.step}: " + ", ".join(f"{split} {score:.4g}" for split, score in scores.items()))

        # Observations between steps.
        if progress.step in snapshots:
            checkpoint.save_snapshot(state, progress.step, trainer.model.output_weight)
        with parametrize.cached():
            trainer.measure(progress.step, task)
        if progress.step == steps:
            break

        # One step.
        learning_rate = schedule(progress.step)
        result = trainer.backward(task.micro_batches(progress.step))
        is_log_step = (progress.step + 1) % log_every == 0
        is_save_step = stop.signal is not None or saves.is_due(progress.step + 1)
        # Reading a number from a GPU waits for it, so numbers are read only when something is written.
        if device == "cpu" or is_log_step or is_save_step:
            numbers = {"loss": result.loss.item(), "gradient norm": result.norm.item(), "learning rate": learning_rate}
            if not all(map(math.isfinite, numbers.values())):
                raise not_finite(f"the loss of {name}", progress.step, numbers, state)
        trainer.step(learning_rate)
        progress.tokens += task.target_tokens(progress.step)
        progress.step += 1
        if is_log_step:
            row = [progress.step, "train", trainer.mean_loss(), learning_rate, result.norm.item(), progress.tokens]
            progress.history.append(row)
        if is_save_step:
            if stop.signal:
                save_and_stop()
            saves.make(save)
        clock.report(result.nll)

    # The final files.
    clock.stop()
    checkpoint.gather_snapshots(state, trainer.snapshot_steps, output / "snapshots.safetensors", run["hash"])
    final = best
    if average:
        final = average_weights([checkpoint.load_weights(state, "validated", step) for step in progress.kept])
    facts = {"sources": identity["sources"], "counts": counts, "select": select, "derived": task.derived()}
    write_final_files(run, corpus, trainer, final, progress, output, facts)
    if options.keep_copy:
        finished_files.keep(output, state / finished_files.KEPT)
    checkpoint.drop_state(state)
    rate = progress.tokens / max(progress.seconds, 1e-9)
    log(
        f"{name}: finished {steps} steps in {progress.seconds:.0f} s, {rate:,.0f} tokens/s; "
        f"best step {progress.best_step}"
    )


def build(
    settings: dict, corpus, device: str, compile_model: bool, outside_counts: np.ndarray | None = None
) -> tuple[Task, Trainer, Callable[[int], float]]:
    """Data, model with optimiser, and learning rate by step, as before the first step; arguments as in `train`."""
    torch.manual_seed(settings["seed"])
    module = importlib.import_module(TASKS[corpus.kind])
    task = getattr(module, TASK_CLASSES[corpus.kind])(corpus, settings, device)
    training = settings["training"]
    schedule = build_schedule(training["schedule"], training["steps"])
    return task, Trainer(settings, task.facts(), compile_model, outside_counts), schedule


def drop_old_weights(state: Path, progress: Progress) -> None:
    """Remove weights that the checkpoint does not name."""
    checkpoint.drop_weights(state, "best", keep=[progress.best_step])
    checkpoint.drop_weights(state, "validated", keep=progress.kept)


def selection_criterion(training: dict, kind: str) -> str:
    """The criterion for the best checkpoint, `loss` or `bleu`; raises UserError if it is not measured.

    kind: of the corpus.
    """
    select = training.get("select", "loss")
    if select not in ("loss", "bleu"):
        raise UserError(f"training.select is {select!r}; it can be loss or bleu")
    if select == "bleu" and "bleu" not in training["validation"]:
        raise UserError("training.select is bleu, but training.validation.bleu does not say how to decode")
    if select == "bleu" and kind != "translation":
        raise UserError(f"training.select is bleu, but a corpus of kind {kind} is not translated; select loss")
    return select


def not_finite(what: str, step: int, numbers: dict[str, float], state: Path) -> NotFinite:
    """The exception for a number that is not finite, with the last good state and advice."""
    said = ", ".join(f"{name} {value:.3g}" for name, value in numbers.items())
    is_there = (state / CHECKPOINT).exists()
    kept = f"the last good state is in {state}" if is_there else "no state was saved before"
    return NotFinite(
        f"{what} is not finite at step {step} ({said}); {kept}; lower training.schedule.peak or check the data"
    )
