"""Adaptive gradient gating (agg, Eqs. 5 to 10): rare rows of the output embedding get a gated gradient."""

from dataclasses import dataclass, field

from raretok.core.errors import UserError
from raretok.methods.counting import bound_of_share, update_counts

# Keeps Eq. 8 finite while no rare token has occurred (authors' code; inventory A5).
EPSILON = 1e-7
DIVISORS = ("elapsed", "memory")


@dataclass(frozen=True)
class Gate:
    """Gates from counts of the last K updates.

    a_k counts type k among the targets of the last `memory` updates, the current one included (inventory A4), and
    a type is rare while a_k / d < alpha, d being min(step, memory). For rare types g1_k = a_k / d gates the
    gradient from positions with a frequent target, and g2_k = min(a_k / mean of rare a, 1) the gradient from
    positions with another rare target; both are 1 elsewhere. Special types are never rare (A6).

    alpha: mean count per update below which a type is rare; proportional to tokens per update.
    memory: K, in updates; null: the updates of one epoch.
    g1, g2: switched off, that gate is 1 everywhere ("no g1", "no g2").
    static: counts, and with them rare types and gates, stay as they are at the end of the first epoch.
    divisor: `elapsed` divides by min(step, memory), as the authors' code does; `memory` by K, as printed (A3).
    """

    alpha: float = field(metadata={"scales_with": "tokens_per_step"})
    memory: int | None = field(default=None, metadata={"scales_with": "steps"})
    g1: bool = True
    g2: bool = True
    static: bool = False
    divisor: str = "elapsed"

    def __post_init__(self):
        if not self.alpha > 0:
            raise ValueError("alpha must be above 0, or no token is ever rare")
        if self.memory is not None and self.memory < 1:
            raise ValueError("memory must be at least 1 update, or null for the updates of one epoch")
        if self.divisor not in DIVISORS:
            raise ValueError(f"divisor must be one of {', '.join(DIVISORS)}")

    def start(self, facts) -> "Counters":
        """Counters at zero.

        Raises UserError where alpha makes no type, or every type, rare over the counts of the training split.
        """
        return Counters(self, facts)


class Counters:
    """The counter memory of one training: the sum of the last K updates' target counts.

    Which targets leave that sum the trainer says, since it can draw any update's targets again; a ring of K
    updates' counts would take K x V numbers (agg's own setting: 3,150 x 44,256).

    State: `total` V and `step` (number of updates counted), 64-bit integers.
    updates: K. alpha: the bound in use, derived for a scaled run.
    """

    def __init__(self, gate: Gate, facts):
        import torch

        self.gate = gate
        self.types = len(facts.counts)
        self.updates = gate.memory if gate.memory is not None else facts.steps_per_epoch
        self.last_step = facts.steps_per_epoch if gate.static else None
        self.alpha = checked_alpha(gate.alpha, facts)
        self.total = torch.zeros(self.types, dtype=torch.int64, device=facts.device)
        self.step = torch.zeros((), dtype=torch.int64)
        self.can_be_rare = torch.ones(self.types, dtype=torch.bool, device=facts.device)
        self.can_be_rare[list(facts.special)] = False
        self.counting = False
        self.kept = None

    @property
    def memory(self) -> int:
        """After how many updates an update is counted out again; 0: nothing is counted any more."""
        return 0 if self.last_step is not None and int(self.step) >= self.last_step else self.updates

    def begin_update(self, leaving=None) -> None:
        """Start a new update; all micro-batches until the next call share its slot.

        leaving: this process's targets of the update K before this one, None while there is none.
        """
        self.counting = self.last_step is None or int(self.step) < self.last_step
        if not self.counting:
            return
        self.kept = None
        self.step += 1
        if leaving is not None:
            self.total -= update_counts(leaving, self.types)

    def count(self, targets) -> None:
        """Add this process's targets of one micro-batch to the current update."""
        if self.counting:
            self.kept = None
            self.total += update_counts(targets, self.types)

    def rare(self):
        """Which types are rare now, V."""
        return self._now()[1]

    def gates(self, targets):
        """Gates 2 x V (g1, g2) and the class of each of the targets, N: 1 where the target is rare, else 0."""
        gates, rare = self._now()
        return gates, rare[targets].long()

    def frozen(self) -> None:
        """No row is excluded from updates."""
        return None

    def _now(self):
        """Gates and rare types, computed once for the micro-batches of an update."""
        import torch

        if self.kept is None:
            total = self.total.double()
            elapsed = max(1, int(self.step))
            mean_count = total / (self.updates if self.gate.divisor == "memory" else min(elapsed, self.updates))
            rare = (mean_count < self.alpha) & self.can_be_rare
            one = torch.ones_like(mean_count)
            mean_rare = (total * rare).sum() / rare.sum().clamp_min(1)
            g1 = torch.where(rare, mean_count, one) if self.gate.g1 else one
            g2 = torch.where(rare, (total / (mean_rare + EPSILON)).clamp_max(1), one) if self.gate.g2 else one
            self.kept = torch.stack([g1, g2]), rare
        return self.kept

    def derived(self) -> dict:
        """Numbers in use that the settings do not show."""
        return {"alpha": self.alpha, "memory": self.updates, "rare_types": int(self.rare().sum())}

    def state(self) -> dict:
        """Tensors that a checkpoint keeps."""
        return {"total": self.total, "step": self.step}

    def load(self, state: dict) -> None:
        """Take over the tensors of a checkpoint."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        self.kept = None


def checked_alpha(alpha: float, facts) -> float:
    """alpha for this training, derived where the run is a scaled one (inventory 5.3).

    A scaled run has other counts per update than the paper. The alpha that the paper selected (`rare.alpha`) becomes
    the bound that makes `rare.share` of the types that are targets rare over the training split; other alphas keep
    their ratio to it.
    Raises UserError where no type that occurs, or every one, would be rare.
    """
    import numpy as np

    counts = np.asarray(facts.counts, dtype=np.int64)
    plain = np.delete(counts, list(facts.special))
    # Types that never are targets, as words of the source language, are always rare, and say nothing.
    plain = plain[plain > 0]
    per_update = facts.tokens_per_step / max(1, counts.sum())
    if facts.rare is not None:
        alpha = alpha / facts.rare["alpha"] * bound_of_share(plain, facts.rare["share"] * len(plain)) * per_update
    rare = int((plain * per_update < alpha).sum())
    if rare == 0:
        raise UserError(
            f"method.gate.alpha is {alpha:.3g}, which makes no type rare: the rarest is a target "
            f"{plain.min() * per_update:.3g} times an update; raise alpha"
        )
    if rare == len(plain):
        raise UserError(
            f"method.gate.alpha is {alpha:.3g}, which makes every type rare: the most frequent is a target "
            f"{plain.max() * per_update:.3g} times an update; lower alpha"
        )
    return float(alpha)


def reference(h, w, y, g1, g2, rare):
    """The paper's three logits (Eqs. 9 and 10): mean over positions of the two terms.

    h N x d, w V x d, y N, g1 and g2 V, rare V (bool). The value is twice the NLL; the gradients of h and of
    the frequent rows are the MLE's.
    """
    import torch
    from torch.nn import functional as F

    rows = torch.arange(len(y))
    plain = h.detach() @ w.T
    logits = [h @ w.detach().T]
    for gate in (g1, g2):
        gate = gate.expand(len(y), -1).clone()
        gate[rows, y] = 1
        logits.append(gate * plain + (1 - gate) * plain.detach())
    terms = [-F.log_softmax(z, dim=1)[rows, y] for z in logits]
    return (terms[0] + torch.where(rare[y], terms[2], terms[1])).mean()
