"""Freezing rare rows, or parts of their gradient (agg, sections 3.2 and 3.3; agps, section 3.3)."""

from dataclasses import dataclass, field

from raretok.methods.counting import SHARE_OF, first_rare_rank, frequency_ranks
from raretok.methods.parts import Gate, GateState

PARTS = ("all", "b", "c", "bc")
# Default share of types that are rare if neither share nor rank is given (agg, section 3.1).
SHARE = 0.2


@dataclass(frozen=True)
class Freeze(Gate):
    """Gate: drops parts of the gradient of rare rows, or freezes the rows (agg, sections 3.2 and 3.3).

    The gradient of a rare row is (a) from positions where it is the target, (b) from positions with a target that
    is not rare, (c) from positions with another rare target (agg, Eq. 4; docs/deviations.md, A2). Special types are
    never rare; types that never occur always are.

    Args:
        part: `b`, `c` or `bc` drop those parts. `all` keeps rows as initialised, without gradient of output or input
            and without weight decay (A21); it needs the pipeline's optimiser, and `OutputLoss` refuses it. In a
            translation, `all` still trains rare types that are more frequent on the source side than any rare type is
            on the target side: they are frequent source words, which the encoder reads.
        share: share of the types that is rare, the rarest ones, ties by id; above 0 and below 1 (default: 0.2); or
        rare_from: the rank by decreasing training count from which types are rare, as in agps.
        until: number of steps with the gate; None: all.
        share_of: base of the share. `occurring`: types that occur in training, without special ones, as in the papers.
            `all`: all types; those that never occur are the rarest.
    """

    part: str = "all"
    share: float | None = None
    rare_from: int | None = None
    until: int | None = field(default=None, metadata={"scales_with": "steps"})
    share_of: str = "occurring"

    def __post_init__(self):
        if self.part not in PARTS:
            raise ValueError(f"part must be one of {', '.join(PARTS)}")
        if self.share is not None and self.rare_from is not None:
            raise ValueError("give share or rare_from, not both")
        if self.share is not None and not 0 < self.share < 1:
            raise ValueError("share must be above 0 and below 1")
        if self.share_of not in SHARE_OF:
            raise ValueError(f"share_of must be one of {', '.join(SHARE_OF)}")
        if self.until is not None and self.until < 1:
            raise ValueError("until must be at least 1 step, or left out for the whole training")

    @property
    def freezes_rows(self) -> bool:
        """Whether rows keep their values."""
        return self.part == "all"

    def start(self, facts) -> "State":
        """The gate's state before the first step; raises ValueError if no type, or every type, is rare."""
        return State(self, facts)


class State(GateState):
    """The rare types, and the number of steps begun (`step`)."""

    def __init__(self, gate: Freeze, facts):
        import torch

        self.gate = gate
        rare = frequency_ranks(facts) >= first_rank(gate, facts)
        self.is_rare = torch.from_numpy(rare)
        self.is_frozen = None
        if gate.part == "all":
            self.is_frozen = torch.from_numpy(rows_to_freeze(facts, rare))
        shut = (~self.is_rare).double()
        open_ = torch.ones_like(shut)
        self.fixed_gates = torch.stack([shut if "b" in gate.part else open_, shut if "c" in gate.part else open_])
        self.step = 0

    @property
    def active(self) -> bool:
        """Whether the gate acts in the current step."""
        return self.gate.until is None or self.step <= self.gate.until

    def begin_step(self, targets) -> None:
        """Count the step; its targets do not matter, because the rare types are fixed."""
        self.step += 1

    def rare(self):
        """Which types are rare, V."""
        return self.is_rare

    def gates(self, targets):
        """Gates 2 x V and classes N (1: rare target) while parts are dropped, else None."""
        if self.gate.part == "all" or not self.active:
            return None
        return self.fixed_gates, self.is_rare[targets].long()

    def frozen(self):
        """Rows that this step must not change, V (bool), the same in all steps; None: it may change all."""
        return self.is_frozen if self.active else None

    def derived(self) -> dict:
        """Numbers in use that do not appear in the settings."""
        types = {"rare_types": self.is_rare, "frozen_types": self.is_frozen}
        return {name: int(chosen.sum()) for name, chosen in types.items() if chosen is not None}

    def state(self) -> dict:
        """Tensors for a checkpoint."""
        import torch

        return {"step": torch.tensor(self.step, device="cpu")}

    def load(self, state: dict) -> None:
        """Restore the tensors of a checkpoint."""
        self.step = int(state["step"])


def rows_to_freeze(facts, is_rare):
    """The rows of `is_rare` (V, bool) that are not frequent source words, V, bool; ValueError if there are none."""
    import numpy as np

    if facts.source_counts is None:
        return is_rare
    frozen = is_rare & (np.asarray(facts.source_counts) <= np.asarray(facts.counts)[is_rare].max())
    if not frozen.any():
        raise ValueError(
            f"Freeze freezes nothing: the source side has every one of the {is_rare.sum()} rare types more often "
            "than the target side has any; count more types as rare"
        )
    return frozen


def first_rank(gate: Freeze, facts) -> int:
    """The rank by decreasing training count from which types are rare; ValueError if that is none, or all."""
    import numpy as np

    if gate.rare_from is not None:
        return first_rare_rank(gate.rare_from, facts)
    share, counts = SHARE if gate.share is None else gate.share, np.asarray(facts.counts)
    plain = np.delete(counts, list(facts.special))
    # The first ranks are special types, the last ones types that never occur.
    candidates = len(plain) if gate.share_of == "all" else int((plain > 0).sum())
    number = round(share * (len(counts) if gate.share_of == "all" else candidates))
    if not 0 < number < candidates:
        raise ValueError(
            f"Freeze's share is {share}, which makes {number} of {candidates} types rare; give a share between"
        )
    return len(facts.special) + candidates - number


def reference(h, w, y, rare, part):
    """Eq. 4 row by row: the gradient of the summed NLL with respect to w, without the dropped parts.

    h N x d, w V x d, y N, rare V (bool) -> V x d.
    """
    import torch

    p = torch.softmax(h @ w.T, dim=1)
    rows = []
    for k in range(len(w)):
        row = torch.zeros_like(w[k])
        for t in range(len(y)):
            if y[t] == k:
                row = row + (p[t, k] - 1) * h[t]
            elif not rare[k]:
                row = row + p[t, k] * h[t]
            elif not rare[y[t]]:
                row = row + (0 if "b" in part else 1) * p[t, k] * h[t]
            else:
                row = row + (0 if "c" in part else 1) * p[t, k] * h[t]
        rows.append(row)
    return torch.stack(rows)
