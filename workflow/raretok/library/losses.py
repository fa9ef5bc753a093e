"""The losses for training code of your own: one object that counts, gates and computes.

    criterion = OutputLoss(gate=AGG(alpha=0.03, memory=100), counts=counts)
    loss = criterion(hidden, weight, targets)      # in the place of logits and F.cross_entropy
    loss.backward()

Parts combine: a loss, a gate, a penalty and a perturbation, at most one of each. docs/losses.md has whole examples.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from raretok.core.errors import UserError
from raretok.library.frequency import checked_special
from raretok.library.loss_parts import (
    AGG,
    AGPS,
    Adversarial,
    Contrastive,
    CosReg,
    CrossEntropy,
    Freeze,
    Softminus,
    Threshold,
    UnigramDivergence,
    Unlikelihood,
)
from raretok.library.step_state import Updates
from raretok.methods import build_method
from raretok.models.output_layer import output_loss

__all__ = ["OutputLoss"]

PLAIN = build_method({})


class OutputLoss(torch.nn.Module):
    """The training loss of hidden vectors and an output embedding, with all gradients; N x V logits are never held.

    In the place of `F.cross_entropy(hidden @ weight.T + bias, targets)`, with the same mean and the same ignored
    index. Values are exact, not approximated (`raretok.models.output_layer` has the formula). What is computed is plain
    cross-entropy after `eval()` and under `torch.no_grad()`: methods change training only, and stay comparable.

    Args:
        loss: `CrossEntropy()`, `Threshold(margin=...)`, `Softminus(...)` or `Contrastive()`.
        gate: `AGG(...)`, `AGPS(...)` or `Freeze(...)`, which gate the gradient of `weight` for rare types, or None.
        penalty: `CosReg(...)`, `Unlikelihood(...)` or `UnigramDivergence(...)`, added to the loss, or None.
        perturbation: `Adversarial(...)`, or None.
        training_temperature: what logits are multiplied by in training, above 0.
        counts: how often each type is a target in the training text, V whole numbers (`raretok.count_targets`). Gates
            and `UnigramDivergence` need them; V is the number of rows of `weight`, unused rows included.
        special: ids that are never rare, such as those of padding and of the end of a text.
        targets_per_update: the mean number of targets of an update over all processes, which `AGG` holds `alpha`
            against. Default: that of the first update.
        ignore_index: positions with this target do not count.

    Raises ValueError, one sentence, for parts or values that do not fit each other or the counts: for instance an
    alpha that makes no type rare, or every one.

    One call in training is one update. Where an update has several micro-batches, say so with `begin_update`. Of
    several processes (`torch.distributed`) each calls with its own micro-batch: counts are those of all, and the mean
    is over the targets of all where gradients are averaged, as DistributedDataParallel does.

    `state_dict()` holds what a gate has counted, for an exact continuation; of several processes each has its own,
    since each keeps its own targets. `nll` is the last call's mean plain
    negative log likelihood in nats, a detached scalar: what to log, since other losses are not comparable.
    """

    def __init__(
        self,
        loss: CrossEntropy | Threshold | Softminus | Contrastive | None = None,
        *,
        gate: AGG | AGPS | Freeze | None = None,
        penalty: CosReg | Unlikelihood | UnigramDivergence | None = None,
        perturbation: Adversarial | None = None,
        training_temperature: float = 1.0,
        counts: Sequence[int] | np.ndarray | torch.Tensor | None = None,
        special: Iterable[int] = (),
        targets_per_update: float | None = None,
        ignore_index: int = -100,
    ):
        super().__init__()
        parts = {"loss": loss, "gate": gate, "penalty": penalty, "perturbation": perturbation}
        self._parts = {kind: part for kind, part in parts.items() if part is not None}
        settings = {kind: _settings(kind, part) for kind, part in self._parts.items()}
        if getattr(gate, "part", None) == "all":
            raise ValueError(
                "Freeze(part='all') leaves rows alone in the optimiser, decay included, which a loss cannot do; "
                "give part='b', 'c' or 'bc', or mask the rows in your optimiser"
            )
        if counts is None and (gate is not None or hasattr(penalty, "start")):
            raise ValueError(
                f"{type(gate or penalty).__name__} needs counts=, how often each type is a target in the training text"
            )
        try:
            self._method = build_method(settings | {"training_temperature": training_temperature}, "OutputLoss")
        except UserError as error:
            raise ValueError(str(error)) from None
        self._counts = None if counts is None else _checked_counts(counts)
        if targets_per_update is not None and not targets_per_update > 0:
            raise ValueError(f"targets_per_update is {targets_per_update}; it must be above 0")
        self._ignore_index = ignore_index
        special = tuple(special) if self._counts is None else checked_special(special, len(self._counts))
        self._updates = Updates(self._method, self._counts, special, targets_per_update, ignore_index)
        self.nll: torch.Tensor | None = None

    @property
    def updates(self) -> int:
        """How many updates were begun."""
        return self._updates.number

    def extra_repr(self) -> str:
        """The parts, as the module is printed."""
        return ", ".join(f"{kind}={part}" for kind, part in self._parts.items())

    def begin_update(self, targets: torch.Tensor | Iterable[torch.Tensor]) -> None:
        """Say which targets the next calls are of: those of all micro-batches of one update of the weights.

        Call it before the first micro-batch of every update, or never: without it every call in training is an update
        of its own. The losses of the micro-batches are then divided by the number of targets of the whole update, so
        that their sum is its mean; do not divide by the number of micro-batches again.

        Args:
            targets: the `targets` of each call that follows, of this process: a tensor, or several, of any shape and
                on any device, with `ignore_index` where there is none.
        """
        self._updates.announce([targets] if isinstance(targets, torch.Tensor) else targets)

    def forward(
        self,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        *,
        bias: torch.Tensor | None = None,
        inputs: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The loss, a scalar of 32 bits or more. Its backward pass may run once.

        Args:
            hidden: what the output layer reads, B x T x d or N x d; of any precision, also under autocast.
            weight: the output embedding, V x d; tied or not.
            targets: the type that each position predicts, B x T or N (already shifted), or `ignore_index`.
            bias: of the output layer, V, or None.
            inputs: the sequences that the model read, B x T; `Unlikelihood` needs them.

        Raises ValueError for shapes that do not fit, targets and inputs beyond the vocabulary (seen on a CPU alone),
        and more targets than `begin_update` was told of.
        """
        self._check(hidden, weight, targets, bias)
        targets = targets.to(weight.device)
        updates, trains = self._updates, self.training and torch.is_grad_enabled()
        if trains:
            inputs = self._sequences(inputs, targets, len(weight))
            updates.enter(targets)
        result = output_loss(
            updates.method() if trains else PLAIN,
            updates.gate if trains else None,
            hidden,
            weight,
            targets,
            inputs=None if inputs is None else inputs.to(weight.device),
            bias=bias,
            padding=self._ignore_index,
            normaliser=updates.normaliser if trains else None,
            share=updates.share(targets) if trains else 1.0,
        )
        self.nll = result.nll / (targets != self._ignore_index).sum().clamp_min(1)
        return result.loss

    def rare(self) -> torch.Tensor | None:
        """Which types the gate counts as rare now, V (bool); None without a gate, or before `AGG`'s first update."""
        gate, updates = self._updates.gate, self._updates.number
        return None if gate is None or (isinstance(self._parts["gate"], AGG) and not updates) else gate.rare()

    def get_extra_state(self) -> dict:
        """What `state_dict` holds: numbers and tensors, no objects."""
        return self._updates.state() | {"parts": repr(self._method)}

    def set_extra_state(self, state: dict) -> None:
        """Go on where `state_dict` was taken; ValueError where the parts are not the same."""
        if state["parts"] != repr(self._method):
            raise ValueError(f"the state is of other parts: {state['parts']}, but this is {self._method!r}")
        self._updates.load(state)

    def _sequences(self, inputs: torch.Tensor | None, targets: torch.Tensor, types: int) -> torch.Tensor:
        """The inputs, B x T, which the output layer asks for where a penalty is on tokens."""
        if (inputs is None or inputs.dim() != 2) and isinstance(self._parts.get("penalty"), Unlikelihood):
            raise ValueError("Unlikelihood needs inputs=, the sequences that the model read, B x T")
        if inputs is not None and inputs.shape != targets.shape:
            raise ValueError(
                f"inputs are {_shape(inputs)}, but targets are {_shape(targets)}; each position has one input"
            )
        if inputs is not None and inputs.device.type == "cpu" and inputs.numel():
            least, most = inputs.min().item(), inputs.max().item()
            if least < 0 or most >= types:
                raise ValueError(
                    f"an input is {least if least < 0 else most}; inputs are what the model read, ids from 0 to "
                    f"{types - 1}"
                )
        # The other penalty on tokens does not look at them.
        return targets.reshape(1, -1) if inputs is None else inputs

    def _check(
        self, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, bias: torch.Tensor | None
    ) -> None:
        """ValueError where shapes do not fit."""
        if hidden.shape[:-1] != targets.shape:
            raise ValueError(
                f"hidden is {_shape(hidden)}, but targets are {_shape(targets)}; they must be {_shape(hidden[..., 0])}"
            )
        if weight.dim() != 2 or weight.shape[1] != hidden.shape[-1]:
            raise ValueError(f"weight is {_shape(weight)}; it must be V x {hidden.shape[-1]}, as wide as hidden")
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ValueError(f"bias is {_shape(bias)}; it must be {len(weight)}, one a row of weight")
        if self._counts is not None and len(self._counts) != len(weight):
            raise ValueError(
                f"counts are of {len(self._counts)} types, but weight has {len(weight)} rows; count with as many "
                "types, unused ones included"
            )
        if targets.device.type == "cpu" and targets.numel():
            wrong = (targets != self._ignore_index) & ((targets < 0) | (targets >= len(weight)))
            if wrong.any():
                raise ValueError(
                    f"a target is {targets[wrong][0].item()}; it must be below {len(weight)}, the rows of weight, or "
                    f"{self._ignore_index}, which is ignored"
                )


def _settings(kind: str, part) -> dict:
    """A part as config has it, `{name: ..., parameters}`, which is how `build_method` checks them together."""
    modules = (base.__module__ for base in type(part).__mro__)
    module = next((name for name in modules if name.startswith("raretok.methods.")), None)
    if module is None:
        raise ValueError(f"{kind}= is {part!r}; give one of raretok's parts, such as Threshold(margin=1.0)")
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {"name": module.rpartition(".")[2], **values}


def _checked_counts(counts) -> np.ndarray:
    """Counts as V 64-bit integers."""
    array = np.asarray(counts.cpu() if isinstance(counts, torch.Tensor) else counts)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or not array.any():
        raise ValueError("counts must be V whole numbers of at least 0, not all of them 0, one a type")
    return array.astype(np.int64)


def _shape(tensor: torch.Tensor) -> str:
    """2 x 7 x 16."""
    return " x ".join(map(str, tensor.shape)) or "a scalar"
