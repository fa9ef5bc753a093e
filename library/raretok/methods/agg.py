"""Adaptive gradient gating (agg, Eqs. 5 to 10): rare rows of the output embedding get a gated gradient."""

from collections import deque
from dataclasses import dataclass, field

from raretok.methods.counting import bound_of_share, step_counts
from raretok.methods.parts import Gate, GateState

# Keeps Eq. 8 finite while no rare token has occurred (authors' code; docs/deviations.md, A5).
EPSILON = 1e-7
DIVISORS = ("elapsed", "memory")


@dataclass(frozen=True)
class AGG(Gate):
    """Gate: adaptive gradient gating (agg, Eqs. 5 to 10), from counts of the last K steps.

    a_k counts type k among the targets of the last `memory` steps, including the current one (docs/deviations.md, A4),
    and a type is rare while a_k / d < alpha, with d = min(step, memory). For rare types g1_k = a_k / d gates the
    gradient from positions with a frequent target, and g2_k = min(a_k / mean of rare a, 1) the gradient from positions
    with another rare target; both are 1 otherwise. Special types are never rare (A6).

    Args:
        alpha: mean count per step below which a type is rare, proportional to tokens per step; `raretok.agg_alpha`
            finds it for a share of the types.
        memory: K, in steps; None: the steps of one epoch. The targets of K steps are kept, 4 bytes each, unless the
            training can regenerate them.
        g1, g2: whether positions with a frequent and with another rare target are gated ("no g1", "no g2").
        static: counts, and so rare types and gates, stay fixed after the first epoch.
        divisor: `elapsed` divides by min(step, memory), as in the authors' code; `memory` by K, as printed (A3).
    """

    # alpha has no meaning without the mean number of targets per step.
    needs_tokens_per_step = True

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
            raise ValueError("memory must be at least 1 step, or left out for the steps of one epoch")
        if self.divisor not in DIVISORS:
            raise ValueError(f"divisor must be one of {', '.join(DIVISORS)}")

    def start(self, facts) -> "Counters":
        """Counters at zero.

        Raises ValueError if alpha makes no type, or every type, rare over the counts of the training split.
        """
        return Counters(self, facts)


class Counters(GateState):
    """The target counts of a run, summed over the last K steps.

    Targets that leave the sum are regenerated if possible (`facts.earlier_targets`), and kept otherwise; a ring buffer
    of K steps' counts would hold K x V numbers (agg's own setting: 3,150 x 44,256). All is on the CPU, since the rare
    types decide tensor sizes.

    total: V, 64-bit integers. step: number of steps counted. memory: K. alpha: the bound in use, derived for a scaled
    run. recent: this process's targets of the last K steps, if they are kept.
    """

    def __init__(self, gate: AGG, facts):
        import torch

        self.gate, self.earlier_targets, self.group = gate, facts.earlier_targets, facts.group
        self.types = len(facts.counts)
        self.alpha = checked_alpha(gate.alpha, facts)
        epoch = facts.steps_per_epoch or max(1, round(facts.counts.sum() / facts.tokens_per_step))
        self.memory = gate.memory if gate.memory is not None else epoch
        self.last_step = epoch if gate.static else None
        self.total = torch.zeros(self.types, dtype=torch.int64, device="cpu")
        self.step, self.recent = 0, deque()
        self.can_be_rare = torch.ones(self.types, dtype=torch.bool, device="cpu")
        self.can_be_rare[list(facts.special)] = False
        self.current = None

    def begin_step(self, targets) -> None:
        """Add the counts of a step, and subtract those of the step K before it. targets: of this process."""
        if self.step == self.last_step:
            self.recent.clear()
            return
        self.total += step_counts(targets, self.types, self.group)
        if self.step >= self.memory:
            leaving = self.recent.popleft() if self.recent else self.earlier_targets(self.step - self.memory)
            self.total -= step_counts(leaving, self.types, self.group)
        if self.earlier_targets is None:
            self.recent.append(targets.int())
        self.step += 1
        self.current = None

    def rare(self):
        """Which types are currently rare, V."""
        return self._now()[1]

    def gates(self, targets):
        """Gates 2 x V (g1, g2), and the class of each target, N: 1 for a rare target, else 0."""
        gates, rare = self._now()
        return gates, rare[targets].long()

    def _now(self):
        """Gates and rare types, computed once for the micro-batches of a step."""
        import torch

        if self.current is None:
            total = self.total.double()
            elapsed = max(1, self.step)
            mean_count = total / (self.memory if self.gate.divisor == "memory" else min(elapsed, self.memory))
            rare = (mean_count < self.alpha) & self.can_be_rare
            one = torch.ones_like(mean_count)
            mean_rare = (total * rare).sum() / rare.sum().clamp_min(1)
            g1 = torch.where(rare, mean_count, one) if self.gate.g1 else one
            g2 = torch.where(rare, (total / (mean_rare + EPSILON)).clamp_max(1), one) if self.gate.g2 else one
            self.current = torch.stack([g1, g2]), rare
        return self.current

    def derived(self) -> dict:
        """Numbers in use that do not appear in the settings."""
        return {"alpha": self.alpha, "memory": self.memory, "rare_types": int(self.rare().sum())}

    def state(self) -> dict:
        """Tensors for a checkpoint."""
        import torch

        # A copy, because `begin_step` changes the counts in place.
        state = {"total": self.total.clone(), "step": torch.tensor(self.step, device="cpu")}
        if self.recent:
            sizes = torch.tensor([len(targets) for targets in self.recent], device="cpu")
            state |= {"recent": torch.cat(list(self.recent)), "recent_sizes": sizes}
        return state

    def load(self, state: dict) -> None:
        """Restore the tensors of a checkpoint."""
        self.total.copy_(state["total"])
        self.step, self.recent, self.current = int(state["step"]), deque(), None
        if "recent" in state:
            # A file may have been read to another device.
            self.recent.extend(state["recent"].cpu().split(state["recent_sizes"].tolist()))


def checked_alpha(alpha: float, facts) -> float:
    """alpha for this run, derived if the run is scaled (docs/deviations.md, Scaled runs).

    Counts per step of a scaled run differ from the paper's. The alpha that the paper selected (`rare.alpha`) becomes
    the bound that makes `rare.share` of the target types rare over the training split; other alphas keep their ratio
    to it. Raises ValueError if no type that occurs, or every one, would be rare.
    """
    import numpy as np

    counts = np.asarray(facts.counts, dtype=np.int64)
    plain = np.delete(counts, list(facts.special))
    # Types that are never targets, such as source words, are always rare and do not count.
    plain = plain[plain > 0]
    per_step = facts.tokens_per_step / max(1, counts.sum())
    if facts.rare is not None:
        alpha = alpha / facts.rare["alpha"] * bound_of_share(plain, facts.rare["share"] * len(plain)) * per_step
    rare = int((plain * per_step < alpha).sum())
    if rare == 0:
        raise ValueError(
            f"AGG's alpha is {alpha:.3g}, which makes no type rare: the rarest is a target "
            f"{plain.min() * per_step:.3g} times a step; raise alpha"
        )
    if rare == len(plain):
        raise ValueError(
            f"AGG's alpha is {alpha:.3g}, which makes every type rare: the most frequent is a target "
            f"{plain.max() * per_step:.3g} times a step; lower alpha"
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
