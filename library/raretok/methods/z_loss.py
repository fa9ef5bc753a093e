"""z-loss (Chowdhery et al. 2022, PaLM): a penalty that keeps the normaliser of the softmax near 1."""

from dataclasses import dataclass

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Penalty


@dataclass(frozen=True)
class ZLoss(Penalty):
    """Penalty: strength * log^2 Z at every position, with Z the sum of the exponentials of the plain logits.

    Args:
        strength: weight of the penalty, at least 0.
    """

    on_tokens = True
    has_closed_form = True

    strength: float = 1e-4

    def __post_init__(self):
        check_not_negative(self, "strength")

    def token_loss(self, outputs):
        """The penalty of each position, N."""
        return self.strength * outputs.log_normaliser().square()

    def closed_form(self, outputs, probability, log_normaliser):
        """The penalty and its gradient for `softmax_gradient.cross_entropy_gradient`."""
        return self.strength * log_normaliser.square(), 2 * self.strength * log_normaliser, None, None


def reference(z, strength=1e-4):
    """The formula, position by position: z N x V -> N."""
    import torch

    return torch.stack([strength * torch.log(sum(torch.exp(logit) for logit in row)) ** 2 for row in z])
