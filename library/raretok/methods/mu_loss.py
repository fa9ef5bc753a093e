"""mu-loss (Stollenwerk et al. 2026, arXiv 2601.02031): a penalty on the mean row of the output embedding."""

from dataclasses import dataclass

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Penalty


@dataclass(frozen=True)
class MuLoss(Penalty):
    """Penalty: strength * ||mu||^2, with mu the mean row of the output embedding.

    Args:
        strength: lambda, the weight of the penalty, at least 0.
    """

    strength: float = 1e-4

    def __post_init__(self):
        check_not_negative(self, "strength")

    def __call__(self, outputs):
        """The penalty, a scalar."""
        return self.strength * outputs.weight.mean(dim=0).square().sum()


def reference(w, strength=1e-4):
    """The formula as a double sum over types: w V x d -> scalar."""
    return strength * sum(a @ b for a in w for b in w) / len(w) ** 2
