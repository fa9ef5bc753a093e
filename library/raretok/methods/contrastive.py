"""Contrastive weight tying (Godey et al. 2024): the other targets of the batch are the negatives."""

from dataclasses import dataclass

from raretok.methods.counting import summed
from raretok.methods.parts import Loss


@dataclass(frozen=True)
class Contrastive(Loss):
    """Loss: -log(exp<h_t, w_{y_t}> / sum_s exp<h_t, w_{y_s}>), s over all positions of the micro-batch.

    The micro-batch is that of all processes. A type that is the target of n_k positions occurs n_k times in the sum,
    so the loss is a cross-entropy over the vocabulary with log n_k added to the logits, -inf for types that are no
    target, plus log n of the own target, which has no gradient. It does not combine with gates.
    """

    # Its D covers only the batch's targets, for which gates are not defined.
    combines_with_gates = False

    def of_batch(self, targets, types: int):
        """n_k of the micro-batch, V, which the loss of every position needs. targets: N, of this process."""
        # bincount would make the host wait for a GPU.
        return summed(targets.new_zeros(types).scatter_add_(0, targets, targets.new_ones(targets.shape)))

    def __call__(self, outputs):
        """Loss of each position, N."""
        log_counts = outputs.batch.to(outputs.logits.dtype).log()
        return outputs.cross_entropy(outputs.logits + log_counts) + log_counts[outputs.targets]


def reference(h, w, y):
    """The N x N form: h N x d, w V x d, y N -> N."""
    import torch

    similarity = h @ w[y].T
    return -(torch.diagonal(similarity) - torch.logsumexp(similarity, dim=1))
