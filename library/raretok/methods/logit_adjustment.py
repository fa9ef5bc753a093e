"""Logit adjustment (Menon et al. 2021, arXiv 2007.07314): training adds log frequencies to the logits."""

from dataclasses import dataclass
from functools import partial

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Loss, LossOf
from raretok.methods.unigram import log_unigram


@dataclass(frozen=True)
class LogitAdjustment(Loss):
    """Loss: cross-entropy of z + tau log pi, with pi the unigram distribution of the training targets.

    Evaluation uses plain z. With an output bias that starts at 0, this trains exactly like maximum likelihood with a
    bias that starts at tau log pi; plain z is then the post-hoc form, which subtracts tau log pi after training.

    Args:
        tau: at least 0; 0 is cross-entropy.
    """

    needs_counts = True

    tau: float = 1.0

    def __post_init__(self):
        check_not_negative(self, "tau")

    def start(self, facts):
        """The loss, with the unigram distribution of the training targets."""
        shift = self.tau * log_unigram(facts.counts).to(facts.device)
        return LossOf(partial(_with_shift, shift))


def _with_shift(shift, outputs):
    return outputs.cross_entropy(outputs.logits + shift.to(outputs.logits.dtype))


def reference(z, y, counts, tau=1.0):
    """The formula as margins between pairs of types: z N x V, y N, counts V -> N."""
    import torch

    pi = [(n + 1) / (sum(counts) + len(counts)) for n in counts]
    losses = []
    for row, target in zip(z, y.tolist(), strict=True):
        ratios = [(pi[k] / pi[target]) ** tau * torch.exp(row[k] - row[target]) for k in range(len(pi)) if k != target]
        losses.append(torch.log(1 + sum(ratios)))
    return torch.stack(losses)
