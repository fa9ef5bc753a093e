"""A GPT-2 style decoder with learned or sinusoidal positions, tied or untied output embeddings.

Shapes: B sequences, T positions (at most `context`), d width, V vocabulary.
"""

import math

import torch
from torch import nn

from rarepapers.core.errors import UserError
from rarepapers.models.attention import CausalSelfAttention
from rarepapers.models.decoder_config import DecoderConfig
from rarepapers.models.initialisation import xavier_bound
from rarepapers.models.language_model import LanguageModel
from rarepapers.models.layers import FeedForward, dropout, sinusoidal_table


class Block(nn.Module):
    """Attention and feed-forward, each with a norm before and a residual addition after."""

    def __init__(self, width: int, heads: int, bias: bool, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, bias=bias)
        self.attention = CausalSelfAttention(width, heads, bias, dropout, attention_dropout)
        self.feed_forward_norm = nn.LayerNorm(width, bias=bias)
        self.feed_forward = FeedForward(width, bias, dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(LanguageModel):
    """Token ids (B x T) to hidden vectors (B x T x d); `logits` maps those to B x T x V."""

    def __init__(self, config: DecoderConfig, seed: int | None = None):
        """Initialise from `seed` (None: leave it to the caller, who loads weights).

        Random numbers are drawn parameter by parameter from a separate generator, the output matrix of an untied model
        last, so that tied and untied models with one seed otherwise start from the same weights.
        """
        super().__init__(config)
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.context, config.width)
        else:
            self.register_buffer("position_table", sinusoidal_table(config.context, config.width), persistent=False)
        attention_dropout = config.dropout if config.attention_dropout is None else config.attention_dropout
        self.blocks = nn.ModuleList(
            Block(config.width, config.heads, config.bias, config.dropout, attention_dropout)
            for _ in range(config.layers)
        )
        self.final_norm = nn.LayerNorm(config.width, bias=config.bias)
        self.add_output()
        if seed is not None:
            self.initialise(seed)

    @property
    def positions(self) -> torch.Tensor:
        """Position vectors, context x d."""
        return self.position_embedding.weight if self.config.positions == "learned" else self.position_table

    def initialise(self, seed: int) -> None:
        """Reinitialise all matrices and embeddings (see `DecoderConfig`); norms are 1, biases 0."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in sorted(self.named_parameters(), key=lambda item: item[0] == "output_embedding"):
            if parameter.dim() < 2:
                # Norms already start that way, biases of linear layers do not.
                if name.endswith("bias"):
                    parameter.data.zero_()
                continue
            values = torch.empty(parameter.shape)
            if "embedding" in name or self.config.linear_init == "normal":
                values.normal_(0.0, self._std(name), generator=generator)
            else:
                bound = xavier_bound(name, parameter.shape)
                values.uniform_(-bound, bound, generator=generator)
            parameter.data.copy_(values)

    def _std(self, name: str) -> float:
        is_residual = name.endswith("projection.weight")
        return self.config.init_std / math.sqrt(2 * self.config.layers) if is_residual else self.config.init_std

    @torch.no_grad()
    def set_output_bias(self, log_unigram: torch.Tensor, outside: torch.Tensor | None = None) -> None:
        """Start the output bias from the log probabilities of training targets, V, if the config says so.

        outside: of another text; a decoder ignores them. Raises ValueError for another number of types.
        """
        if log_unigram.shape != (self.config.vocabulary,):
            raise ValueError(f"log_unigram has shape {tuple(log_unigram.shape)}, not ({self.config.vocabulary},)")
        if self.config.output_bias == "unigram":
            self.output_bias.copy_(log_unigram)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Hidden vectors after the final norm, B x T x d, of ids B x T."""
        length = ids.shape[1]
        if length > self.config.context:
            raise UserError(f"{length} positions do not fit model.context, which is {self.config.context}")
        return self.hidden(self.token_embedding(ids))

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        """Hidden vectors after the final norm, B x T x d, of token embeddings B x T x d."""
        if self.config.scale_embedding:
            x = x * math.sqrt(self.config.width)
        x = self.located(x)
        x = dropout(x, self.config.dropout, self.training)
        for block in self.blocks:
            x = self.through(block, x)
        return self.final_norm(x)

    def located(self, x: torch.Tensor) -> torch.Tensor:
        """Token embeddings B x T x d plus position vectors."""
        return x + self.positions[: x.shape[1]]
