"""Joint training of several runs of one shape in lock-step, with batched operations.

Every member is an ordinary `Training` with its own data, gate, observations, progress and files. Its parameters and
moments are slices of stacked tensors, so that everything except a step and a validation works as for a single run.

Shapes: M members, B sequences, T positions, N = B T, width d, vocabulary size V.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional as F

from rarepapers.models.stacked_decoder import StackedDecoder
from rarepapers.models.stacked_output import StackedOutput
from rarepapers.training.joint_optimiser import StackedOptimiser, update_and_decay
from rarepapers.training.optimiser import Optimiser
from rarepapers.training.probe_interface import MicroBatch
from rarepapers.training.trainer import StepResult
from rarepapers.training.training_run import Training
from raretok.output.transfers import put


class JointTrainer:
    """M trainings whose settings differ only in seed and method (`joint_runs.shape_of`), all built, none started."""

    def __init__(self, members: Sequence[Training]):
        self.members = sorted(members, key=lambda member: embedding_treatment(member.trainer.optimiser))
        self.trainers = [member.trainer for member in self.members]
        first = self.trainers[0]
        self.device, self.clip_norm = first.device, first.clip_norm
        self.model = StackedDecoder([trainer.model for trainer in self.trainers])
        self.parameters = dict(self.model.named_parameters())
        self.running = torch.zeros(len(members), 2, dtype=torch.float64, device=self.device)
        for trainer, own in zip(self.trainers, self.running.unbind(), strict=True):
            trainer.running = own
        self.optimiser = StackedOptimiser(self.parameters, [trainer.optimiser for trainer in self.trainers])
        # The matrices with one row per type; a single one if tied.
        self.embeddings = list(
            {id(matrix): matrix for matrix in (self.model.input_weight, self.model.output_weight)}.values()
        )
        # Methods with one seed share their batches.
        self.tasks = list({member.task.seed: member.task for member in self.members}.values())
        seeds = [task.seed for task in self.tasks]
        # For each member the index of its seed.
        self.seeds = [seeds.index(member.task.seed) for member in self.members]
        self.seed_of = torch.tensor(self.seeds, device=self.device)
        self.output: StackedOutput | None = None
        self.penalised: list[bool] = []

    def backward(self) -> StepResult:
        """Clipped gradients of the next step, left in the stacked parameters; M losses and norms."""
        blocks = [task.draw(self.trainers[0].criterion.steps) for task in self.tasks]
        inputs, targets = self.spread(blocks)
        on_host = [torch.from_numpy(blocks[seed][1]).flatten() for seed in self.seeds]
        for trainer, own in zip(self.trainers, on_host, strict=True):
            trainer.begin([own])
        x = self.model.embeddings(inputs)
        if any(trainer.keeps_gradients for trainer in self.trainers):
            x.retain_grad()
        hidden = self.model.hidden(x)
        flat_hidden, flat_targets = self.by_member(hidden.detach()), targets.flatten(1)
        gates = {k: trainer.criterion.gate for k, trainer in enumerate(self.trainers)}
        gatings = {k: gate.gates(on_host[k]) for k, gate in gates.items() if gate is not None}
        gatings = {
            k: [put(part, self.device) for part in gating] for k, gating in gatings.items() if gating is not None
        }
        weight = self.model.output_weight
        result = self.output_now()(flat_hidden, weight.detach(), flat_targets, inputs, gatings)
        torch.autograd.backward([hidden, weight], [result.hidden.view_as(hidden), result.weight])
        for k, trainer in enumerate(self.trainers):
            if not trainer.observations:
                continue
            batch = MicroBatch(inputs[k].flatten(), flat_targets[k], flat_hidden[k], weight.detach()[k])
            if trainer.keeps_gradients:
                batch.logits_gradient, batch.input_gradient = result.logits[k], self.by_member(x.grad)[k]
            trainer.show(batch)
            for observation in trainer.observations.values():
                observation.end()
        self.running[:, 0] += result.nll
        self.running[:, 1] += 1
        return StepResult(result.loss, result.nll, self.clip())

    def output_now(self) -> StackedOutput:
        """The output layer of this step; a new one when a penalty has ended."""
        methods = [trainer.criterion.method for trainer in self.trainers]
        penalised = [method.penalty is not None for method in methods]
        if self.output is None or penalised != self.penalised:
            self.output, self.penalised = StackedOutput(methods, self.device), penalised
        return self.output

    def by_member(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors MB x T x d as M x N x d, by member."""
        return vectors.view(len(self.members), -1, vectors.shape[-1])

    def clip(self) -> torch.Tensor:
        """Drop the gradients of frozen rows and clip each member's rest; returns the norms before clipping, (M,)."""
        for k, frozen in self.frozen():
            for matrix in self.embeddings:
                matrix.grad[k].masked_fill_(frozen, 0.0)
        gradients = [parameter.grad for parameter in self.parameters.values()]
        norms = torch.stack([torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients])
        norm = torch.linalg.vector_norm(norms, dim=0)
        if self.clip_norm is not None:
            # As torch.nn.utils.clip_grad_norm_.
            factor = (self.clip_norm / (norm + 1e-6)).clamp_max(1)
            for gradient in gradients:
                gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))
        return norm

    def frozen(self) -> list[tuple[int, torch.Tensor]]:
        """Members with frozen rows in this step, and these rows, V x 1 (bool)."""
        found = [(k, trainer.criterion.frozen()) for k, trainer in enumerate(self.trainers)]
        return [(k, rows[:, None]) for k, rows in found if rows is not None]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update the parameters of all members with their gradients, and clear the gradients."""
        kept = [(matrix[k], matrix[k].clone(), frozen) for k, frozen in self.frozen() for matrix in self.embeddings]
        self.optimiser.step(learning_rate)
        for matrix, before, frozen in kept:
            matrix.copy_(torch.where(frozen, before, matrix))
        for k, trainer in enumerate(self.trainers):
            if hasattr(trainer.optimiser.update, "after_step"):
                trainer.optimiser.update.after_step(self.model.output_weight[k])

    @torch.no_grad()
    def validation_losses(self, step: int, must_stop: Callable[[], object]) -> list[float] | None:
        """Mean plain cross-entropy of each member over its validation batches; None as `Task.validation_loss`."""
        total, positions = 0.0, 0
        for blocks in zip(*(task.validation_batches(step) for task in self.tasks), strict=True):
            if must_stop():
                return None
            inputs, targets = self.spread(blocks)
            logits = self.model.logits(self.by_member(self.model(inputs)))
            nll = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
            total = total + nll.view(len(self.members), -1).sum(dim=1).double()
            positions += targets[0].numel()
        return (total / positions).tolist()

    def spread(self, blocks: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of every member, M x B x T each. blocks: those of every seed."""
        together = self.tasks[0].put(np.stack([np.stack(block) for block in blocks]))
        return together[self.seed_of].unbind(dim=1)


def embedding_treatment(optimiser: Optimiser) -> list[tuple[bool, float]]:
    """`update_and_decay` of the matrices with one row per type: the sort key of a stack's members."""
    return [
        update_and_decay(optimiser, name)
        for name, parameter in optimiser.parameters.items()
        if any(parameter is matrix for matrix in optimiser.embeddings)
    ]
