"""The unigram distribution as initial bias (natural_bias, 4.1), and a penalty that keeps away from it (A.4)."""

from dataclasses import dataclass, field

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Penalty


@dataclass(frozen=True)
class UnigramDivergence(Penalty):
    """Penalty: -strength * KL(unigram || p) at every position, in the first steps (natural_bias, A.4).

    Early in training a model comes close to the unigram distribution; the penalty prevents it (docs/deviations.md, N9).

    Args:
        strength: lambda, the weight of the penalty, at least 0.
        until: number of steps with the penalty; None: all.
        maximum: in nats, above 0. The divergence, which is unbounded and would outgrow any loss, is cut there and has
            no gradient beyond.
    """

    needs_counts = True
    on_tokens = True

    strength: float
    until: int | None = field(default=None, metadata={"scales_with": "steps"})
    maximum: float = 10.0

    def __post_init__(self):
        check_not_negative(self, "strength")
        if self.until is not None and self.until < 1:
            raise ValueError("until must be at least 1 step, or left out for the whole training")
        if not self.maximum > 0:
            raise ValueError("maximum must be above 0")

    def start(self, facts) -> "TokenPenalty":
        """The penalty, with the unigram distribution of the training targets."""
        return TokenPenalty(self, log_unigram(facts.counts).to(facts.device))


class TokenPenalty(Penalty):
    """The penalty in use, per position."""

    on_tokens = True

    def __init__(self, penalty: UnigramDivergence, log_q):
        """log_q: log unigram probabilities, V, in 64 bits."""
        self.penalty = penalty
        self.q = log_q.exp()
        self.negative_entropy = (self.q * log_q).sum()

    def token_loss(self, outputs):
        """The penalty of each position, N."""
        z = outputs.logits
        divergence = self.negative_entropy.to(z.dtype) - z @ self.q.to(z.dtype) + outputs.log_normaliser()
        return -self.penalty.strength * divergence.clamp_max(self.penalty.maximum)


def log_unigram(counts):
    """Log relative frequencies of types, V, float64. counts: of training targets, V integers.

    One is added to every count, so that types that never occur have a finite logarithm (docs/deviations.md, N5).
    """
    import numpy as np
    import torch

    smoothed = torch.from_numpy(np.asarray(counts, dtype=np.float64)) + 1
    return (smoothed / smoothed.sum()).log()


def reference(z, counts, strength, maximum=10.0):
    """The formula, position by position: z N x V, counts V -> N."""
    import torch

    q = log_unigram(counts).exp().to(z)
    losses = []
    for logits in z:
        log_p = torch.log_softmax(logits, dim=0)
        divergence = sum(q[k] * (torch.log(q[k]) - log_p[k]) for k in range(len(q)))
        losses.append(-strength * torch.minimum(divergence, divergence.new_tensor(maximum)))
    return torch.stack(losses)
