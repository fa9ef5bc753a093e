"""Several decoders of one shape stacked into one, with each matrix product batched over all models.

Shapes: M models, B sequences, T positions, d width, V types; each parameter is stacked M times.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

from rarepapers.models.decoder import Decoder


class StackedDecoder(Decoder):
    """M decoders without dropout. Parameters keep their names; those of the single models become slices of them."""

    def __init__(self, models: Sequence[Decoder]):
        """models: with equal configs; unchanged except that their parameters become views."""
        super().__init__(models[0].config)
        self.models = len(models)
        for name, module in list(self.named_modules()):
            stacked = {nn.Linear: StackedLinear, nn.LayerNorm: StackedLayerNorm}.get(type(module))
            if stacked is not None:
                self.set_submodule(name, stacked(module))
        own = [dict(model.named_parameters()) for model in models]
        for name in own[0]:
            parameter = nn.Parameter(torch.stack([parameters[name].detach() for parameters in own]))
            owner, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(owner), attribute, parameter)
            for parameters, part in zip(own, parameter.detach().unbind(), strict=True):
                parameters[name].data = part
        if self.config.positions != "learned":
            self.position_table = models[0].position_table

    def embeddings(self, ids: torch.Tensor) -> torch.Tensor:
        """Token embeddings, MB x T x d, of ids M x B x T."""
        first_row = torch.arange(self.models, device=ids.device)[:, None, None] * self.config.vocabulary
        return F.embedding((ids + first_row).flatten(0, 1), self.input_weight.flatten(0, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Hidden vectors after the final norm, MB x T x d, of ids M x B x T."""
        return self.hidden(self.embeddings(ids))

    def located(self, x: torch.Tensor) -> torch.Tensor:
        """Token embeddings MB x T x d plus position vectors."""
        if self.config.positions != "learned":
            return super().located(x)
        return (x.unflatten(0, (self.models, -1)) + self.positions[:, None, : x.shape[1]]).flatten(0, 1)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Plain logits, M x N x V, of hidden vectors M x N x d."""
        return torch.bmm(hidden, self.output_weight.transpose(1, 2))


class StackedLinear(nn.Module):
    """Linear layers of M models, applied to the concatenated batches of M models."""

    def __init__(self, layer: nn.Linear):
        """layer: one of them; weight (M x outputs x inputs) and bias (M x outputs) are set afterwards."""
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        models, outputs, inputs = self.weight.shape
        y, matrices = x.reshape(models, -1, inputs), self.weight.transpose(1, 2)
        y = torch.bmm(y, matrices) if self.bias is None else torch.baddbmm(self.bias[:, None], y, matrices)
        return y.view(*x.shape[:-1], outputs)


class StackedLayerNorm(nn.Module):
    """Layer norms of M models, applied to the concatenated batches of M models."""

    def __init__(self, layer: nn.LayerNorm):
        """layer: one of them; weight and bias (M x d) are set afterwards."""
        super().__init__()
        self.weight, self.bias, self.eps = layer.weight, layer.bias, layer.eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        models, width = self.weight.shape
        y = F.layer_norm(x, (width,), eps=self.eps).view(models, -1, width) * self.weight[:, None]
        return (y if self.bias is None else y + self.bias[:, None]).view(x.shape)
