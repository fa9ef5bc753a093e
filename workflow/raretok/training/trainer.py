"""A model, a method and an optimiser: everything that one update changes."""

import contextlib
import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils import parametrize

from raretok.core.errors import UserError
from raretok.machine import processes
from raretok.machine.clock import log
from raretok.machine.device import has_bfloat16
from raretok.methods import Method, TrainingFacts, build_method
from raretok.models import build_model
from raretok.models.output_layer import output_loss
from raretok.models.target_places import Places
from raretok.training import distributed, random_states
from raretok.training.bias_start import start_output_bias
from raretok.training.optimiser import Optimiser
from raretok.training.probe_interface import MicroBatch
from raretok.training.probes import build_observations
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

    An update is `backward` (count, then a pass for each micro-batch, then clip) and `step`. Several processes share
    each micro-batch's rows: the gate sums its counts over them, and the last pass their gradients.
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
        self.precision = usable_precision(training.get("precision", "float32"), self.device)
        # Sum and number of the losses since the last row of the history; on the device, since reading waits.
        self.running = torch.zeros(2, dtype=torch.float64, device=self.device)
        observe = settings["method"].get("observe", [])
        self.observations = build_observations(observe, self.model, training, self.gate)
        self.keeps_gradients = any(observation.needs_gradients for observation in self.observations.values())
        self.input_vectors: torch.Tensor | None = None
        if self.keeps_gradients:
            self.model.token_embedding.register_forward_hook(self._keep_input_vectors)
        self.forward, self.is_warm = self.model, True
        # Pairs come in batches of many shapes, for each of which kernels would be made anew.
        if compile_model and self.device == "cuda" and not self.keeps_gradients and "batch_size" in training:
            rows = len(distributed.share(range(training["batch_size"])))
            self.forward = self._compiled(rows, settings["model"]["context"]) if rows else self.model
        if processes.size() > 1:
            self.forward, self.is_warm = distributed.parallel(self.forward), False

    @property
    def memory(self) -> int:
        """Updates that the gate remembers: it needs the targets of the one that many ago."""
        return self.gate.memory if self.gate is not None else 0

    def backward(self, batches: list[Batch], step: int, leaving: torch.Tensor | None = None) -> Update:
        """Clipped gradients of update `step` (from 0), left in the parameters.

        batches: its whole micro-batches. leaving: all targets of the update `memory` updates ago, if there was one.
        """
        self.begin(batches, step, leaving)
        positions = sum(self.positions(targets) for _, targets in batches)
        method, loss, nll = self.method_at(step), 0.0, 0.0
        if not self.is_warm:
            self._warm_up(batches[0], method)
        for number, (inputs, targets) in enumerate(batches, start=1):
            with contextlib.nullcontext() if number == len(batches) else self._apart():
                result = self.accumulate(inputs, targets, positions, 1 / len(batches), method)
            loss, nll = loss + result.loss.detach(), nll + result.nll
        if processes.size() > 1:
            loss, nll = distributed.total(torch.stack([loss.double(), nll]))
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
        self.gate.begin_update(None if leaving is None else distributed.share(leaving))
        for _, targets in batches:
            targets = distributed.share(targets.flatten())
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

        Of several processes each adds those of its rows. Returns what `output_loss` does.
        """
        inputs, own = distributed.share(inputs), distributed.share(targets)
        hidden, weight, result = self._loss(inputs, own, positions, share / processes.size(), method, targets)
        result.loss.backward()
        if self.observations:
            self.observe(inputs[-1] if isinstance(inputs, tuple) else inputs, own, hidden, weight, result.logits)
        return result

    def _loss(self, inputs: Inputs, own, positions: int | torch.Tensor, share: float, method: Method, targets):
        """Hidden vectors, output matrix and `output_loss` of this process's inputs and `own` targets."""
        places = Places(self.gate, own, self.padding)
        # A parametrised matrix is made once a pass, though embedding and output layer both use it.
        with parametrize.cached(), self._precision():
            hidden, weight = hidden_of(self.forward, inputs), self.model.output_weight
            result = output_loss(
                method,
                self.gate,
                hidden,
                weight,
                own,
                inputs=inputs[-1] if isinstance(inputs, tuple) else inputs,
                bias=self.model.output_bias,
                padding=self.padding,
                normaliser=positions,
                share=share,
                batch=targets if processes.size() > 1 else None,
                need_logits=self.keeps_gradients,
                places=places,
            )
        if self.keeps_gradients:
            result.logits.retain_grad()
        return hidden, weight, result

    def _apart(self):
        """Within this, backward passes sum no gradients over processes: there are more to come."""
        return self.forward.no_sync() if processes.size() > 1 else contextlib.nullcontext()

    def _warm_up(self, batch: Batch, method: Method) -> None:
        """A pass for nothing: after its first, DistributedDataParallel sums in another order.

        So that a training that was interrupted sums as the unbroken one does, no update is that first pass.
        """
        states = random_states.random_states(self.device)
        inputs, targets = batch
        self._loss(distributed.share(inputs), distributed.share(targets), 1, 1.0, method, targets)[2].loss.backward()
        for parameter in self.parameters:
            parameter.grad = None
        random_states.restore_random_states(states, self.device)
        self.is_warm = True

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
        states = random_states.random_states(self.device)
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
        random_states.restore_random_states(states, self.device)
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
            "random": random_states.gathered_states(self.device),
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
        random_states.restore_gathered_states(groups["random"], self.device)
        self.running.copy_(groups["running"]["loss"])
        if self.gate is not None:
            # A gate without counters has no tensors, so its group is not there.
            self.gate.load(groups.get("gate", {}))
        for name, observation in self.observations.items():
            for key, tensor in observation.tensors.items():
                tensor.copy_(groups[f"observe-{name}"][key])


def usable_precision(wanted: str, device: str) -> str:
    """`training.precision` where the device has it, else float32 with a line in the log."""
    if wanted == "bfloat16" and not has_bfloat16(device):
        log("this CPU has neither AVX512-BF16 nor AMX; training.precision is bfloat16, but training is in float32")
        return "float32"
    return wanted


def start_gate(gate, facts: TrainingFacts):
    """The state of a method's gate for a training, or None; UserError where it does not fit the training."""
    try:
        return gate.start(facts) if gate is not None else None
    except ValueError as error:
        raise UserError(f"method.gate ({gate.__module__.rpartition('.')[2]}): {error}") from None
