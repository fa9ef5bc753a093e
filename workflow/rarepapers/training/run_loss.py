"""The loss of a run: the library's `OutputLoss` with what only the pipeline's trainer needs."""

import torch

from raretok.losses import OutputLoss
from raretok.methods import Method, TrainingFacts
from raretok.methods.parts import GateState
from raretok.output.transfers import put


class RunLoss(OutputLoss):
    """An `OutputLoss` whose gate may freeze rows, and whose state a checkpoint keeps without the parts.

    Args:
        method: of the run.
        facts: from the run's task.

    Raises ValueError if they do not fit each other.
    """

    def __init__(self, method: Method, facts: TrainingFacts):
        super().__init__()
        self._set_up(method, facts, facts.padding)
        self._begins_at_once = True
        # Frozen rows on the device.
        self._frozen: torch.Tensor | None = None

    @property
    def gate(self) -> GateState | None:
        """The gate during training."""
        return self._gate

    def keep_logits(self) -> None:
        """Keep the logits of every call in `logits`, with their gradient."""
        self._keeps_logits = True

    @property
    def logits(self) -> torch.Tensor | None:
        """Logits of the last call, N x V, if they are kept."""
        return self._logits

    def frozen(self) -> torch.Tensor | None:
        """Rows of the embeddings that the optimiser must not change in this step, V (bool), or None."""
        rows = None if self._gate is None else self._gate.frozen()
        if rows is None:
            return None
        self._frozen = put(rows, self._device) if self._frozen is None else self._frozen
        return self._frozen

    def derived(self) -> dict:
        """Numbers that the gate derived, such as the number of rare types; empty without a gate."""
        return {} if self._gate is None else self._gate.derived()

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors for a checkpoint; which parts they belong to is in the run's hash."""
        return self._state()

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Restore the tensors of a checkpoint."""
        self._load(state)
