"""A model, a method and an optimiser: everything that one update changes."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils import parametrize

from raretok.errors import UserError
from raretok.methods import Method, TrainingFacts, build_method
from raretok.methods.unigram import log_unigram
from raretok.models import build_model
from raretok.models.output import output_loss
from raretok.training.checkpoint import random_states, restore_random_states
from raretok.training.clock import log
from raretok.training.observation import MicroBatch
from raretok.training.observe import build_observations
from raretok.training.optimiser import Optimiser
from raretok.training.tasks import Batch, Inputs, hidden_of


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

    def __init__(
        self,
        settings: dict,
        facts: TrainingFacts,
        compile_model: bool = False,
        outside_counts: np.ndarray | None = None,
    ):
        """settings: a run's settings. facts: from its task; `len(facts.counts)` is the vocabulary.

        outside_counts: counts of types (V) in another text, for an output bias that starts from them.
        """
        training = settings["training"]
        self.settings, self.device = settings, facts.device
        self.model = build_model(settings["model"], len(facts.counts), seed=settings["seed"]).to(self.device)
        self.model.checkpoint_activations = training.get("activation_checkpointing", False)
        self.model.train()
        start_output_bias(self.model, settings["model"], facts.counts, outside_counts)
        self.padding = facts.padding
        self.method: Method = build_method(settings["method"])
        if hasattr(self.method.penalty, "start"):
            self.method = dataclasses.replace(self.method, penalty=self.method.penalty.start(facts))
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
        # Pairs come in batches of many shapes, for each of which kernels would be made anew.
        if compile_model and self.device == "cuda" and not self.keeps_gradients and "batch_size" in training:
            self.forward = self._compiled(training["batch_size"], settings["model"]["context"])

    @property
    def memory(self) -> int:
        """Updates that the gate remembers: it needs the targets of the one that many ago."""
        return self.gate.memory if self.gate is not None else 0

    def backward(self, batches: list[Batch], step: int, leaving: torch.Tensor | None = None) -> Update:
        """Clipped gradients of update `step` (from 0), left in the parameters.

        batches: its micro-batches. leaving: all targets of the update `memory` updates ago, if there was one.
        """
        self.begin(batches, step, leaving)
        positions = sum(self.positions(targets) for _, targets in batches)
        method, loss, nll = self.method_at(step), 0.0, 0.0
        for inputs, targets in batches:
            result = self.accumulate(inputs, targets, positions, 1 / len(batches), method)
            loss, nll = loss + result.loss.detach(), nll + result.nll
        for observation in self.observations.values():
            observation.end()
        update = Update(loss, nll / positions, self.clip())
        self.running[0] += update.nll
        self.running[1] += 1
        return update

    def begin(self, batches: list[Batch], step: int, leaving: torch.Tensor | None) -> None:
        """What comes before the passes of an update; see `backward`."""
        self.count(batches, leaving)
        for observation in self.observations.values():
            observation.begin(step, self.gate)

    def count(self, batches: list[Batch], leaving: torch.Tensor | None) -> None:
        """Show the targets of the whole update to the gate, before any of them is trained on."""
        if self.gate is None:
            return
        self.gate.begin_update(leaving)
        for _, targets in batches:
            targets = targets.flatten()
            self.gate.count(targets if self.padding is None else targets[targets != self.padding])
        self.frozen = self.gate.frozen()

    def positions(self, targets: torch.Tensor) -> int | torch.Tensor:
        """How many targets are no padding; a scalar where that has to be counted, since reading it waits for a GPU."""
        return targets.numel() if self.padding is None else (targets != self.padding).sum(dtype=torch.float64)

    def method_at(self, step: int) -> Method:
        """The method of update `step` (from 0): a penalty may be for the first updates alone."""
        until = getattr(self.method.penalty, "until", None)
        if until is None or step < until:
            return self.method
        return dataclasses.replace(self.method, penalty=None)

    def accumulate(
        self, inputs: Inputs, targets: torch.Tensor, positions: int | torch.Tensor, share: float, method: Method
    ):
        """Add the gradients of one micro-batch, `share` of an update of `positions` targets, under `method`.

        Returns what `output_loss` does.
        """
        sequences = inputs[-1] if isinstance(inputs, tuple) else inputs
        # A parametrised matrix is made once a pass, though embedding and output layer both use it.
        with parametrize.cached(), self._precision():
            hidden, weight = hidden_of(self.forward, inputs), self.model.output_weight
            result = output_loss(
                method,
                self.gate,
                hidden,
                weight,
                targets,
                inputs=sequences,
                bias=self.model.output_bias,
                padding=self.padding,
                normaliser=positions,
                share=share,
                need_logits=self.keeps_gradients,
            )
        if self.keeps_gradients:
            result.logits.retain_grad()
        result.loss.backward()
        if self.observations:
            self.observe(sequences, targets, hidden, weight, result.logits)
        return result

    def measure(self, step: int, task) -> None:
        """Show the model after `step` updates to the observations, and the task, for its text."""
        for observation in self.observations.values():
            observation.measure(step, self.model, task)

    def observe(self, inputs, targets, hidden, weight, logits) -> None:
        """Show a micro-batch to the observations, after its backward pass; padding is not shown."""
        targets = targets.flatten()
        shown = slice(None) if self.padding is None else targets != self.padding
        batch = MicroBatch(
            inputs.flatten()[shown], targets[shown], hidden.detach().flatten(0, 1)[shown], weight.detach()
        )
        if self.keeps_gradients:
            batch.logits_gradient = logits.grad[shown]
            batch.input_gradient = self.input_vectors.grad.flatten(0, 1)[shown]
        self.show(batch)

    def show(self, batch: MicroBatch) -> None:
        """Show a micro-batch as it is to the observations."""
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
            log(f"torch.compile does not work here ({reason}); training goes on without")
            forward = self.model
        for parameter in self.parameters:
            parameter.grad = None
        restore_random_states(states, self.device)
        return forward

    def mean_loss(self) -> float:
        """Mean of `Update.nll` since the last call; waits for the device."""
        mean = (self.running[0] / self.running[1]).item()
        self.running.zero_()
        return mean

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


def start_output_bias(model: torch.nn.Module, settings: dict, counts, outside_counts: np.ndarray | None) -> None:
    """Let the output bias of a model that has a choice of it start where `settings` (of the model) say.

    counts: of the training's targets, V. outside_counts: of another text, or None. Raises UserError where the bias
    starts from counts of another text and there are none, or they are of other types.
    """
    if not hasattr(model, "set_output_bias"):
        return
    start, outside = settings.get("output_bias"), None
    if start not in (None, "zero", "unigram"):
        if outside_counts is None:
            raise UserError(f"model.output_bias is {start!r}, but no counts were given; say --counts FILE.npy")
        if outside_counts.shape != (len(counts),):
            raise UserError(
                f"the file of --counts has shape {outside_counts.shape}, but the vocabulary has {len(counts):,} types; "
                "count with the tokenizer of this corpus"
            )
        outside = log_unigram(outside_counts)
    model.set_output_bias(log_unigram(counts), outside)
