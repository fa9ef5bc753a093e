"""Norm-constrained rows, the head of nGPT (Loshchilov et al. 2025, arXiv 2410.01131): z = s h w / ||w||."""

from dataclasses import dataclass

from raretok.methods.parts import EmbeddingUpdate


@dataclass(frozen=True)
class NormedRows(EmbeddingUpdate):
    """All rows of the output embedding share one trained norm, s, which starts at 1 / sqrt(d).

    Directions are normalised after every step and have no weight decay. Hidden vectors come from a layer norm, so s is
    nGPT's s_z as its code stores it. A tied input embedding has the same rows.
    """

    changes_rows = True

    def parametrise(self, model) -> None:
        """Replace the output matrix by s and directions."""
        import torch
        from torch.nn.functional import normalize
        from torch.nn.utils.parametrize import register_parametrization

        class Rows(torch.nn.Module):
            def forward(self, s, directions):
                weight = s * normalize(directions)
                weight.directions = directions
                return weight

            def right_inverse(self, weight):
                return weight.new_tensor([weight.shape[1] ** -0.5]), normalize(weight)

        names = (name for name, parameter in model.named_parameters() if parameter is model.output_weight)
        owner, _, name = next(names).rpartition(".")
        register_parametrization(model.get_submodule(owner), name, Rows())

    def after_step(self, weight) -> None:
        """Normalise the directions."""
        weight.directions /= weight.directions.norm(dim=1, keepdim=True)


def reference(h, s, w):
    """Logits, entry by entry: h N x d, s scalar, w V x d -> N lists of V."""
    return [[s * (x @ row) / (row @ row).sqrt() for row in w] for x in h]
