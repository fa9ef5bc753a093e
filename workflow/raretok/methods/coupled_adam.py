"""Coupled Adam (Stollenwerk & Stollenwerk 2025, arXiv 2502.08441): all embeddings share Adam's second moment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CoupledAdam:
    """AdamW divides every row of the embedding matrices by one second moment: its mean over the vocabulary.

    The mean is taken for each dimension, so that rare and frequent types take steps of one scale.
    """

    kind = "embedding_update"

    def second_moment(self, own):
        """The second moment of the rows, by whose root they are divided: ... x V x d to ... x 1 x d."""
        return own.mean(dim=-2, keepdim=True)


def reference(v):
    """The formula, entry by entry: second moments V x d -> V x d."""
    import torch

    return torch.stack([torch.stack([sum(column) / len(v) for column in v.T]) for _ in v])
