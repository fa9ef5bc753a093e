"""The training loop, top to bottom."""

import csv
import dataclasses
import io
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from raretok.errors import Interrupted, UserError
from raretok.files import atomic_path, write_json, write_text
from raretok.methods import Method, build_method, part_names
from raretok.models import build_model
from raretok.models.output import output_loss
from raretok.sources import digest_of, training_sources
from raretok.training import finished
from raretok.training.checkpoint import (
    FILE_NAME,
    load_checkpoint,
    random_states,
    restore_random_states,
    save_checkpoint,
    save_tensors,
)
from raretok.training.device import describe_device, peak_memory_gib, source_commit, versions
from raretok.training.observe import build_observations
from raretok.training.optimiser import Optimiser
from raretok.training.schedule import build_schedule
from raretok.training.signals import StopFlag
from raretok.training.tasks import TASKS

HISTORY_COLUMNS = ("step", "split", "loss", "learning_rate", "gradient_norm", "tokens")
# A training writes about this many rows of its training loss, whatever its length.
HISTORY_ROWS = 100
# Seconds between two progress lines in the log.
PROGRESS_SECONDS = 10.0


@dataclass
class Options:
    """How to train, as opposed to what: nothing here changes a result.

    checkpoint_seconds: how often the state is saved. checkpoint_steps: also after every so many updates.
    """

    device: str = "cpu"
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None


@dataclass
class Progress:
    """The part of a training's state that is numbers: saved as JSON, restored exactly."""

    step: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    resumes: int = 0
    validated_step: int = 0
    history: list = dataclasses.field(default_factory=list)


class Trainer:
    """A model, a method and an optimiser: everything that one update changes."""

    def __init__(self, settings: dict, vocabulary: int, device: str = "cpu"):
        self.settings = settings
        self.model = build_model(settings["model"], vocabulary, seed=settings["seed"]).to(device)
        self.model.train()
        self.method: Method = build_method(settings["method"])
        self.gate = self.method.gate.start(vocabulary, device) if self.method.gate else None
        training = settings["training"]
        self.optimiser = Optimiser(self.model, self.method, training["optimiser"])
        self.clip_norm = training["clip_norm"]
        self.device = device
        # Sum and number of the losses since the last row of the history; on the device, since reading waits.
        self.running = torch.zeros(2, dtype=torch.float64, device=device)
        self.observations = build_observations(settings["method"].get("observe", []), self.model)
        self.input_vectors: torch.Tensor | None = None
        if self.observations:
            self.model.token_embedding.register_forward_hook(self._keep_input_vectors)

    def _keep_input_vectors(self, module, inputs, output) -> None:
        if output.requires_grad:
            output.retain_grad()
            self.input_vectors = output

    def backward(self, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and clipped gradients of one batch (B x T each); returns the loss and the norm before clipping."""
        targets = targets.flatten()
        if self.gate is not None:
            self.gate.begin_update()
            self.gate.count(targets)
        hidden = self.model(inputs).flatten(0, 1)
        loss, logits = output_loss(self.method, self.gate, hidden, self.model.output_weight, targets)
        if self.observations:
            logits.retain_grad()
        loss.backward()
        for observation in self.observations.values():
            vectors = self.input_vectors.grad.flatten(0, 1)
            observation.record(logits.grad, hidden, targets, inputs.flatten(), vectors)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        loss = loss.detach()
        self.running += torch.stack([loss, torch.ones_like(loss)])
        return loss, norm

    def state(self) -> dict[str, dict[str, torch.Tensor]]:
        """All tensors of the training, in groups."""
        groups = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state(),
            "random": random_states(self.device),
            "running": {"loss": self.running},
        }
        if self.gate is not None:
            groups["gate"] = self.gate.state()
        for name, observation in self.observations.items():
            groups[f"observe-{name}"] = observation.tensors
        return groups

    def load(self, groups: dict[str, dict[str, torch.Tensor]]) -> None:
        """Take over the groups of a checkpoint."""
        self.model.load_state_dict(groups["model"])
        self.optimiser.load(groups["optimiser"])
        restore_random_states(groups["random"], self.device)
        self.running.copy_(groups["running"]["loss"])
        if self.gate is not None:
            self.gate.load(groups["gate"])
        for name, observation in self.observations.items():
            for key, tensor in observation.tensors.items():
                tensor.copy_(groups[f"observe-{name}"][key])


def train(run: dict, corpus, output: Path, state: Path, options: Options) -> None:
    """Train one run to its end, continuing from `state` when that holds a part of it.

    run: {paper, experiment, method, seed, hash, settings}. corpus: prepared data. output: the folder for the
    final files (docs/architecture.md). state: the folder of the unfinished training; what stays there at the end
    are links to the final files. Raises Interrupted when a signal stopped it with the state saved, UserError when
    the loss is not finite or the state belongs to another run.
    """
    stop = StopFlag()
    settings = run["settings"]
    training, validation = settings["training"], settings["training"]["validation"]
    steps = training["steps"]
    name = f"{run['experiment']}/{run['method']} seed {run['seed']}"
    sources = digest_of(training_sources(part_names(settings["method"])))
    identity = {"run": run["hash"], "data": corpus.sha256, "sources": sources}
    if finished.restore(state / "finished", output, identity):
        _log(f"{name} was finished before; its files are in place again")
        return
    if options.device == "cpu":
        torch.set_num_threads(training["threads"])
    torch.manual_seed(settings["seed"])

    task = TASKS[corpus.kind](corpus, settings, options.device)
    schedule = build_schedule(training["schedule"], steps)
    trainer = Trainer(settings, task.vocabulary, options.device)
    progress, best = Progress(), {}
    saved = load_checkpoint(state, **identity)
    if saved is not None:
        groups, facts = saved
        progress = Progress(**facts["progress"])
        progress.resumes += 1
        best = groups.pop("best", {})
        trainer.load(groups)
        _log(f"continuing {name} at step {progress.step} of {steps}")

    clock = Clock(progress, steps)

    def save() -> None:
        clock.stop()
        groups = trainer.state() | ({"best": best} if best else {})
        save_checkpoint(state, groups, identity | {"progress": dataclasses.asdict(progress)})

    def save_and_stop() -> None:
        save()
        raise Interrupted(
            f"{stop.signal}: stopped at step {progress.step} of {steps}; the state is saved, start the same "
            "command again to continue"
        )

    log_every = max(1, steps // HISTORY_ROWS)
    last_save = time.monotonic()
    while True:
        at_end = progress.step == steps
        is_due = progress.step > 0 and progress.step % validation["every"] == 0
        if (is_due or at_end) and progress.validated_step != progress.step:
            loss = task.validation_loss(trainer.model, progress.step, lambda: stop.signal)
            if loss is None:
                save_and_stop()
            if not math.isfinite(loss):
                raise UserError(f"the validation loss of {name} is {loss} at step {progress.step}; {_advice(state)}")
            progress.validated_step = progress.step
            progress.history.append([progress.step, "valid", loss, "", "", progress.tokens])
            if loss < progress.best_loss:
                progress.best_loss, progress.best_step = loss, progress.step
                best = {name: tensor.detach().cpu().clone() for name, tensor in trainer.model.state_dict().items()}
        if at_end:
            break

        learning_rate = schedule(progress.step)
        loss, norm = trainer.backward(*task.batch(progress.step))
        is_log_step = (progress.step + 1) % log_every == 0
        is_save_step = stop.signal is not None or time.monotonic() - last_save >= options.checkpoint_seconds
        if options.checkpoint_steps:
            is_save_step = is_save_step or (progress.step + 1) % options.checkpoint_steps == 0
        # On a GPU reading a number waits for it, so it is read only when something is written.
        if options.device == "cpu" or is_log_step or is_save_step:
            loss, norm = loss.item(), norm.item()
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise UserError(
                    f"the loss of {name} is not finite at step {progress.step} (loss {loss}, gradient norm {norm}, "
                    f"learning rate {learning_rate:.3g}); {_advice(state)}"
                )
        trainer.optimiser.step(learning_rate)
        progress.step += 1
        progress.tokens += task.tokens_per_step

        if is_log_step:
            mean = (trainer.running[0] / trainer.running[1]).item()
            trainer.running.zero_()
            progress.history.append([progress.step, "train", mean, learning_rate, norm, progress.tokens])
        if is_save_step:
            if stop.signal:
                save_and_stop()
            save()
            last_save = time.monotonic()
        clock.report(loss)

    clock.stop()
    finish(run, corpus, trainer, best, progress, output, sources)
    finished.keep(output, state / "finished")
    (state / FILE_NAME).unlink(missing_ok=True)
    rate = progress.tokens / max(progress.seconds, 1e-9)
    _log(f"finished {steps} steps in {progress.seconds:.0f} s, {rate:,.0f} tokens/s; best step {progress.best_step}")


def finish(run, corpus, trainer: Trainer, best: dict, progress: Progress, output: Path, sources: str) -> None:
    """Write the final files of a run, each whole or not at all; `training.json` last."""
    last = {name: tensor.detach().cpu() for name, tensor in trainer.model.state_dict().items()}
    save_tensors(output / "model.safetensors", best, {"run": run["hash"]})
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
        "sources": sources,
        "best_step": progress.best_step,
        "best_validation_loss": progress.best_loss,
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


class Clock:
    """Wall time of a training over all its attempts, and its progress line."""

    def __init__(self, progress: Progress, steps: int):
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
        _log(
            f"step {progress.step}/{self.steps}  loss {float(loss):.4f}  "
            f"{progress.tokens / seconds:,.0f} tokens/s  {left / 60:.1f} min left"
        )
        self.reported = now


def _advice(state: Path) -> str:
    kept = f"the last good state is in {state}" if (state / FILE_NAME).exists() else "no state was saved before"
    return f"{kept}; lower training.schedule.peak or check the data"


def _log(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)
