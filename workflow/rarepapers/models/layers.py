"""Layers shared by the models: attention weights, dropout, feed-forward, fixed positions.

Shapes: B sequences, T positions, d width, H heads.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

# In fairseq the first two rows of the table belong to padding, so the first token is at position 2.
FIRST_POSITION = 2
ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu}
# Maximum number of keys for which bfloat16 attention on a CPU computes the whole matrix of weights.
MOST_KEYS = 512


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    causal: bool = False,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """softmax(q k^T / sqrt(d/H)) v, of queries B x H x T x d/H, and keys and values B x H x S x d/H.

    mask: true for visible positions, broadcast to B x H x T x S. causal: a query sees the keys up to its own position;
    T = S. dropout_p: of the weights.
    """
    if not in_bfloat16_on_cpu(query) or key.shape[2] > MOST_KEYS:
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout_p, is_causal=causal)
    # The backward pass of torch's fused kernel is made for long sequences; at 128 keys this is four times as fast.
    scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(2, 3))
    if causal:
        scores = scores + scores.new_full(scores.shape[2:], -math.inf).triu(1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.matmul(dropout(scores.softmax(3), dropout_p, dropout_p > 0), value)


def dropout(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """`F.dropout`, but in bfloat16 on a CPU from 16 random bits per entry, which takes a fifth of the time.

    In that case p is rounded to a multiple of 2^-16.
    """
    if not (training and p) or not in_bfloat16_on_cpu(x):
        return F.dropout(x, p, training) if p else x
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    return x * (bits >= round(p * 2**16) - 2**15) * (1 / (1 - p))


def in_bfloat16_on_cpu(x: torch.Tensor) -> bool:
    """Whether x lies on a CPU, under autocast."""
    return x.device.type == "cpu" and torch.is_autocast_enabled("cpu")


class FeedForward(nn.Module):
    """Two linear layers with an activation between them.

    inner: width between them; None: four times as wide. activation: `gelu` (exact) or `relu`.
    """

    def __init__(self, width: int, bias: bool, dropout: float, inner: int | None = None, activation: str = "gelu"):
        super().__init__()
        self.dropout = dropout
        self.activation = ACTIVATIONS[activation]
        inner = 4 * width if inner is None else inner
        self.expansion = nn.Linear(width, inner, bias=bias)
        self.projection = nn.Linear(inner, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.projection(self.activation(self.expansion(x)))
        return dropout(y, self.dropout, self.training)


def sinusoidal_table(length: int, width: int) -> torch.Tensor:
    """Fixed position vectors 0 to length - 1, `length` x `width`, as in fairseq.

    Sines of all frequencies, then their cosines, with frequencies from 1 to 1/10,000 in equal ratios; position t has
    the angle t + 2 (fairseq counts from its padding id, 1). An odd width ends with a zero.
    """
    half = width // 2
    frequencies = torch.exp(torch.arange(half) * -(math.log(10_000) / (half - 1)))
    angles = torch.arange(FIRST_POSITION, FIRST_POSITION + length)[:, None] * frequencies
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    return F.pad(table, (0, width % 2))
