"""Trainer: model, loss and optimiser of one run."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils import parametrize

from rarepapers.core.errors import UserError
from rarepapers.experiments.methods import build_method
from rarepapers.machine.clock import log
from rarepapers.machine.device import has_bfloat16
from rarepapers.models.building import build_model
from rarepapers.training.optimiser import Optimiser
from rarepapers.training.probe_interface import MicroBatch, Observation
from rarepapers.training.probes import build_observations
from rarepapers.training.run_loss import RunLoss
from rarepapers.training.tasks import Batch, Inputs, hidden_of
from raretok.methods import TrainingFacts
from raretok.methods.unigram import log_unigram
from raretok.output.transfers import put


@dataclass
class StepResult:
    """Results of a step's backward passes: scalars, left on the device because reading them would wait for it.

    loss: the method's training loss. nll: mean plain -log p, which is logged and comparable between methods. norm: of
    all gradients together, before clipping.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    norm: torch.Tensor


class Trainer:
    """Model, loss and optimiser of one run.

    A step is `backward` (count targets, one pass per micro-batch, clip) and then `step`.
    """

    def __init__(
        self,
        settings: dict,
        facts: TrainingFacts,
        compile_model: bool = False,
        outside_counts: np.ndarray | None = None,
    ):
        """settings: a run's settings. facts: from its task; `len(facts.counts)` is the vocabulary size.

        outside_counts: counts of types (V) in another text, for an output bias that starts from them.
        """
        training = settings["training"]
        self.settings, self.device = settings, facts.device
        self.model = build_model(settings["model"], len(facts.counts), seed=settings["seed"])
        self.model.checkpoint_activations = training.get("activation_checkpointing", False)
        self.model.train()
        # Before the device: norms and singular vectors (and the signs of these) are then the same for all devices.
        start_output_bias(self.model, settings["model"], facts.counts, outside_counts)
        self.padding = facts.padding
        method = build_method(settings["method"])
        for part in (method.penalty, method.embedding_update):
            if part is not None:
                part.parametrise(self.model)
        self.model.to(self.device)
        try:
            self.criterion = RunLoss(method, facts)
        except ValueError as error:
            raise UserError(f"method: {error}") from None
        self.optimiser = Optimiser(self.model, method, training["optimiser"])
        self.parameters = list(self.model.parameters())
        self.clip_norm = training["clip_norm"]
        self.precision = usable_precision(training.get("precision", "float32"), self.device)
        # Sum and number of losses since the last row of the history, left on the device as in `StepResult`.
        self.running = torch.zeros(2, dtype=torch.float64, device=self.device)
        observe = settings["method"].get("observe", [])
        self.observations = build_observations(observe, self.model, training, self.criterion.gate)
        self.keeps_gradients = any(observation.needs_gradients for observation in self.observations.values())
        # Whether any of them sees micro-batches; dropping padding makes the host wait for a GPU.
        self.is_looked_at = any(type(each).look is not Observation.look for each in self.observations.values())
        if self.keeps_gradients:
            self.criterion.keep_logits()
        self.input_vectors: torch.Tensor | None = None
        if self.keeps_gradients:
            self.model.token_embedding.register_forward_hook(self._keep_input_vectors)
        self.forward = self.model
        # Not for batches of pairs: they have many shapes, and each would need new kernels.
        if compile_model and self.device == "cuda" and not self.keeps_gradients and "batch_size" in training:
            self.forward = self._compiled(training["batch_size"], settings["model"]["context"])

    def backward(self, batches: list[Batch]) -> StepResult:
        """Compute the clipped gradients of the next step in the parameters; batches: its micro-batches."""
        self.begin([targets for _, targets in batches])
        loss = 0.0
        for inputs, targets in batches:
            loss = loss + self.accumulate(inputs, targets)
        for observation in self.observations.values():
            observation.end()
        result = StepResult(loss, self.criterion.nll, self.clip())
        self.running[0] += result.nll
        self.running[1] += 1
        return result

    def begin(self, targets: list[torch.Tensor]) -> None:
        """Count the targets of a step before its first micro-batch."""
        self.criterion.begin_step(targets)
        for observation in self.observations.values():
            observation.begin(self.criterion.steps - 1, self.criterion.gate)

    def accumulate(self, inputs: Inputs, targets: torch.Tensor) -> torch.Tensor:
        """Add the gradients of one micro-batch; returns the detached loss."""
        sequences = inputs[-1] if isinstance(inputs, tuple) else inputs
        # Embedding and output layer share a parametrised matrix, which is computed once per pass.
        with parametrize.cached(), self._precision():
            hidden, weight = hidden_of(self.forward, inputs), self.model.output_weight
            loss = self.criterion(hidden, weight, targets, bias=self.model.output_bias, inputs=sequences)
        if self.keeps_gradients:
            self.criterion.logits.retain_grad()
        loss.backward()
        if self.is_looked_at:
            self.observe(sequences, put(targets, self.device), hidden, weight)
        return loss.detach()

    def measure(self, step: int, task) -> None:
        """Pass the model after `step` steps to the observations, and the task for its validation text."""
        for observation in self.observations.values():
            observation.measure(step, self.model, task)

    def observe(self, inputs, targets, hidden, weight) -> None:
        """Pass a micro-batch to the observations after its backward pass, without padding."""
        targets = targets.flatten()
        shown = slice(None) if self.padding is None else (targets != self.padding).nonzero().squeeze(1)
        batch = MicroBatch(
            inputs.flatten()[shown], targets[shown], hidden.detach().flatten(0, 1)[shown], weight.detach()
        )
        if self.keeps_gradients:
            batch.logits_gradient = self.criterion.logits.grad[shown]
            batch.input_gradient = self.input_vectors.grad.flatten(0, 1)[shown]
        for observation in self.observations.values():
            observation.look(batch)

    def clip(self) -> torch.Tensor:
        """Drop the gradients of frozen rows and clip the rest; returns the norm before clipping."""
        frozen = self.criterion.frozen()
        if frozen is not None:
            for matrix in self.optimiser.embeddings:
                matrix.grad.masked_fill_(frozen[:, None], 0.0)
        if self.clip_norm is None:
            return torch.nn.utils.get_total_norm([parameter.grad for parameter in self.parameters])
        return torch.nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)

    def step(self, learning_rate: float) -> None:
        """Update the parameters with their gradients, and clear the gradients."""
        self.optimiser.step(learning_rate, self.criterion.frozen())

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16")

    def _keep_input_vectors(self, module, inputs, output) -> None:
        if output.requires_grad:
            output.retain_grad()
            self.input_vectors = output

    def _compiled(self, size: int, context: int):
        """The compiled model, tried on one batch; the model itself if this machine cannot compile."""
        states = random_states(self.device)
        try:
            forward = torch.compile(self.model, dynamic=False)
            with parametrize.cached(), self._precision():
                hidden = forward(torch.zeros(size, context, dtype=torch.int64, device=self.device))
            hidden.float().sum().backward()
        except Exception as error:  # compilers and their tools raise errors of many types
            reason = str(error).strip().split("\n")[0]
            log(f"torch.compile does not work here ({reason}); training goes on without")
            forward = self.model
        for parameter in self.parameters:
            parameter.grad = None
        restore_random_states(states, self.device)
        return forward

    def mean_loss(self) -> float:
        """Mean of `StepResult.nll` since the last call; waits for the device."""
        mean = (self.running[0] / self.running[1]).item()
        self.running.zero_()
        return mean

    def state(self) -> dict[str, dict[str, torch.Tensor]]:
        """All tensors of the training, by group."""
        groups = {
            "model": self.model.state_dict(),
            # Without the parts, which the run hash identifies.
            "criterion": self.criterion.state(),
            "optimiser": self.optimiser.state(),
            "random": random_states(self.device),
            "running": {"loss": self.running},
        }
        for name, observation in self.observations.items():
            groups[f"observe-{name}"] = observation.tensors
        return groups

    @property
    def snapshot_steps(self) -> list[int]:
        """Increasing numbers of steps after which the output matrix is saved."""
        return self.observations["snapshots"].steps if "snapshots" in self.observations else []

    def load(self, groups: dict[str, dict[str, torch.Tensor]]) -> None:
        """Restore the groups of a checkpoint."""
        self.model.load_state_dict(groups["model"])
        self.optimiser.load(groups["optimiser"])
        restore_random_states(groups["random"], self.device)
        self.running.copy_(groups["running"]["loss"])
        self.criterion.load(groups["criterion"])
        for name, observation in self.observations.items():
            for key, tensor in observation.tensors.items():
                tensor.copy_(groups[f"observe-{name}"][key])


def random_states(device: str) -> dict[str, torch.Tensor]:
    """States of torch's generators, for the CPU and the GPU in use."""
    states = {"cpu": torch.get_rng_state()}
    if device == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: str) -> None:
    """Restore the states of `random_states`; that of a GPU only if one is in use now."""
    torch.set_rng_state(states["cpu"])
    if device == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def usable_precision(wanted: str, device: str) -> str:
    """`training.precision` if the device supports it, else float32 with a line in the log."""
    if wanted == "bfloat16" and not has_bfloat16(device):
        lack = "this GPU has no bfloat16" if device == "cuda" else "this CPU has neither AVX512-BF16 nor AMX"
        log(f"{lack}; training.precision is bfloat16, but training is in float32")
        return "float32"
    return wanted


def start_output_bias(model: torch.nn.Module, settings: dict, counts, outside_counts: np.ndarray | None) -> None:
    """Initialise the output bias of a model as its `settings` say, if the model has such a setting.

    counts: of the training targets, (V,). outside_counts: of another text, or None. Raises UserError if counts of
    another text are needed and missing, or have another shape.
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
