"""Power-law decay loss (Shao et al. 2025, arXiv 2505.16900): a target's weight is a power of its frequency."""

from dataclasses import dataclass
from functools import partial

from raretok.methods.counting import check_not_negative
from raretok.methods.cross_entropy import weighted_by_type
from raretok.methods.parts import Loss, LossOf


@dataclass(frozen=True)
class PowerLawDecay(Loss):
    """Loss: count(y)^-alpha / Z times cross-entropy; Z is the mean of the powers over all training targets.

    The authors divide by each batch's sum of weights; here a position's loss does not depend on others.
    Types that never occur have the weight of the rarest type that does; special types have weight 1.

    Args:
        alpha: at least 0; 0 is cross-entropy, and with 1 every type has the same total weight.
    """

    needs_counts = True

    alpha: float = 1.0

    def __post_init__(self):
        check_not_negative(self, "alpha")

    def start(self, facts):
        """The loss, with weights from the training counts."""
        import torch

        counts, special = torch.as_tensor(facts.counts, dtype=torch.float64, device="cpu"), list(facts.special)
        plain = counts > 0
        plain[special] = False
        least = counts[plain].min()
        # Relative to the rarest type's, which Z would divide out; otherwise all could underflow.
        powers = (counts.clamp_min(least) / least) ** -self.alpha
        z = (counts * powers)[plain].sum() / counts[plain].sum()
        weights = powers / z
        weights[special] = 1.0
        return LossOf(partial(weighted_by_type, weights.to(facts.device)))


def reference(z, y, counts, alpha=1.0):
    """The formula, position by position: z N x V, y N, counts V -> N."""
    import torch

    powers = {k: 1 / int(n) ** alpha for k, n in enumerate(counts) if n > 0}
    mean = sum(powers[k] * int(counts[k]) for k in powers) / sum(counts)
    return torch.stack([-powers[k] / mean * row.log_softmax(0)[k] for row, k in zip(z, y.tolist(), strict=True)])
