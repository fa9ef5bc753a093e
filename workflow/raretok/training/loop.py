"""The training loop, top to bottom."""

import csv
import dataclasses
import hashlib
import io
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import parametrize

from raretok.errors import Interrupted, UserError
from raretok.files import atomic_path, write_json, write_text
from raretok.methods import part_names
from raretok.models import average_weights, plain_weights
from raretok.sources import digest_of, training_sources
from raretok.training import finished
from raretok.training.checkpoint import (
    FILE_NAME,
    drop_best,
    drop_state,
    drop_validated,
    gather_snapshots,
    load_best,
    load_checkpoint,
    load_validated,
    save_best,
    save_checkpoint,
    save_snapshot,
    save_tensors,
    save_validated,
)
from raretok.training.clock import Clock, log
from raretok.training.device import describe_device, peak_memory_gib, source_commit, versions
from raretok.training.schedule import build_schedule
from raretok.training.signals import StopFlag
from raretok.training.tasks import CharacterTask, LanguageTask
from raretok.training.trainer import Trainer
from raretok.training.translation import TranslationTask

# By the kind of corpus.
TASKS = {"characters": CharacterTask, "language": LanguageTask, "translation": TranslationTask}

HISTORY_COLUMNS = ("step", "split", "loss", "learning_rate", "gradient_norm", "tokens")
# A training writes about this many rows of its training loss, whatever its length.
HISTORY_ROWS = 100


@dataclass
class Options:
    """How to train, as opposed to what: nothing here changes a result.

    checkpoint_seconds: how often the state is saved. checkpoint_steps: also after every so many updates.
    compile: whether torch.compile makes kernels of the model on a GPU; rounding differs, as between two GPUs.
    """

    device: str = "cpu"
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None
    compile: bool = True


@dataclass
class Progress:
    """The part of a training's state that is numbers: saved as JSON, restored exactly.

    best_loss, best_bleu: validation scores of the best checkpoint, which is that of `best_step`. kept: steps of the
    last validated checkpoints, of which the final model is the mean where `training.average` says so.
    """

    step: int = 0
    best_loss: float = math.inf
    best_bleu: float | None = None
    best_step: int = 0
    kept: list = dataclasses.field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0
    resumes: int = 0
    validated_step: int = 0
    history: list = dataclasses.field(default_factory=list)

    def note(self, scores: dict[str, float], select: str, average: int) -> bool:
        """Take down the scores of a validation; whether this checkpoint is the best so far.

        scores: by split of the history. select: `loss` or `bleu`. average: how many steps to keep.
        """
        self.validated_step = self.step
        self.history += [[self.step, split, score, "", "", self.tokens] for split, score in scores.items()]
        self.kept = [*self.kept, self.step][-average:] if average else []
        loss, bleu = scores["valid"], scores.get("valid_bleu")
        is_best = self.best_bleu is None or bleu > self.best_bleu if select == "bleu" else loss < self.best_loss
        if is_best:
            self.best_loss, self.best_bleu, self.best_step = loss, bleu, self.step
        return is_best


def train(
    run: dict, corpus, output: Path, state: Path, options: Options, outside_counts: np.ndarray | None = None
) -> None:
    """Train one run to its end, continuing from `state` when that holds a part of it.

    run: {paper, experiment, method, seed, hash, settings}. corpus: prepared data. output: the folder for the
    final files (docs/architecture.md). state: the folder of the unfinished training; what stays there at the end
    are links to the final files. outside_counts: counts of the corpus's types (V) in another text, for an output bias
    that starts from them. Raises Interrupted when a signal stopped it with the state saved, UserError when
    the loss is not finite or the state belongs to another run.
    """
    stop = StopFlag()
    settings = run["settings"]
    training, validation = settings["training"], settings["training"]["validation"]
    steps, average, select = training["steps"], training.get("average", 0), selection(training, corpus.kind)
    name = f"{run['experiment']}/{run['method']} seed {run['seed']}"
    sources = digest_of(training_sources(part_names(settings["method"])))
    counts = None if outside_counts is None else hashlib.sha256(outside_counts.tobytes()).hexdigest()
    identity = {"run": run["hash"], "data": corpus.sha256, "sources": sources, "counts": counts}
    if finished.restore(state / "finished", output, identity):
        log(f"{name} was finished before; its files are in place again")
        return
    if options.device == "cpu":
        torch.set_num_threads(training["threads"])
    torch.manual_seed(settings["seed"])

    task = TASKS[corpus.kind](corpus, settings, options.device)
    schedule = build_schedule(training["schedule"], steps)
    trainer = Trainer(settings, task.facts(), options.compile, outside_counts)
    snapshots = set(trainer.snapshot_steps)
    progress, best = Progress(), {}
    saved = load_checkpoint(state, **identity)
    if saved is None:
        drop_best(state)
        drop_validated(state)
    else:
        groups, facts = saved
        progress = Progress(**facts["progress"])
        progress.resumes += 1
        drop_best(state, keep=progress.best_step)
        drop_validated(state, keep=progress.kept)
        best = load_best(state, progress.best_step) if progress.best_step and not average else {}
        trainer.load(groups)
        log(f"continuing {name} at step {progress.step} of {steps}")

    clock = Clock(progress, steps)

    def save() -> None:
        clock.stop()
        if best:
            save_best(state, best, progress.best_step)
        save_checkpoint(state, trainer.state(), identity | {"progress": dataclasses.asdict(progress)})
        drop_best(state, keep=progress.best_step)
        drop_validated(state, keep=progress.kept)

    def save_and_stop() -> None:
        save()
        raise Interrupted(
            f"{stop.signal}: stopped at step {progress.step} of {steps}; the state is saved, start the same "
            "command again to continue"
        )

    log_every = max(1, steps // HISTORY_ROWS)
    next_save = time.monotonic() + options.checkpoint_seconds
    while True:
        at_end = progress.step == steps
        is_due = progress.step > 0 and progress.step % validation["every"] == 0
        if (is_due or at_end) and progress.validated_step != progress.step:
            with parametrize.cached():
                scores = task.validate(trainer.model, progress.step, lambda: stop.signal)
            if scores is None:
                save_and_stop()
            if not math.isfinite(scores["valid"]):
                raise UserError(
                    f"the validation loss of {name} is {scores['valid']} at step {progress.step}; {_advice(state)}"
                )
            is_best = progress.note(scores, select, average)
            # The final model is a mean of checkpoints, or the best one.
            if is_best or average:
                weights = {key: tensor.to("cpu", copy=True) for key, tensor in plain_weights(trainer.model).items()}
            if average:
                save_validated(state, weights, progress.step)
            elif is_best:
                best = weights
            if len(scores) > 1:
                log(f"step {progress.step}: " + ", ".join(f"{split} {score:.4g}" for split, score in scores.items()))
        if progress.step in snapshots:
            save_snapshot(state, progress.step, trainer.model.output_weight)
        with parametrize.cached():
            trainer.measure(progress.step, task)
        if at_end:
            break

        learning_rate = schedule(progress.step)
        leaving = task.leaving(progress.step, trainer.memory)
        update = trainer.backward(task.micro_batches(progress.step), progress.step, leaving)
        is_log_step = (progress.step + 1) % log_every == 0
        is_save_step = stop.signal is not None or time.monotonic() >= next_save
        if options.checkpoint_steps:
            is_save_step = is_save_step or (progress.step + 1) % options.checkpoint_steps == 0
        # On a GPU reading a number waits for it, so it is read only when something is written.
        if options.device == "cpu" or is_log_step or is_save_step:
            loss, norm = update.loss.item(), update.norm.item()
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise UserError(
                    f"the loss of {name} is not finite at step {progress.step} (loss {loss}, gradient norm {norm}, "
                    f"learning rate {learning_rate:.3g}); {_advice(state)}"
                )
        trainer.step(learning_rate)
        progress.step += 1
        progress.tokens += task.target_tokens(progress.step - 1)

        if is_log_step:
            mean = (trainer.running[0] / trainer.running[1]).item()
            trainer.running.zero_()
            progress.history.append([progress.step, "train", mean, learning_rate, norm, progress.tokens])
        if is_save_step:
            if stop.signal:
                save_and_stop()
            before = time.monotonic()
            save()
            # A large model takes long to save: not more than a thirtieth of the time goes into it.
            spent = time.monotonic() - before
            next_save = time.monotonic() + max(options.checkpoint_seconds, 30 * spent)
        clock.report(update.nll)

    clock.stop()
    gather_snapshots(state, trainer.snapshot_steps, output / "snapshots.safetensors", run["hash"])
    final = average_weights([load_validated(state, step) for step in progress.kept]) if average else best
    facts = {"sources": sources, "counts": counts, "select": select, "derived": task.derived()}
    finish(run, corpus, trainer, final, progress, output, facts)
    finished.keep(output, state / "finished")
    drop_state(state)
    rate = progress.tokens / max(progress.seconds, 1e-9)
    log(f"finished {steps} steps in {progress.seconds:.0f} s, {rate:,.0f} tokens/s; best step {progress.best_step}")


def selection(training: dict, kind: str) -> str:
    """What the best checkpoint is chosen by, `loss` or `bleu`; UserError where that is not measured.

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


def finish(run, corpus, trainer: Trainer, final: dict, progress: Progress, output: Path, facts: dict) -> None:
    """Write the final files of a run, each whole or not at all; `training.json` last.

    final: the weights that the paper evaluates. facts: further entries of the record.
    """
    last = {name: tensor.cpu() for name, tensor in plain_weights(trainer.model).items()}
    save_tensors(output / "model.safetensors", final, {"run": run["hash"]})
    save_tensors(output / "last.safetensors", last, {"run": run["hash"]})
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    writer.writerows(progress.history)
    write_text(output / "history.csv", table.getvalue())
    arrays = {
        f"{name}.{key}": tensor.cpu().numpy()
        for name, observation in trainer.observations.items()
        for key, tensor in observation.tensors.items()
    }
    with atomic_path(output / "observations.npz") as temporary:
        np.savez(temporary, **arrays)
    record = dict(run) | {
        "data": corpus.sha256,
        **facts,
        "tokenizer": corpus.tokenizer,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "derived": facts["derived"] | (trainer.gate.derived() if trainer.gate is not None else {}),
        "precision": trainer.precision,
        "best_step": progress.best_step,
        "best_validation_loss": progress.best_loss,
        "best_validation_bleu": progress.best_bleu,
        "averaged_steps": progress.kept,
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "resumes": progress.resumes,
        "peak_memory_gib": round(peak_memory_gib(trainer.device), 4),
        "device": describe_device(trainer.device),
        "versions": versions(),
        "commit": source_commit(),
    }
    write_json(output / "training.json", record)


def _advice(state: Path) -> str:
    kept = f"the last good state is in {state}" if (state / FILE_NAME).exists() else "no state was saved before"
    return f"{kept}; lower training.schedule.peak or check the data"
