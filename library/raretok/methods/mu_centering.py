"""mu-centering (Stollenwerk et al. 2026, arXiv 2601.02031): the output embedding is centred after every step."""

from dataclasses import dataclass

from raretok.methods.parts import EmbeddingUpdate


@dataclass(frozen=True)
class MuCentering(EmbeddingUpdate):
    """Subtracts the mean row from the output matrix, tied or not; the softmax stays the same."""

    changes_rows = True

    def after_step(self, weight) -> None:
        """Centre a matrix, ... x V x d, in place."""
        weight -= weight.mean(dim=-2, keepdim=True)


def reference(w):
    """The formula, entry by entry: w V x d -> V x d."""
    import torch

    means = [sum(column) / len(w) for column in w.T]
    return torch.stack([torch.stack([value - mean for value, mean in zip(row, means, strict=True)]) for row in w])
