"""Adaptive gradient partial scaling (agps, Eqs. 10 to 15 and Algorithm 1): gates from counts of the whole corpus."""

from dataclasses import dataclass

from raretok.methods.counting import bound_of_share, first_rare_rank, frequency_ranks, step_counts
from raretok.methods.parts import Gate, GateState

READINGS = ("eq15", "alg1")


@dataclass(frozen=True)
class AGPS(Gate):
    """Gate: adaptive gradient partial scaling (agps, Eqs. 10 to 15), from counts of the whole training corpus.

    Rare words that are not a target of the step get f1 times the gradient from targets that are not rare, and f2 times
    that from rare targets; f1 = min(c / mu_1, 1), f2 = min(c / mu_2, 1), with c the training count (Eqs. 13, 14;
    docs/deviations.md, G5). Rare words that are a target, and all other words, get the full gradient. A factor that is
    the same for all rare words is refused.

    Args:
        rare_from: i_r, the rank by decreasing training count from which words are rare, at least 1.
        mu_1, mu_2: counts, above that of the rarest word that occurs.
        reading: `eq15` as in that equation; `alg1` as in Algorithm 1: f1 + f2 from rare targets (G1).
        touches: share of the rare words whose count is below mu_2 in the paper's corpus; scaled runs of the pipeline
            derive mu from it.
    """

    rare_from: int
    mu_1: float
    mu_2: float
    reading: str = "eq15"
    touches: float | None = None

    def __post_init__(self):
        if self.rare_from < 1:
            raise ValueError("rare_from must be at least 1, or every word is rare")
        if not (self.mu_1 > 0 and self.mu_2 > 0):
            raise ValueError("mu_1 and mu_2 must be above 0; they are counts that others are divided by")
        if self.reading not in READINGS:
            raise ValueError(f"reading must be one of {', '.join(READINGS)}")
        if self.touches is not None and not 0 < self.touches < 1:
            raise ValueError("touches must be above 0 and below 1")

    def start(self, facts) -> "State":
        """The gate's state before the first step.

        Raises ValueError if rare_from makes no word, or every word, rare, and if f1 or f2 is the same number for all
        rare words that occur.
        """
        return State(self, facts)


class State(GateState):
    """The rare words, their two fixed factors, and the words that are targets of the current step.

    A scaled run derives i_r and mu from its own counts (docs/deviations.md, Scaled runs). i_r is the smallest rank such
    that words from there on make up at most `rare.mass` of the training tokens. mu_2 is the count below which the share
    `touches` of the rare words lies, and mu_1 keeps its ratio to mu_2; without `touches` both are proportional to the
    training tokens.
    """

    def __init__(self, gate: AGPS, facts):
        import numpy as np
        import torch

        counts = np.asarray(facts.counts, dtype=np.int64)
        ranks = frequency_ranks(facts)
        self.gate, self.types, self.group = gate, len(counts), facts.group
        self.rare_from, self.mu_1, self.mu_2 = first_rare_rank(gate.rare_from, facts), gate.mu_1, gate.mu_2
        is_rare = ranks >= self.rare_from
        rare_counts = counts[is_rare & (counts > 0)]
        if facts.rare is not None and len(rare_counts):
            scale = float(counts.sum() / facts.rare["tokens"])
            if gate.touches is not None:
                # In a short corpus all rare words have low counts, and a proportional mu would lie below all of them.
                scale = bound_of_share(rare_counts, gate.touches * len(rare_counts)) / gate.mu_2
            self.mu_1, self.mu_2 = gate.mu_1 * scale, gate.mu_2 * scale
        check_gates(rare_counts, mu_1=self.mu_1, mu_2=self.mu_2)
        self.is_rare = torch.from_numpy(is_rare)
        count = torch.from_numpy(counts).double()
        self.f1 = (count / self.mu_1).clamp_max(1)
        self.f2 = (count / self.mu_2).clamp_max(1)
        self.present = torch.zeros(self.types, dtype=torch.bool, device="cpu")

    def begin_step(self, targets) -> None:
        """Mark the words that are targets of the step in any process."""
        self.present = step_counts(targets, self.types, self.group) > 0

    def rare(self):
        """Which words are rare, V."""
        return self.is_rare

    def gates(self, targets):
        """Gates 2 x V and classes N (1: rare target)."""
        import torch

        gated = self.is_rare & ~self.present
        one = torch.ones_like(self.f1)
        from_rare = self.f2 if self.gate.reading == "eq15" else self.f1 + self.f2
        gates = [torch.where(gated, factor, one) for factor in (self.f1, from_rare)]
        return torch.stack(gates), self.is_rare[targets].long()

    def derived(self) -> dict:
        """Numbers in use that do not appear in the settings."""
        return {
            "i_r": self.rare_from,
            "mu_1": self.mu_1,
            "mu_2": self.mu_2,
            "rare_types": int(self.is_rare.sum()),
        }

    def state(self) -> dict:
        """Tensors for a checkpoint: none, since every step starts anew."""
        return {}

    def load(self, state: dict) -> None:
        """Restores nothing."""


def check_gates(counts, **mus: float) -> None:
    """Raises ValueError if a gate min(c / mu, 1) is the same for all rare words that occur; counts: theirs."""
    if not len(counts):
        raise ValueError("rare_from is beyond the words that occur in training; lower it")
    least, most = int(counts.min()), int(counts.max())
    for name, mu in mus.items():
        if mu <= least or least == most:
            raise ValueError(
                f"AGPS's {name} is {mu:.3g} and rare words occur {least} to {most} times, so its gate is "
                f"{min(least / mu, 1):.3g} for all of them; raise {name} above {least}, or lower rare_from"
            )


def reference(h, w, y, f1, f2, rare_from):
    """Algorithm 1 with the indices of docs/deviations.md, G3: the sum L1 + L2 (G4), L2 over rare targets alone.

    h N x d, w V x d, y N, f1 and f2 V, words from index `rare_from` on rare. L1 is the NLL.
    """
    import torch

    mask = torch.zeros(len(w), dtype=w.dtype)
    mask[y] = 1
    mask[:rare_from] = 1
    reverse = (1 - mask) * f2.clamp_max(1)
    mask = (mask + f1).clamp_max(1)

    def masked_nll(features, rows, m):
        logits = features @ (m[:, None] * w + (1 - m[:, None]) * w.detach()).T
        return -torch.log_softmax(logits, dim=1).gather(1, rows[:, None]).sum()

    rare = y >= rare_from
    return masked_nll(h, y, mask) + masked_nll(h.detach()[rare], y[rare], reverse)


def reference_eq15(h, w, y, f1, f2, rare_from):
    """Eq. 15 with the bracket of docs/deviations.md, G2: the gradient of the summed NLL with respect to w, V x d."""
    import torch

    p = torch.softmax(h @ w.T, dim=1)
    rows = []
    for r in range(len(w)):
        row = torch.zeros_like(w[r])
        for t in range(len(y)):
            part = (p[t, r] - (1.0 if y[t] == r else 0.0)) * h[t]
            if r >= rare_from and r not in y:
                part = part * (f2[r] if y[t] >= rare_from else f1[r])
            row = row + part
        rows.append(row)
    return torch.stack(rows)
