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
from torch.nn.utils import parametrize

from raretok.errors import Interrupted, UserError
from raretok.files import atomic_path, write_json, write_text
from raretok.methods import Method, TrainingFacts, build_method, part_names
from raretok.models import build_model, plain_weights
from raretok.models.output import output_loss
from raretok.sources import digest_of, training_sources
from raretok.training import finished
from raretok.training.checkpoint import (
    FILE_NAME,
    drop_best,
    drop_state,
    gather_snapshots,
    load_best,
    load_checkpoint,
    random_states,
    restore_random_states,
    save_best,
    save_checkpoint,
    save_snapshot,
    save_tensors,
)
from raretok.training.device import describe_device, peak_memory_gib, source_commit, versions
from raretok.training.observe import MicroBatch, build_observations
from raretok.training.optimiser import Optimiser
from raretok.training.schedule import build_schedule
from raretok.training.signals import StopFlag
from raretok.training.tasks import TASKS, Batch

HISTORY_COLUMNS = ("step", "split", "loss", "learning_rate", "gradient_norm", "tokens")
# A training writes about this many rows of its training loss, whatever its length.
HISTORY_ROWS = 100
# Seconds between two progress lines in the log.
PROGRESS_SECONDS = 10.0


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
    """The part of a training's state that is numbers: saved as JSON, restored exactly."""

    step: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    resumes: int = 0
    validated_step: int = 0
    history: list = dataclasses.field(default_factory=list)


@dataclass
class Update:
    """What an update's backward passes gave: scalars, left on the device, since reading waits.

    loss: the method's training loss. nll: mean plain -log p, what is logged and comparable between methods.
    norm: of all gradients together, before clipping.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    norm: torch.Tensor


class Trainer:
    """A model, a method and an optimiser: everything that one update changes.

    An update is `backward` (count, then a pass for each micro-batch, then clip) and `step`. Several processes would
    share it so: the gate sums its counts over them, gradients are summed between the passes and clipping.
    """

    def __init__(self, settings: dict, facts: TrainingFacts, compile_model: bool = False):
        """settings: a run's settings. facts: from its task; `len(facts.counts)` is the vocabulary."""
        training = settings["training"]
        self.settings, self.device = settings, facts.device
        self.model = build_model(settings["model"], len(facts.counts), seed=settings["seed"]).to(self.device)
        self.model.checkpoint_activations = training.get("activation_checkpointing", False)
        self.model.train()
        self.method: Method = build_method(settings["method"])
        if hasattr(self.method.penalty, "parametrise"):
            self.method.penalty.parametrise(self.model)
        self.gate = start_gate(self.method.gate, facts)
        # Types whose rows this update leaves alone (V, bool), or None.
        self.frozen: torch.Tensor | None = None
        self.optimiser = Optimiser(self.model, self.method, training["optimiser"])
        self.parameters = list(self.model.parameters())
        self.clip_norm = training["clip_norm"]
        half = self.device == "cuda" and training.get("precision", "float32") == "bfloat16"
        self.precision = "bfloat16" if half else "float32"
        # Sum and number of the losses since the last row of the history; on the device, since reading waits.
        self.running = torch.zeros(2, dtype=torch.float64, device=self.device)
        observe = settings["method"].get("observe", [])
        self.observations = build_observations(observe, self.model, training, self.gate)
        self.keeps_gradients = any(observation.needs_gradients for observation in self.observations.values())
        self.input_vectors: torch.Tensor | None = None
        if self.keeps_gradients:
            self.model.token_embedding.register_forward_hook(self._keep_input_vectors)
        self.forward = self.model
        if compile_model and self.device == "cuda" and not self.keeps_gradients:
            self.forward = self._compiled(training["batch_size"], settings["model"]["context"])

    @property
    def memory(self) -> int:
        """Updates that the gate remembers: it needs the targets of the one that many ago."""
        return self.gate.memory if self.gate is not None else 0

    def backward(self, batches: list[Batch], step: int, leaving: torch.Tensor | None = None) -> Update:
        """Clipped gradients of update `step` (from 0), left in the parameters.

        batches: its micro-batches. leaving: all targets of the update `memory` updates ago, if there was one.
        """
        self.count(batches, leaving)
        for observation in self.observations.values():
            observation.begin(step, self.gate)
        positions = sum(targets.numel() for _, targets in batches)
        loss = nll = 0.0
        for inputs, targets in batches:
            result = self.accumulate(inputs, targets, positions, 1 / len(batches))
            loss, nll = loss + result.loss.detach(), nll + result.nll
        for observation in self.observations.values():
            observation.end()
        update = Update(loss, nll / positions, self.clip())
        self.running[0] += update.nll
        self.running[1] += 1
        return update

    def count(self, batches: list[Batch], leaving: torch.Tensor | None) -> None:
        """Show the targets of the whole update to the gate, before any of them is trained on."""
        if self.gate is None:
            return
        self.gate.begin_update(leaving)
        for _, targets in batches:
            self.gate.count(targets.flatten())
        self.frozen = self.gate.frozen()

    def accumulate(self, inputs: torch.Tensor, targets: torch.Tensor, positions: int, share: float):
        """Add the gradients of one micro-batch (B x T each), `share` of an update of `positions` targets.

        Returns what `output_loss` does.
        """
        # A parametrised matrix is made once a pass, though embedding and output layer both use it.
        with parametrize.cached(), self._precision():
            hidden, weight = self.forward(inputs), self.model.output_weight
            result = output_loss(
                self.method,
                self.gate,
                hidden,
                weight,
                targets,
                inputs=inputs,
                bias=self.model.output_bias,
                normaliser=positions,
                share=share,
                need_logits=self.keeps_gradients,
            )
        if self.keeps_gradients:
            result.logits.retain_grad()
        result.loss.backward()
        if self.observations:
            self.observe(inputs, targets, hidden, weight, result.logits)
        return result

    def observe(self, inputs, targets, hidden, weight, logits) -> None:
        """Show a micro-batch to the observations, after its backward pass."""
        batch = MicroBatch(inputs.flatten(), targets.flatten(), hidden.detach().flatten(0, 1), weight.detach())
        if self.keeps_gradients:
            batch.logits_gradient = logits.grad
            batch.input_gradient = self.input_vectors.grad.flatten(0, 1)
        for observation in self.observations.values():
            observation.look(batch)

    def clip(self) -> torch.Tensor:
        """Drop the gradients of frozen rows, clip the rest; returns the norm before clipping."""
        if self.frozen is not None:
            for matrix in self.optimiser.embeddings:
                matrix.grad.masked_fill_(self.frozen[:, None], 0.0)
        if self.clip_norm is None:
            return torch.nn.utils.get_total_norm([parameter.grad for parameter in self.parameters])
        return torch.nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)

    def step(self, learning_rate: float) -> None:
        """Update the parameters by their gradients, and clear those."""
        self.optimiser.step(learning_rate, self.frozen)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16")

    def _keep_input_vectors(self, module, inputs, output) -> None:
        if output.requires_grad:
            output.retain_grad()
            self.input_vectors = output

    def _compiled(self, size: int, context: int):
        """The model compiled, tried on one batch; as it is where this machine cannot compile."""
        states = random_states(self.device)
        try:
            forward = torch.compile(self.model, dynamic=False)
            with parametrize.cached(), self._precision():
                hidden = forward(torch.zeros(size, context, dtype=torch.int64, device=self.device))
            hidden.float().sum().backward()
        except Exception as error:  # whatever a compiler's chain of tools raises
            reason = str(error).strip().split("\n")[0]
            _log(f"torch.compile does not work here ({reason}); training goes on without")
            forward = self.model
        for parameter in self.parameters:
            parameter.grad = None
        restore_random_states(states, self.device)
        return forward

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

    @property
    def snapshot_steps(self) -> list[int]:
        """Numbers of updates after which the output matrix is kept, rising."""
        return self.observations["snapshots"].steps if "snapshots" in self.observations else []

    def load(self, groups: dict[str, dict[str, torch.Tensor]]) -> None:
        """Take over the groups of a checkpoint."""
        self.model.load_state_dict(groups["model"])
        self.optimiser.load(groups["optimiser"])
        restore_random_states(groups["random"], self.device)
        self.running.copy_(groups["running"]["loss"])
        if self.gate is not None:
            # A gate without counters has no tensors, so its group is not there.
            self.gate.load(groups.get("gate", {}))
        for name, observation in self.observations.items():
            for key, tensor in observation.tensors.items():
                tensor.copy_(groups[f"observe-{name}"][key])


def start_gate(gate, facts: TrainingFacts):
    """The state of a method's gate for a training, or None; UserError where it does not fit the training."""
    try:
        return gate.start(facts) if gate is not None else None
    except ValueError as error:
        raise UserError(f"method.gate ({gate.__module__.rpartition('.')[2]}): {error}") from None


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
    trainer = Trainer(settings, task.facts(), options.compile)
    snapshots = set(trainer.snapshot_steps)
    progress, best = Progress(), {}
    saved = load_checkpoint(state, **identity)
    if saved is None:
        drop_best(state)
    else:
        groups, facts = saved
        progress = Progress(**facts["progress"])
        progress.resumes += 1
        drop_best(state, keep=progress.best_step)
        best = load_best(state, progress.best_step) if progress.best_step else {}
        trainer.load(groups)
        _log(f"continuing {name} at step {progress.step} of {steps}")

    clock = Clock(progress, steps)

    def save() -> None:
        clock.stop()
        if best:
            save_best(state, best, progress.best_step)
        save_checkpoint(state, trainer.state(), identity | {"progress": dataclasses.asdict(progress)})
        drop_best(state, keep=progress.best_step)

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
                loss = task.validation_loss(trainer.model, progress.step, lambda: stop.signal)
            if loss is None:
                save_and_stop()
            if not math.isfinite(loss):
                raise UserError(f"the validation loss of {name} is {loss} at step {progress.step}; {_advice(state)}")
            progress.validated_step = progress.step
            progress.history.append([progress.step, "valid", loss, "", "", progress.tokens])
            if loss < progress.best_loss:
                progress.best_loss, progress.best_step = loss, progress.step
                best = {key: tensor.to("cpu", copy=True) for key, tensor in plain_weights(trainer.model).items()}
        if progress.step in snapshots:
            save_snapshot(state, progress.step, trainer.model.output_weight)
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
        progress.tokens += task.tokens_per_step

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
    finish(run, corpus, trainer, best, progress, output, sources)
    finished.keep(output, state / "finished")
    drop_state(state)
    rate = progress.tokens / max(progress.seconds, 1e-9)
    _log(f"finished {steps} steps in {progress.seconds:.0f} s, {rate:,.0f} tokens/s; best step {progress.best_step}")


def finish(run, corpus, trainer: Trainer, best: dict, progress: Progress, output: Path, sources: str) -> None:
    """Write the final files of a run, each whole or not at all; `training.json` last."""
    last = {name: tensor.cpu() for name, tensor in plain_weights(trainer.model).items()}
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
        "tokenizer": corpus.tokenizer,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "derived": trainer.gate.derived() if trainer.gate is not None else {},
        "precision": trainer.precision,
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
