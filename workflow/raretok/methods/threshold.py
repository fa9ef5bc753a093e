"""Thresholding: logits far below the target's are dropped in training (stop_jostling, Algorithm 1, B, G.2)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """Loss: cross-entropy over the logits that are at least theta_t = z_t[y_t] - margin_t; the others become -inf.

    Types that are no option at a position get no gradient there. Such models are best at a temperature below 1:
    `raretok.best_temperature`. The comparison carries no gradient, so detaching the threshold makes no difference.

    Args:
        margin: in logits, at least 0, the same at every position; or
        alpha: margin_t = alpha ||h_t|| ||w_{y_t}||, at least 0 (Appendix B).
        detach_under: keep the values under the threshold and cut their gradient alone (G.2, "DUT").
    """

    kind = "loss"

    margin: float | None = None
    alpha: float | None = None
    detach_under: bool = False

    def __post_init__(self):
        if (self.margin is None) == (self.alpha is None):
            raise ValueError("give either margin or alpha")
        if (self.alpha if self.margin is None else self.margin) < 0:
            raise ValueError("a margin below 0 would drop the target itself")

    def __call__(self, outputs):
        """Loss of each position, N."""
        z = outputs.logits
        if self.margin is not None:
            margin = self.margin
        else:
            target_rows = outputs.weight.detach()[outputs.targets]
            margin = self.alpha * (outputs.hidden.detach().norm(dim=1) * target_rows.norm(dim=1))[:, None]
        under = z.detach() < outputs.target_logits().detach() - margin
        kept = z.detach().where(under, z) if self.detach_under else z.masked_fill(under, -math.inf)
        return outputs.cross_entropy(kept)


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
