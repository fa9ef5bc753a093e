"""Blocks of an encoder-decoder: attention and feed-forward, each added to the residual stream.

Layer norms stand before each part (`pre`) or after each addition (`post`). Shapes as in `attention`.
"""

from collections.abc import Callable

import torch
from torch import nn

from rarepapers.models.attention import CrossAttention, SelfAttention
from rarepapers.models.decoding_cache import LayerCache
from rarepapers.models.encoder_decoder_config import EncoderDecoderConfig
from rarepapers.models.layers import FeedForward

Part = Callable[[torch.Tensor], torch.Tensor]


class Residual(nn.Module):
    """Base class: position of the norms, and the feed-forward part."""

    def __init__(self, config: EncoderDecoderConfig):
        super().__init__()
        self.is_pre_norm = config.norm == "pre"
        self.feed_forward_norm = nn.LayerNorm(config.width, bias=config.bias)
        self.feed_forward = FeedForward(config.width, config.bias, config.dropout, config.inner, config.activation)

    def add(self, x: torch.Tensor, norm: nn.LayerNorm, part: Part) -> torch.Tensor:
        """x plus the output of `part`, with the norm before or after."""
        return x + part(norm(x)) if self.is_pre_norm else norm(x + part(x))


class EncoderBlock(Residual):
    """Self-attention over the source, then feed-forward; B x S x d to B x S x d."""

    def __init__(self, config: EncoderDecoderConfig):
        super().__init__(config)
        self.attention_norm = nn.LayerNorm(config.width, bias=config.bias)
        self.attention = SelfAttention(*attention_options(config), causal=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        x = self.add(x, self.attention_norm, lambda y: self.attention(y, mask))
        return self.add(x, self.feed_forward_norm, self.feed_forward)


class DecoderBlock(Residual):
    """Causal self-attention, cross-attention to the encoder's output, feed-forward; B x T x d to B x T x d."""

    def __init__(self, config: EncoderDecoderConfig):
        super().__init__(config)
        self.attention_norm = nn.LayerNorm(config.width, bias=config.bias)
        self.attention = SelfAttention(*attention_options(config), causal=True)
        self.cross_attention_norm = nn.LayerNorm(config.width, bias=config.bias)
        self.cross_attention = CrossAttention(*attention_options(config))

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        x = self.add(x, self.attention_norm, self.attention)
        x = self.add(x, self.cross_attention_norm, lambda y: self.cross_attention(y, memory, mask))
        return self.add(x, self.feed_forward_norm, self.feed_forward)

    def step(self, x: torch.Tensor, cache: LayerCache) -> torch.Tensor:
        """`forward` for one new position of each hypothesis, B x k x d, whose past is in the cache."""
        x = self.add(x, self.attention_norm, lambda y: self.attention.step(y, cache))
        x = self.add(x, self.cross_attention_norm, lambda y: self.cross_attention.step(y, cache))
        return self.add(x, self.feed_forward_norm, self.feed_forward)


def attention_options(config: EncoderDecoderConfig) -> tuple[int, int, bool, float, float]:
    """Arguments of an attention module: width, heads, bias, dropout, dropout of its weights."""
    attention_dropout = config.dropout if config.attention_dropout is None else config.attention_dropout
    return config.width, config.heads, config.bias, config.dropout, attention_dropout
