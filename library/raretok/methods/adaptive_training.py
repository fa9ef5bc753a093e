"""Token-level adaptive training (Gu et al. 2020, arXiv 2010.04380): rare targets have a larger weight."""

import math
from dataclasses import dataclass
from functools import partial

from raretok.methods.counting import check_not_negative
from raretok.methods.cross_entropy import weighted_by_type
from raretok.methods.parts import Loss, LossOf


@dataclass(frozen=True)
class AdaptiveTraining(Loss):
    """Loss: w(y) times cross-entropy, with w = A exp(-t c) + 1, or w = A c^2 exp(-t c) + 1, the chi-square form.

    c is a type's training count divided by the median count of the types that occur, and A makes the largest weight e,
    as in the authors' code. Types that never occur have the weight of the rarest type that does; special types have
    weight 1.

    Args:
        t: how fast weights fall with c, at least 0.
        chi_square: use the second form, whose weights are also low for the rarest types.
    """

    needs_counts = True

    t: float = 1.0
    chi_square: bool = False

    def __post_init__(self):
        check_not_negative(self, "t")

    def start(self, facts):
        """The loss, with weights from the training counts."""
        import torch

        counts, special = torch.as_tensor(facts.counts, dtype=torch.float64, device="cpu"), list(facts.special)
        plain = counts > 0
        plain[special] = False
        found = counts[plain].sort(descending=True).values
        c = counts.clamp_min(found[-1]) / found[len(found) // 2]
        exponent = -self.t * c
        # Without the largest one, which A would divide out, all could underflow.
        raw = (exponent - exponent[plain].max()).exp() * (c**2 if self.chi_square else 1)
        weights = 1 + (math.e - 1) / raw[plain].max() * raw
        weights[special] = 1.0
        return LossOf(partial(weighted_by_type, weights.to(facts.device)))


def reference(z, y, counts, t=1.0, chi_square=False):
    """The formula, position by position: z N x V, y N, counts V -> N."""
    import torch

    found = sorted((int(n) for n in counts if n > 0), reverse=True)
    c = [int(n) / found[len(found) // 2] for n in counts]
    raw = [math.exp(-t * x) * (x**2 if chi_square else 1) for x in c]
    a = (math.e - 1) / max(value for value, n in zip(raw, counts, strict=True) if n > 0)
    return torch.stack([-(a * raw[k] + 1) * row.log_softmax(0)[k] for row, k in zip(z, y.tolist(), strict=True)])
