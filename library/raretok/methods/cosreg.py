"""Cosine regularisation (Gao et al. 2019): a penalty on the mean cosine of all pairs of embeddings."""

from dataclasses import dataclass

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Penalty


@dataclass(frozen=True)
class CosReg(Penalty):
    """Penalty: gamma times the mean cosine of all pairs of rows of the output embedding.

    Computed as gamma / V^2 * (||sum_i w_i / ||w_i|| ||^2 - V). A row of zeros (the padding row of some models) has no
    direction: its cosines are 0, and it gets no gradient.

    Args:
        gamma: weight of the penalty, at least 0.
    """

    gamma: float = 1.0

    def __post_init__(self):
        check_not_negative(self, "gamma")

    def __call__(self, outputs):
        """The penalty, a scalar."""
        weight = outputs.weight
        norms = weight.norm(dim=1, keepdim=True)
        is_zero = norms == 0
        directions = (weight / norms.masked_fill(is_zero, 1.0)).masked_fill(is_zero, 0.0)
        pairs = directions.sum(dim=0).square().sum() - (~is_zero).sum()
        return self.gamma / len(weight) ** 2 * pairs


def reference(w, gamma=1.0):
    """The double sum over pairs i != j: w V x d -> scalar."""
    total = 0
    for i in range(len(w)):
        for j in range(len(w)):
            if i != j and w[i].any() and w[j].any():
                total = total + (w[i] @ w[j]) / (w[i].norm() * w[j].norm())
    return gamma * total / len(w) ** 2
