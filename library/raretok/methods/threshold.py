"""Thresholding: logits far below the target's are dropped in training (stop_jostling, Algorithm 1, B, G.2)."""

import math
from dataclasses import dataclass

from raretok.methods.parts import Loss


@dataclass(frozen=True)
class Threshold(Loss):
    """Loss: cross-entropy over the logits that are at least theta_t = z_t[y_t] - margin_t; the others become -inf.

    Types below the threshold at a position get no gradient from it. Such models are best at a temperature below 1:
    `raretok.best_temperature`. The comparison carries no gradient, so detaching the threshold makes no difference.

    Args:
        margin: in logits, at least 0, the same at every position; or
        alpha: margin_t = alpha ||h_t|| ||w_{y_t}||, at least 0 (Appendix B). The norms follow a scale of the logits
            (`logit_scale`) but not `training_temperature`, and a soft cap, which would leave them uncapped, is refused.
        detach_under: keep the values below the threshold and cut only their gradient (G.2, "DUT").
    """

    drops_logits = True

    margin: float | None = None
    alpha: float | None = None
    detach_under: bool = False

    def __post_init__(self):
        if (self.margin is None) == (self.alpha is None):
            raise ValueError("give either margin or alpha")
        if not (self.alpha if self.margin is None else self.margin) >= 0:
            raise ValueError("margin and alpha must be at least 0; a margin below 0 would drop the target itself")

    @property
    def has_margin_of_norms(self):
        """Whether the margin is a share of norms, which know no soft cap of the logits."""
        return self.alpha is not None

    def least_kept(self, outputs, target_logits):
        """theta, N x 1; target_logits: N x 1."""
        if self.margin is not None:
            margin = self.margin
        else:
            target_rows = outputs.weight.detach()[outputs.targets]
            margin = self.alpha * (outputs.hidden.detach().norm(dim=1) * target_rows.norm(dim=1))[:, None]
        return target_logits.detach() - margin

    def __call__(self, outputs):
        """Loss of each position, N."""
        z = outputs.logits
        under = z.detach() < self.least_kept(outputs, outputs.target_logits())
        kept = z.detach().where(under, z) if self.detach_under else z.masked_fill(under, -math.inf)
        return outputs.cross_entropy(kept)

    def of_kept(self, nll, mass, number):
        """Loss and gradient of each position from statistics of its row; returns loss, divisor and entry, N each.

        The gradient is the softmax of the kept logits over the divisor (None: 1), plus the entry at the target.
        nll: -log p[y], N. mass: the kept mass, N, at least 1 / V, since the largest logit is kept. number: not
        used.
        """
        own = nll.new_full(nll.shape, -1.0)
        return (nll, None, own) if self.detach_under else (nll + mass.log(), mass, own)


def reference(z, y, margin, detach_under=False):
    """Algorithm 1 as printed, two loops: z N x V, y N, margin a number or N -> N."""
    import torch

    losses = []
    for t in range(len(y)):
        threshold = z[t, y[t]] - (margin if isinstance(margin, int | float) else margin[t])
        row = []
        for i in range(z.shape[1]):
            if z[t, i] < threshold:
                row.append(z[t, i].detach() if detach_under else torch.tensor(-math.inf, dtype=z.dtype))
            else:
                row.append(z[t, i])
        row = torch.stack(row)
        losses.append(-(row[y[t]] - torch.logsumexp(row, 0)))
    return torch.stack(losses)
