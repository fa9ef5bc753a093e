"""Which update of the weights a micro-batch is of, and what its gate and penalty know of it, in a loop of any kind."""

import dataclasses
import warnings
from collections import deque
from collections.abc import Iterable

import numpy as np
import torch
from torch import distributed

from raretok.core.errors import UserError
from raretok.methods import Method, TrainingFacts
from raretok.methods.agg import Gate as AGG


class Updates:
    """The updates of one training, as `raretok.OutputLoss` sees them go by.

    method: the parts. counts: of the training's targets, V, or None. special, targets_per_update, ignore_index: as
    there. Raises ValueError where gate or penalty do not fit the counts.

    number: of updates begun. gate: the gate's state, or None. normaliser: what the current update's losses are divided
    by, such that means of gradients over processes are those of the mean over all targets.
    """

    def __init__(
        self,
        method: Method,
        counts: np.ndarray | None,
        special: tuple[int, ...],
        targets_per_update: float | None,
        ignore_index: int,
    ):
        self.parts, self.counts, self.special = method, counts, special
        self.targets_per_update, self.ignore_index = targets_per_update, ignore_index
        self.number, self.gate, self.normaliser = 0, None, None
        self.penalty = method.penalty
        self._device: torch.device | None = None
        # Targets of the updates that the gate remembers, of this process.
        self._recent: deque[torch.Tensor] = deque()
        # Targets that were announced and are not counted yet; how many of them are still to come, or None where every
        # micro-batch is an update; how many positions the update has.
        self._announced, self._left, self._size = None, None, 0
        self._start(torch.device("cpu"))

    def announce(self, targets: Iterable[torch.Tensor]) -> None:
        """A new update begins, with these targets, one tensor a micro-batch.

        Warns where the one before has begun and had more targets than were passed: its loss was divided by all of them.
        """
        if self._left and self._announced is None:
            warnings.warn(
                f"update {self.number} was told of {self._left} targets more than it was passed, and divided its loss "
                "by them, too; name in begin_update what is passed",
                stacklevel=3,
            )
        flat = [batch.detach().flatten() for batch in targets]
        self._announced = torch.cat(flat) if flat else torch.empty(0, dtype=torch.int64)
        self._left = self._announced.numel()

    def enter(self, targets: torch.Tensor) -> None:
        """A micro-batch begins: its update, too, unless that was announced and begun; ValueError if it is too large."""
        if self._left is None:
            self._begin(targets.flatten())
            return
        if targets.numel() > self._left:
            raise ValueError(
                "this call has more targets than begin_update was told of; call begin_update before each update, with "
                "the targets of all its micro-batches as they are passed here"
            )
        if self._announced is not None:
            self._begin(self._announced.to(targets.device))
            self._announced = None
        self._left -= targets.numel()

    def share(self, targets: torch.Tensor) -> float:
        """Which share of this process's part of the update a micro-batch is."""
        return targets.numel() / max(1, self._size)

    def method(self) -> Method:
        """The method of this update: a penalty may be for the first updates alone."""
        until = getattr(self.penalty, "until", None)
        has_penalty = until is None or self.number <= until
        return dataclasses.replace(self.parts, penalty=self.penalty if has_penalty else None)

    def state(self) -> dict:
        """Numbers and tensors from which `load` goes on."""
        return {
            "updates": self.number,
            "targets_per_update": self.targets_per_update,
            "gate": {} if self.gate is None else dict(self.gate.state()),
            "recent": list(self._recent),
        }

    def load(self, state: dict) -> None:
        """Go on where `state` was taken, of the same parts."""
        self.number, self.targets_per_update = state["updates"], state["targets_per_update"]
        self._announced, self._left = None, None
        self.gate = None
        self._start(torch.device("cpu"))
        if self.gate is not None:
            self.gate.load(state["gate"])
        self._recent = deque(state["recent"])

    def _knows_enough(self) -> bool:
        """Whether a gate can start: AGG wants to know the size of an update."""
        return self.targets_per_update is not None or not isinstance(self.parts.gate, AGG)

    def _begin(self, targets: torch.Tensor) -> None:
        """Count the targets of an update (of this process, flat)."""
        self._size = targets.numel()
        targets = targets[targets != self.ignore_index].long()
        number = torch.tensor(targets.numel(), dtype=torch.float64, device=targets.device)
        processes = 1
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(number)
            processes = distributed.get_world_size()
        self.normaliser = number.clamp_min(1) / processes
        self.number += 1
        if not self._knows_enough() and number > 0:
            # The first update that has targets: the gate can start.
            self.targets_per_update, self._device = number.item(), None
        self._move(targets.device)
        if self.gate is not None:
            self._count(targets)

    def _count(self, targets: torch.Tensor) -> None:
        """Show an update's targets to the gate, and those that it forgets now."""
        memory = self.gate.memory
        while len(self._recent) > memory:  # a gate may stop counting
            self._recent.popleft()
        leaving = self._recent.popleft().to(targets.device).long() if memory and len(self._recent) == memory else None
        self.gate.begin_update(leaving)
        self.gate.count(targets)
        if memory:
            self._recent.append(targets.to(torch.int32))

    def _start(self, device: torch.device) -> None:
        """Make the gate's state, if it can start, and the penalty where it needs the counts, on a device."""
        self._device = device
        if self.counts is None:
            return
        per_update = self.targets_per_update or 1
        facts = TrainingFacts(
            counts=self.counts,
            special=self.special,
            tokens_per_step=per_update,
            steps_per_epoch=max(1, round(self.counts.sum() / per_update)),
            device=str(device),
        )
        if self.parts.gate is not None and self._knows_enough():
            try:
                self.gate = self.parts.gate.start(facts)
            except UserError as error:
                raise ValueError(str(error).removeprefix("method.")) from None
        if hasattr(self.parts.penalty, "start"):
            self.penalty = self.parts.penalty.start(facts)

    def _move(self, device: torch.device) -> None:
        """See that the gate's state and the penalty are on a device."""
        if self._device == device:
            return
        state = None if self.gate is None else self.gate.state()
        self._start(device)
        if state is not None:
            self.gate.load(state)
