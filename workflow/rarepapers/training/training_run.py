"""State and files of one run in training: data, trainer, progress, checkpoints.

The loop (`rarepapers.training.loop`) decides when its methods are called. Nothing here handles signals.
"""

import dataclasses
import hashlib
import importlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import parametrize

from rarepapers.core.errors import NotFinite, UserError
from rarepapers.core.files import CHECKPOINT
from rarepapers.experiments.run_code import TASKS, training_code
from rarepapers.machine import processes
from rarepapers.machine.clock import Clock, log
from rarepapers.models.building import average_weights, plain_weights
from rarepapers.training import checkpoint, distributed, finished_files
from rarepapers.training.final_files import hardware_record, write_final_files
from rarepapers.training.progress import HISTORY_ROWS, Progress
from rarepapers.training.random_states import own_seed
from rarepapers.training.schedule import build_schedule
from rarepapers.training.trainer import StepResult, Trainer

# Class of each kind of corpus, in the module named by `rarepapers.experiments.run_code.TASKS`.
TASK_CLASSES = {"characters": "CharacterTask", "language": "LanguageTask", "translation": "TranslationTask"}


class Training:
    """One run in training.

    run: {paper, experiment, method, seed, hash, settings}. corpus: prepared data. output: folder for the final files
    (docs/results.md). state: folder of the unfinished training. outside_counts: counts of the corpus's types (V) in
    another text, for an output bias that starts from them.
    """

    def __init__(self, run: dict, corpus, output: Path, state: Path, outside_counts: np.ndarray | None = None):
        self.run, self.corpus, self.output, self.state = run, corpus, output, state
        self.settings, self.outside_counts = run["settings"], outside_counts
        training = self.settings["training"]
        self.steps, self.average = training["steps"], training.get("average", 0)
        self.select = selection_criterion(training, corpus.kind)
        self.validate_every = training["validation"]["every"]
        self.log_every = max(1, self.steps // HISTORY_ROWS)
        self.name = f"{run['experiment']}/{run['method']} seed {run['seed']}"
        sources = training_code(self.settings, corpus.kind)
        counts = None if outside_counts is None else hashlib.sha256(outside_counts.tobytes()).hexdigest()
        self.identity = {"run": run["hash"], "data": corpus.sha256, "sources": sources, "counts": counts}
        # For the record: number of runs in the job and, if there are several, the job's wall time.
        self.sharing = {"together": 1}

    def restore_finished(self) -> bool:
        """Put the final files in place if this training was finished before; returns whether it was."""
        if not distributed.on_first(
            lambda: finished_files.restore(self.state / finished_files.KEPT, self.output, self.identity)
        ):
            return False
        log(f"{self.name} was finished before; its files are in place again")
        return True

    def start(self, device: str, compile_model: bool) -> None:
        """Build model, optimiser and data, and restore the saved state if there is one.

        Raises UserError if settings are inconsistent or the state belongs to another run.
        """
        self.build(device, compile_model)
        saved = checkpoint.load_checkpoint(self.state, **self.identity)
        found = distributed.gather(None if saved is None else saved[1]["progress"]["step"])
        if len(set(found)) > 1:
            raise UserError(f"not every process finds the same state in {self.state}; is it on a disk that all share?")
        self.go_on(saved)
        if self.progress.resumes:
            log(f"continuing {self.name} at step {self.progress.step} of {self.steps}")
        self.clock = Clock(self.progress, self.steps)

    def build(self, device: str, compile_model: bool, tasks: dict | None = None) -> None:
        """Build model, optimiser and data, as before the first step.

        tasks: by seed, shared by runs that differ only in seed and method; this run's task is taken from there or
        added.
        """
        torch.manual_seed(own_seed(self.settings["seed"], 0))
        training = self.settings["training"]
        module = importlib.import_module(TASKS[self.corpus.kind])
        make = getattr(module, TASK_CLASSES[self.corpus.kind])
        shared = {} if tasks is None else tasks
        self.task = shared.get(self.settings["seed"]) or make(self.corpus, self.settings, device)
        shared[self.settings["seed"]] = self.task
        self.schedule = build_schedule(training["schedule"], self.steps)
        self.trainer = Trainer(self.settings, self.task.facts(), compile_model, self.outside_counts)
        self.snapshots = set(self.trainer.snapshot_steps)
        self.progress, self.best = Progress(), {}

    def go_on(self, saved: tuple[dict, dict] | None) -> None:
        """Restore a saved state, groups of tensors and facts; None starts from the beginning."""
        if saved is None:
            if processes.is_first():
                checkpoint.drop_weights(self.state, "best")
                checkpoint.drop_weights(self.state, "validated")
            return
        groups, facts = saved
        # A run keeps its precision, even if it continues on another machine.
        self.trainer.precision = facts.get("precision", self.trainer.precision)
        self.progress = Progress(**facts["progress"])
        self.progress.resumes += 1
        if processes.is_first():
            self.drop_old_weights()
            if self.progress.best_step and not self.average:
                self.best = checkpoint.load_weights(self.state, "best", self.progress.best_step)
        # For a process without random state in the checkpoint.
        torch.manual_seed(own_seed(self.settings["seed"], self.progress.step))
        self.trainer.load(groups)

    def save(self) -> None:
        """Write the state, from which `start` continues exactly; all processes call it, the first one writes."""
        self.clock.stop()
        groups = self.trainer.state()

        def write() -> None:
            self.save_best()
            facts = self.identity | {"progress": dataclasses.asdict(self.progress)}
            facts["precision"] = self.trainer.precision
            checkpoint.save_checkpoint(self.state, groups, facts)
            self.drop_old_weights()

        distributed.on_first(write)

    def save_best(self) -> None:
        """Write the best weights, if any; call this before writing the checkpoint that names them."""
        if self.best:
            checkpoint.save_weights(self.state, "best", self.best, self.progress.best_step)

    def drop_old_weights(self) -> None:
        """Remove weights that no checkpoint names; call this after writing the checkpoint."""
        checkpoint.drop_weights(self.state, "best", keep=[self.progress.best_step])
        checkpoint.drop_weights(self.state, "validated", keep=self.progress.kept)

    @property
    def at_end(self) -> bool:
        """Whether all steps are done."""
        return self.progress.step == self.steps

    @property
    def must_validate(self) -> bool:
        """Whether the current step is to be validated and has not been."""
        step = self.progress.step
        is_due = step > 0 and step % self.validate_every == 0
        return (is_due or self.at_end) and self.progress.validated_step != step

    def validate(self, must_stop: Callable[[], object]) -> bool:
        """Score the model on the validation text and keep its weights if needed; returns False if it must stop.

        Raises NotFinite if the loss is not finite.
        """
        with parametrize.cached():
            scores = self.task.validate(self.trainer.model, self.progress.step, must_stop)
        if scores is None:
            return False
        self.note(scores)
        return True

    def note(self, scores: dict[str, float]) -> None:
        """Record the scores of a validation, and keep the weights if needed; see `validate`."""
        step = self.progress.step
        if not math.isfinite(scores["valid"]):
            raise NotFinite(
                f"the validation loss of {self.name} is {scores['valid']} at step {step}; {failure_advice(self.state)}"
            )
        is_best = self.progress.note(scores, self.select, self.average)
        # The final model is the average of checkpoints, or the best one.
        if is_best or self.average:
            distributed.on_first(self._keep_weights)
        if len(scores) > 1:
            log(f"step {step}: " + ", ".join(f"{split} {score:.4g}" for split, score in scores.items()))

    def _keep_weights(self) -> None:
        model = self.trainer.model
        weights = {key: tensor.to("cpu", copy=True) for key, tensor in plain_weights(model).items()}
        if self.average:
            checkpoint.save_weights(self.state, "validated", weights, self.progress.step)
        else:
            self.best = weights

    def _save_snapshot(self) -> None:
        checkpoint.save_snapshot(self.state, self.progress.step, self.trainer.model.output_weight)

    def look(self) -> None:
        """Record the observations between steps."""
        if self.progress.step in self.snapshots:
            distributed.on_first(self._save_snapshot)
        with parametrize.cached():
            self.trainer.measure(self.progress.step, self.task)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next step."""
        return self.schedule(self.progress.step)

    def backward(self) -> StepResult:
        """Compute the clipped gradients of the next step in the parameters."""
        return self.trainer.backward(self.task.micro_batches(self.progress.step))

    @property
    def is_log_step(self) -> bool:
        """Whether the next step completes a row of the history."""
        return (self.progress.step + 1) % self.log_every == 0

    def check(self, result: StepResult) -> None:
        """Raise NotFinite if a step's loss or gradient is not finite; waits for the device."""
        loss, norm = result.loss.item(), result.norm.item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise NotFinite(
                f"the loss of {self.name} is not finite at step {self.progress.step} (loss {loss}, gradient norm "
                f"{norm}, learning rate {self.learning_rate:.3g}); {failure_advice(self.state)}"
            )

    def advance(self, result: StepResult) -> None:
        """Count a finished step, and write its row of the history if it completes one."""
        progress, is_log_step, learning_rate = self.progress, self.is_log_step, self.learning_rate
        progress.tokens += self.task.target_tokens(progress.step)
        progress.step += 1
        if is_log_step:
            mean = self.trainer.mean_loss()
            row = [progress.step, "train", mean, learning_rate, result.norm.item(), progress.tokens]
            progress.history.append(row)

    def finish(self) -> None:
        """Write the final files and remove the state except links to them; only the first process does this."""
        machines = hardware_record(self.trainer.device)
        if not processes.is_first():
            return
        progress, state = self.progress, self.state
        checkpoint.gather_snapshots(
            state, self.trainer.snapshot_steps, self.output / "snapshots.safetensors", self.run["hash"]
        )
        final = self.best
        if self.average:
            final = average_weights([checkpoint.load_weights(state, "validated", step) for step in progress.kept])
        facts = {"sources": self.identity["sources"], "counts": self.identity["counts"], "select": self.select}
        facts |= self.sharing | {"derived": self.task.derived(), **machines}
        write_final_files(self.run, self.corpus, self.trainer, final, progress, self.output, facts)
        finished_files.keep(self.output, state / finished_files.KEPT)
        checkpoint.drop_state(state)
        rate = progress.tokens / max(progress.seconds, 1e-9)
        log(
            f"{self.name}: finished {self.steps} steps in {progress.seconds:.0f} s, {rate:,.0f} tokens/s; "
            f"best step {progress.best_step}"
        )


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


def failure_advice(state: Path) -> str:
    """Advice to the user about a training that failed."""
    is_there = (state / CHECKPOINT).exists()
    kept = f"the last good state is in {state}" if is_there else "no state was saved before"
    return f"{kept}; lower training.schedule.peak or check the data"
