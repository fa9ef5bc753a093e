"""Coupled Adam (Stollenwerk & Stollenwerk 2025, arXiv 2502.08441): all embeddings share Adam's second moment."""

from dataclasses import dataclass

from raretok.methods.parts import EmbeddingUpdate


@dataclass(frozen=True)
class CoupledAdam(EmbeddingUpdate):
    """AdamW uses one second moment for all rows of the embedding matrices: the mean over the vocabulary.

    The mean is taken per dimension. Rare and frequent types thus take steps of the same scale.
    """

    shares_second_moment = True

    def second_moment(self, own):
        """The shared second moment of the rows: ... x V x d -> ... x 1 x d."""
        return own.mean(dim=-2, keepdim=True)


def reference(v):
    """The formula, entry by entry: second moments V x d -> V x d."""
    import torch

    return torch.stack([torch.stack([sum(column) / len(v) for column in v.T]) for _ in v])
