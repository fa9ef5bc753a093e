"""Softminus: logits decrease smoothly towards the threshold (stop_jostling, G.1; docs/deviations.md, S13)."""

import math
from dataclasses import dataclass

from raretok.methods.parts import Loss

# Smallest argument of the logarithm (authors' code), reached just above the threshold, where exp(gap) - 1 equals gap.
FLOOR = 1e-9
# Below this margin the threshold, and the closed form's differences of probabilities, would lose digits in float32.
NARROW = 0.1


@dataclass(frozen=True)
class Softminus(Loss):
    """Loss: cross-entropy over logits that decrease smoothly towards the threshold theta_t = z_t[y_t] - margin.

    z' = C log(max(1e-9, exp((z - theta) / C) - 1)) + theta for z > theta, else -inf.

    Args:
        margin: in logits, above 0.
        c: C, above 0; 1 subtracts exp(theta) from every unnormalised probability.
        detach_threshold: no gradient through theta ("DT").
    """

    # Logits equal to theta are dropped.
    is_strict = True

    margin: float
    c: float = 1.0
    detach_threshold: bool = False

    def __post_init__(self):
        if not self.margin > 0:
            raise ValueError("margin must be above 0, or the target itself falls under the threshold")
        if not 0 < self.c < math.inf:
            raise ValueError("c must be above 0 and finite")

    @property
    def is_narrow(self):
        return self.margin < NARROW

    @property
    def drops_logits(self):
        """Whether the plain softmax is enough: with C = 1, exp(theta) is subtracted from every exponential."""
        return self.c == 1 and not self.is_narrow

    def __call__(self, outputs):
        """Loss of each position, N."""
        z = outputs.logits
        target_logits = outputs.target_logits()
        if self.detach_threshold:
            target_logits = target_logits.detach()
        # Adding a narrow margin last keeps it from being rounded away.
        gap = z - target_logits + self.margin if self.is_narrow else z - (target_logits - self.margin)
        if self.is_narrow and not self.detach_threshold:
            # The target's own gap is constant; two gradients of size 1 / margin would not quite cancel.
            rows = outputs.targets[:, None]
            gap = gap.scatter(1, rows, gap.gather(1, rows).detach())
        under = gap <= 0
        # Under the threshold the gap is set to 1, because a logarithm there would give a gradient of NaN.
        gap = (gap / self.c).masked_fill(under, 1.0).clamp_min(FLOOR)
        # C log(exp(gap) - 1) + theta = z + C log(1 - exp(-gap)), which does not overflow from a gap of 89 on.
        raised = z + self.c * (-gap.neg().expm1()).log()
        return outputs.cross_entropy(raised.masked_fill(under, -math.inf))

    def least_kept(self, outputs, target_logits):
        """theta, N x 1; target_logits: N x 1."""
        return target_logits - self.margin

    def of_kept(self, nll, mass, number):
        """Loss and gradient of each position from statistics of its row; returns loss, divisor and entry, N each.

        The gradient is the softmax of the kept logits over the divisor (None: 1), plus the entry at the target.
        nll: -log p[y], N. mass: the kept mass, N. number: returns n, the number of kept logits, N.

        With q = exp(-margin) p[y], the threshold's probability, and m the sum of p - q over the kept logits: loss = nll
        + log m - log(1 - exp(-margin)). Its gradient is p / m for a kept logit, and -1 / (1 - exp(-margin)) more for
        the target. Through the threshold the target gets exp(-margin) / (1 - exp(-margin)) - n q / m. The floor is not
        needed, since no logarithm of a small gap is taken.
        """
        share = -math.expm1(-self.margin)
        q, n = (-nll - self.margin).exp(), number()
        mass = mass - n * q
        own = nll.new_full(nll.shape, -1 / share)
        if not self.detach_threshold:
            own += (1 - share) / share - n * q / mass
        return nll + mass.log() - math.log(share), mass, own


def reference(z, y, margin, c=1.0, detach_threshold=False):
    """The formula, entry by entry: z N x V, y N -> N."""
    import torch

    losses = []
    for t in range(len(y)):
        theta = z[t, y[t]] - margin
        theta = theta.detach() if detach_threshold else theta
        row = []
        for i in range(z.shape[1]):
            if z[t, i] > theta:
                gap = torch.exp((z[t, i] - theta) / c) - 1
                gap = gap if gap > FLOOR else torch.full_like(gap, FLOOR)
                row.append(c * torch.log(gap) + theta)
            else:
                row.append(torch.tensor(-math.inf, dtype=z.dtype))
        row = torch.stack(row)
        losses.append(-(row[y[t]] - torch.logsumexp(row, 0)))
    return torch.stack(losses)
