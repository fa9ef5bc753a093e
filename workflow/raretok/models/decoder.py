"""A GPT-2 style decoder with learned positions, tied or untied output embeddings.

Shapes: B sequences, T positions (at most `context`), d width, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from raretok.errors import UserError
from raretok.models.layers import Block


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and choices of a decoder.

    vocabulary: number of token types V. layers, heads, width, context: the usual. dropout: on embeddings,
    attention and residual branches. bias: whether linear layers and layer norms have biases. tied: one matrix
    for input and output embeddings. init_std: of every matrix and embedding; projections into the residual
    stream get init_std / sqrt(2 layers), as GPT-2.
    """

    vocabulary: int
    layers: int
    heads: int
    width: int
    context: int
    dropout: float = 0.0
    bias: bool = False
    tied: bool = True
    init_std: float = 0.02

    def __post_init__(self):
        if self.width % self.heads:
            raise UserError(f"model.width is {self.width}, which {self.heads} heads (model.heads) do not divide")


class Decoder(nn.Module):
    """Token ids (B x T) to hidden vectors (B x T x d); `logits` turns those into B x T x V."""

    def __init__(self, config: DecoderConfig, seed: int | None = None):
        """Initialise from `seed` (none: leave that to whoever loads weights).

        Numbers are drawn parameter by parameter from a generator of their own, the output matrix of an untied
        model last, so that tied and untied models of one seed start from the same weights otherwise.
        """
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(
            Block(config.width, config.heads, config.bias, config.dropout) for _ in range(config.layers)
        )
        self.final_norm = nn.LayerNorm(config.width, bias=config.bias)
        if not config.tied:
            self.output_embedding = nn.Parameter(torch.empty(config.vocabulary, config.width))
        if seed is not None:
            self.initialise(seed)

    @property
    def input_weight(self) -> torch.Tensor:
        """Input embedding matrix, V x d."""
        return self.token_embedding.weight

    @property
    def output_weight(self) -> torch.Tensor:
        """Output embedding matrix, V x d; the input's when tied."""
        return self.token_embedding.weight if self.config.tied else self.output_embedding

    def initialise(self, seed: int) -> None:
        """Draw all matrices and embeddings anew, N(0, init_std); norms are 1, biases 0."""
        generator = torch.Generator().manual_seed(seed)
        residual_std = self.config.init_std / math.sqrt(2 * self.config.layers)
        for name, parameter in sorted(self.named_parameters(), key=lambda item: item[0] == "output_embedding"):
            if parameter.dim() < 2:
                continue
            std = residual_std if name.endswith("projection.weight") else self.config.init_std
            values = torch.empty(parameter.shape).normal_(0.0, std, generator=generator)
            parameter.data.copy_(values)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Hidden vectors after the final norm, B x T x d, of ids B x T."""
        length = ids.shape[1]
        if length > self.config.context:
            raise ValueError(f"{length} positions do not fit a context of {self.config.context}")
        x = self.token_embedding(ids) + self.position_embedding.weight[:length]
        if self.config.dropout:
            x = F.dropout(x, self.config.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.final_norm(x)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Plain logits of hidden vectors (... x d -> ... x V), the same for every method."""
        return F.linear(hidden, self.output_weight)
