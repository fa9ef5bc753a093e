"""Adaptive gradient gating (agg, Eqs. 5 to 10): rare rows of the output embedding get a gated gradient."""

from dataclasses import dataclass, field

# Keeps Eq. 8 finite while no rare token has occurred (authors' code; inventory A5).
EPSILON = 1e-7


@dataclass(frozen=True)
class Gate:
    """Gates from counts of the last K updates.

    a_k counts type k among the targets of the last `memory` updates, the current one included, and a type is
    rare while a_k / min(step, memory) < alpha. For rare types g1_k = a_k / min(step, memory) gates the gradient
    from positions with a frequent target, and g2_k = min(a_k / mean of rare a, 1) the gradient from positions
    with another rare target; both are 1 elsewhere.

    alpha: mean count per update below which a type is rare; proportional to tokens per update.
    memory: K, in updates; proportional to the length of training.
    """

    alpha: float = field(metadata={"scales_with": "tokens_per_step"})
    memory: int = field(metadata={"scales_with": "steps"})

    def __post_init__(self):
        if self.alpha <= 0:
            raise ValueError("alpha must be above 0, or no token is ever rare")
        if self.memory < 1:
            raise ValueError("memory must be at least 1 update")

    def start(self, vocabulary: int, device="cpu") -> "Counters":
        """Counters at zero, for `vocabulary` types."""
        return Counters(self, vocabulary, device)


class Counters:
    """The counter memory of one training: a ring of the last K updates' target counts and their sum.

    State: `slots` K x V and `total` V (32-bit integers), `step` (number of updates counted).
    """

    def __init__(self, gate: Gate, vocabulary: int, device):
        import torch

        self.gate = gate
        self.slots = torch.zeros(gate.memory, vocabulary, dtype=torch.int32, device=device)
        self.total = torch.zeros(vocabulary, dtype=torch.int32, device=device)
        self.step = torch.zeros((), dtype=torch.int64)

    def begin_update(self) -> None:
        """Start a new update; all micro-batches until the next call share its slot."""
        slot = self.slots[int(self.step) % self.gate.memory]
        self.total -= slot
        slot.zero_()
        self.step += 1

    def count(self, targets) -> None:
        """Add the targets (N) of one micro-batch to the current update."""
        counts = targets.bincount(minlength=len(self.total)).to(self.total.dtype)
        self.slots[(int(self.step) - 1) % self.gate.memory] += counts
        self.total += counts

    def gates(self, targets):
        """Gates 2 x V (g1, g2) and the class of each of the targets, N: 1 where the target is rare, else 0."""
        import torch

        total = self.total.double()
        mean_count = total / min(int(self.step), self.gate.memory)
        rare = mean_count < self.gate.alpha
        one = torch.ones_like(mean_count)
        mean_rare = (total * rare).sum() / rare.sum().clamp_min(1)
        g1 = torch.where(rare, mean_count, one)
        g2 = torch.where(rare, (total / (mean_rare + EPSILON)).clamp_max(1), one)
        return torch.stack([g1, g2]), rare[targets].long()

    def state(self) -> dict:
        """Tensors that a checkpoint keeps."""
        return {"slots": self.slots, "total": self.total, "step": self.step}

    def load(self, state: dict) -> None:
        """Take over the tensors of a checkpoint."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


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
