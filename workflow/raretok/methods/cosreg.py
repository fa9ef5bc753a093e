"""Cosine regularisation (Gao et al. 2019): the mean cosine of all pairs of embeddings is kept low."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Penalty:
    """gamma / V^2 * (||sum_i w_i / ||w_i|| ||^2 - V): gamma times the sum of cosines over ordered pairs / V^2.

    gamma: weight of the penalty.
    """

    gamma: float = 1.0

    def __call__(self, outputs):
        """The penalty, a scalar."""
        weight = outputs.weight
        types = len(weight)
        direction = (weight / weight.norm(dim=1, keepdim=True)).sum(dim=0)
        return self.gamma / types**2 * (direction.square().sum() - types)


def reference(w, gamma=1.0):
    """The double sum over pairs i != j: w V x d -> scalar."""
    total = 0
    for i in range(len(w)):
        for j in range(len(w)):
            if i != j:
                total = total + (w[i] @ w[j]) / (w[i].norm() * w[j].norm())
    return gamma * total / len(w) ** 2
