"""Places: the positions of a micro-batch that have a target, and the positions and rows of W that a gate affects.

Their numbers are tensor sizes, so the host must know them. It computes them from its own copy of the targets, because
anything that it asks of a GPU arrives only after all pending work.

Shapes: N positions, n of them with a target, V types.
"""

from functools import cached_property

import torch

from raretok.output.transfers import ToHost, put


class Places:
    """The places of one micro-batch, under the gate of its step.

    gate_state: the result of a gate's `start`, or None. targets: any shape. padding: the target id of positions without
    a target; or None. on_host: the copy of the targets, which the first use waits for; without it, it starts here.
    """

    def __init__(self, gate_state, targets: torch.Tensor, padding: int | None, on_host: ToHost | None = None):
        targets, self.padding, self.gate = targets.flatten(), padding, gate_state
        self.size, self.device = len(targets), targets.device
        # A padding id may lie outside the vocabulary.
        self.all_targets = targets if padding is None else targets.masked_fill(targets == padding, 0)
        if on_host is None and (gate_state is not None or padding is not None):
            on_host = ToHost(targets)
        self._on_host = on_host

    @cached_property
    def _host_targets(self) -> torch.Tensor:
        """Targets of all positions on the host, N."""
        return self._on_host.wait().flatten()

    @cached_property
    def _is_real(self) -> torch.Tensor | None:
        """Which positions have a target, N, on the host; None if all have one."""
        if self.padding is None:
            return None
        is_real = self._host_targets != self.padding
        return None if is_real.all() else is_real

    @cached_property
    def _kept_host_targets(self) -> torch.Tensor:
        """Targets of the kept positions on the host, n."""
        return self._host_targets if self._is_real is None else self._host_targets[self._is_real]

    @cached_property
    def kept(self) -> torch.Tensor | None:
        """Indices of the positions that have a target, n; None if all have one."""
        return None if self._is_real is None else put(self._is_real.nonzero().flatten(), self.device)

    @cached_property
    def number(self) -> int:
        """Number of positions with a target, n."""
        return self.size if self._is_real is None else int(self._is_real.sum())

    @cached_property
    def targets(self) -> torch.Tensor:
        """Targets of the kept positions, n."""
        return self.of_kept(self.all_targets)

    @cached_property
    def _gating(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Gates, 2 x V, and the class of each kept position's target, n, on the host; None if nothing is gated."""
        if self.gate is None:
            return None
        return self.gate.gates(self._kept_host_targets)

    @property
    def has_gates(self) -> bool:
        """Whether a gate acts in this step."""
        return self._gating is not None

    @cached_property
    def gates(self) -> torch.Tensor:
        """Gates, 2 x V."""
        return put(self._gating[0], self.device)

    @cached_property
    def classes(self) -> torch.Tensor:
        """The class of each kept position's target, n, which is its row in `gates`."""
        return put(self._gating[1], self.device)

    @cached_property
    def _is_gated(self) -> torch.Tensor:
        """Whether a type's gate is not 1, V, on the host."""
        return (self._gating[0] != 1).any(dim=0)

    @cached_property
    def columns(self) -> torch.Tensor:
        """Types whose gate is not 1, in order."""
        return put(self._is_gated.nonzero().flatten(), self.device)

    @cached_property
    def _chosen(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Kept positions outside the first class or with a gated target, on the host and on the device."""
        chosen = ((self._gating[1] != 0) | self._is_gated[self._kept_host_targets]).nonzero().flatten()
        return chosen, put(chosen, self.device)

    def positions(self, part: slice) -> torch.Tensor:
        """Indices, among all positions, of a slice of the kept ones."""
        if self.kept is not None:
            return self.kept[part]
        return torch.arange(part.start, part.stop, device=self.device)

    def of_kept(self, values: torch.Tensor) -> torch.Tensor:
        """The values, N, at the kept positions, n."""
        return values if self.kept is None else values[self.kept]

    def to_all(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the kept positions, n, scattered to all, N; 0 at positions without a target."""
        return values if self.kept is None else values.new_zeros(self.size).index_copy(0, self.kept, values)

    def chosen(self, part: slice) -> torch.Tensor:
        """The kept positions in a slice whose target is outside the first class or gated itself."""
        host, device = self._chosen
        first, last = torch.searchsorted(host, host.new_tensor([part.start, part.stop])).tolist()
        return device[first:last]
