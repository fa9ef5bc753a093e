"""Contrastive weight tying (Godey et al. 2024): the other targets of the batch are the negatives."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loss:
    """-log(exp<h_t, w_{y_t}> / sum_s exp<h_t, w_{y_s}>), s over all positions of the batch.

    A type that is the target n_k times stands n_k times in the sum, so the loss is a cross-entropy over the
    vocabulary with log n_k added to the logits, and -inf for types that are no target at all.
    """

    # Its D is of the batch's targets alone, which gates are not defined for.
    combines_with_gates = False

    def __call__(self, outputs):
        """Loss of each position, N."""
        # Whole numbers, exact; bincount would make the host wait for a GPU.
        ones = outputs.logits.new_ones(outputs.batch.shape)
        log_counts = outputs.logits.new_zeros(outputs.logits.shape[1]).scatter_add(0, outputs.batch, ones).log()
        return outputs.cross_entropy(outputs.logits + log_counts) + log_counts[outputs.targets]


def reference(h, w, y):
    """The N x N form: h N x d, w V x d, y N -> N."""
    import torch

    similarity = h @ w[y].T
    return -(torch.diagonal(similarity) - torch.logsumexp(similarity, dim=1))
