"""What an observation of a training is: it writes down what happens and changes no bit of it.

Of several processes each sees its own rows of a micro-batch: what an observation sums over positions it must sum over
processes (`distributed.total`) before it takes norms or means. All have the same `tensors` at the end of an update.

An observation has `tensors`, its whole state, of fixed sizes. The trainer calls it at three moments of an update:
`begin` when the targets are counted, `look` after each micro-batch's backward pass, `end` before clipping; and
`measure` between updates.
"""

from dataclasses import dataclass

import torch


@dataclass
class MicroBatch:
    """What there is to see of a micro-batch after its backward pass; N positions, d width, V types.

    inputs, targets: N. hidden: N x d. weight: V x d, the output matrix. logits_gradient: dL/dz (N x V) and
    input_gradient: dL/d(embedding) (N x d), where an observation `needs_gradients`.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    hidden: torch.Tensor
    weight: torch.Tensor
    logits_gradient: torch.Tensor | None = None
    input_gradient: torch.Tensor | None = None


class Observation:
    """What the observations have in common: nothing to see at any moment."""

    # Whether gradients of logits and embeddings must be kept for it: of a whole update in one micro-batch.
    needs_gradients = False
    # Whether it looks at the set of rare types, which only a gate has.
    needs_gate = False
    tensors: dict[str, torch.Tensor]

    def begin(self, step: int, gate) -> None:
        """The targets of update `step` (from 0) are counted; gate: the gate's state."""

    def look(self, batch: MicroBatch) -> None:
        """The backward pass of a micro-batch is done."""

    def end(self) -> None:
        """The backward passes of the update are done."""

    def measure(self, step: int, model: torch.nn.Module, task) -> None:
        """`step` updates are done, 0 before the first; task: what is trained on. Also after an interruption."""
