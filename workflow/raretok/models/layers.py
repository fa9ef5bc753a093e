"""Pre-norm transformer blocks shared by the models.

Shapes: B sequences, T positions, d width, H heads.
"""

import torch
from torch import nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position sees itself and what came before it."""

    def __init__(self, width: int, heads: int, bias: bool, dropout: float):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.projection = nn.Linear(width, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        # B x T x 3d -> three of B x H x T x d/H
        split = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind()
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        y = self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return F.dropout(y, dropout, self.training) if dropout else y


class FeedForward(nn.Module):
    """Two linear layers with an exact GELU between them, four times as wide inside."""

    def __init__(self, width: int, bias: bool, dropout: float):
        super().__init__()
        self.dropout = dropout
        self.expansion = nn.Linear(width, 4 * width, bias=bias)
        self.projection = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.projection(F.gelu(self.expansion(x)))
        return F.dropout(y, self.dropout, self.training) if self.dropout else y


class Block(nn.Module):
    """Attention and feed-forward, each normalised before and added to the residual stream after."""

    def __init__(self, width: int, heads: int, bias: bool, dropout: float):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, bias=bias)
        self.attention = CausalSelfAttention(width, heads, bias, dropout)
        self.feed_forward_norm = nn.LayerNorm(width, bias=bias)
        self.feed_forward = FeedForward(width, bias, dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))
