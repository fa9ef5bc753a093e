"""Places: the positions of a micro-batch that have a target, and the positions and rows of W that a gate affects.

Their numbers are tensor sizes, so the host must know them. On a GPU, making `Places` starts the copy to the host, and
the first use waits for it. If they are made before the forward pass, the copy has arrived by then.

Shapes: N positions, n of them with a target, V types.
"""

from functools import cached_property

import torch


class Places:
    """The places of one micro-batch, under the gate of its step.

    gate_state: the result of a gate's `start`, or None. targets: any shape. padding: the target id of positions without
    a target; or None.
    """

    def __init__(self, gate_state, targets: torch.Tensor, padding: int | None):
        targets, self.padding = targets.flatten(), padding
        self.size = len(targets)
        is_real = None if padding is None else targets != padding
        # A padding id may lie outside the vocabulary.
        self.all_targets = targets if is_real is None else targets.masked_fill(~is_real, 0)
        gating = None if gate_state is None else gate_state.gates(self.all_targets)
        asked = [] if is_real is None else [is_real]
        self.gates = self.all_classes = None
        if gating is not None:
            self.gates, self.all_classes = gating
            self.is_gated = (self.gates != 1).any(dim=0)
            chosen = (self.all_classes != 0) | self.is_gated[self.all_targets]
            asked += [chosen if is_real is None else chosen & is_real, self.is_gated]
        self._asked = ToHost(torch.cat(asked)) if asked else None

    @cached_property
    def _answers(self) -> list[torch.Tensor]:
        """The masks, copied to the host."""
        if self._asked is None:
            return []
        sizes = [self.size] * (self.padding is not None)
        if self.gates is not None:
            sizes += [self.size, len(self.is_gated)]
        return list(self._asked.wait().split(sizes))

    @cached_property
    def kept(self) -> torch.Tensor | None:
        """Indices of the positions that have a target, n; None if all have one."""
        if self.padding is None or self._answers[0].all():
            return None
        return self._to_device(self._answers[0].nonzero().flatten())

    @cached_property
    def number(self) -> int:
        """Number of positions with a target, n."""
        return self.size if self.padding is None else int(self._answers[0].sum())

    @cached_property
    def targets(self) -> torch.Tensor:
        """Targets of the kept positions, n."""
        return self.all_targets if self.kept is None else self.all_targets[self.kept]

    @cached_property
    def classes(self) -> torch.Tensor:
        """The class of each kept position's target, n, which is its row in `gates`."""
        return self.all_classes if self.kept is None else self.all_classes[self.kept]

    @cached_property
    def columns(self) -> torch.Tensor:
        """Types whose gate is not 1, in order."""
        return self._to_device(self._answers[-1].nonzero().flatten())

    @cached_property
    def _chosen(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Kept positions outside the first class or with a gated target, on the host and on the device."""
        chosen = self._answers[-2]
        if self.kept is not None:
            chosen = chosen[self._answers[0]]
        chosen = chosen.nonzero().flatten()
        return chosen, self._to_device(chosen)

    def positions(self, part: slice) -> torch.Tensor:
        """Indices, among all positions, of a slice of the kept ones."""
        if self.kept is not None:
            return self.kept[part]
        return torch.arange(part.start, part.stop, device=self.all_targets.device)

    def of_kept(self, values: torch.Tensor) -> torch.Tensor:
        """The values, N, at the kept positions, n."""
        return values if self.kept is None else values[self.kept]

    def to_all(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the kept positions, n, scattered to all, N; 0 at positions without a target."""
        return values if self.kept is None else values.new_zeros(self.size).index_copy(0, self.kept, values)

    def chosen(self, part: slice) -> torch.Tensor:
        """The kept positions in a slice whose target is outside the first class or gated itself."""
        host, device = self._chosen
        first, last = torch.searchsorted(host, torch.tensor([part.start, part.stop])).tolist()
        return device[first:last]

    def _to_device(self, indices: torch.Tensor) -> torch.Tensor:
        """Indices copied to the targets' device without waiting."""
        if self.all_targets.device.type != "cpu":
            return indices.pin_memory().to(self.all_targets.device, non_blocking=True)
        return indices


class ToHost:
    """A tensor that is being copied to the host."""

    def __init__(self, tensor: torch.Tensor):
        self.copy, self.arrived = tensor, None
        if tensor.device.type != "cpu":
            self.copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self.copy.copy_(tensor, non_blocking=True)
            self.arrived = torch.cuda.Event()
            self.arrived.record(torch.cuda.current_stream(tensor.device))

    def wait(self) -> torch.Tensor:
        """The tensor on the host."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.copy
