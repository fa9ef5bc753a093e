"""Interface of probes: observations of a training that leave every bit of its result unchanged.

The whole state of an observation is its `tensors`, of fixed sizes. The trainer calls it at three points of a step,
`begin` when the targets are counted, `look` after each micro-batch's backward pass and `end` before clipping, and calls
`measure` between steps.
"""

from dataclasses import dataclass

import torch


@dataclass
class MicroBatch:
    """The observable values of a micro-batch after its backward pass; N positions, width d, vocabulary size V.

    inputs, targets: N. hidden: N x d. weight: V x d, the output matrix. logits_gradient: dL/dz (N x V) and
    input_gradient: dL/d(embedding) (N x d), for observations that `needs_gradients`.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    hidden: torch.Tensor
    weight: torch.Tensor
    logits_gradient: torch.Tensor | None = None
    input_gradient: torch.Tensor | None = None


class Observation:
    """Base class of observations; its methods do nothing."""

    # Whether it needs the gradients of logits and embeddings, of a whole step in one micro-batch.
    needs_gradients = False
    # Whether it needs the set of rare types, which only a gate has.
    needs_gate = False
    tensors: dict[str, torch.Tensor]

    def begin(self, step: int, gate) -> None:
        """The targets of step `step` (from 0) are counted; gate: the gate's state."""

    def look(self, batch: MicroBatch) -> None:
        """Called after the backward pass of a micro-batch."""

    def end(self) -> None:
        """Called after the last backward pass of the step."""

    def measure(self, step: int, model: torch.nn.Module, task) -> None:
        """Called after `step` steps, 0 before the first, and again after a restart; task: the training task."""
