"""Adversarial softmax (Wang, Gong, Liu 2019): the worst case over a small change of the target's embedding."""

from dataclasses import dataclass

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Perturbation


@dataclass(frozen=True)
class Adversarial(Perturbation):
    """Perturbation: the target's logit becomes <h, w_y> - alpha ||w_y|| ||h||, with ||w_y|| detached.

    Args:
        alpha: radius of the perturbation as a share of the embedding's norm, at least 0.
    """

    alpha: float

    def __post_init__(self):
        check_not_negative(self, "alpha")

    def __call__(self, outputs):
        """Perturbed logits, N x V."""
        radius = self.alpha * outputs.weight.detach()[outputs.targets].norm(dim=1)
        worst = radius * outputs.hidden.norm(dim=1)
        return outputs.logits.scatter_add(1, outputs.targets[:, None], -worst[:, None])


def reference(h, w, y, alpha):
    """Perturbed logits position by position: h N x d, w V x d, y N -> N x V."""
    import torch

    rows = []
    for t in range(len(y)):
        row = [h[t] @ w[i] for i in range(len(w))]
        row[y[t]] = row[y[t]] - alpha * torch.sqrt((w[y[t]] ** 2).sum()).detach() * torch.sqrt((h[t] ** 2).sum())
        rows.append(torch.stack(row))
    return torch.stack(rows)
