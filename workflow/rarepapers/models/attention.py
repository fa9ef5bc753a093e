"""Attention layers: of a decoder; of an encoder-decoder, self-attention of source and target, and cross-attention.

Shapes: B sentences, T target positions, S source positions, k hypotheses per sentence, d width, H heads. A mask is
B x 1 x 1 x S and true for visible positions; None: all are visible.
"""

import torch
from torch import nn

from rarepapers.models.decoding_cache import LayerCache
from rarepapers.models.layers import attention, dropout


class Attention(nn.Module):
    """Base class of layers with a `projection`.

    attention_dropout: on the weights; dropout: on the output that is added to the residual stream. The layers make
    their matrices themselves, because models are initialised in the order of their matrices.
    """

    def __init__(self, heads: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_dropout = attention_dropout

    def split(self, x: torch.Tensor, parts: int) -> tuple[torch.Tensor, ...]:
        """B x T x (parts d) -> `parts` views of B x H x T x d/H."""
        batch, length, width = x.shape
        heads = x.view(batch, length, parts, self.heads, width // (parts * self.heads))
        return heads.permute(2, 0, 3, 1, 4).unbind()

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
        causal: bool = False,
    ) -> torch.Tensor:
        """Attention output of all heads after the projection, B x T x d."""
        y = attention(query, key, value, mask, causal, self.attention_dropout if self.training else 0.0)
        y = self.projection(y.transpose(1, 2).flatten(2))
        return dropout(y, self.dropout, self.training)

    def attend_few(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """As `attend` without dropout, several times as fast for few queries. mask: additive, 0 or -inf."""
        scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(2, 3))
        if mask is not None:
            scores += mask
        return self.projection(torch.matmul(scores.softmax(3), value).transpose(1, 2).flatten(2))


class CausalSelfAttention(Attention):
    """Self-attention of a decoder: a position sees only itself and earlier ones."""

    def __init__(self, width: int, heads: int, bias: bool, dropout: float, attention_dropout: float):
        super().__init__(heads, dropout, attention_dropout)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.projection = nn.Linear(width, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attend(*self.split(self.qkv(x), 3), causal=True)


class SelfAttention(Attention):
    """Queries, keys and values from the same positions.

    causal: a position sees only itself and earlier ones, so it never sees the padding after a sentence.
    """

    def __init__(self, width: int, heads: int, bias: bool, dropout: float, attention_dropout: float, causal: bool):
        super().__init__(heads, dropout, attention_dropout)
        self.causal = causal
        self.projection = nn.Linear(width, width, bias=bias)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.attend(*self.split(self.qkv(x), 3), mask, self.causal)

    def step(self, x: torch.Tensor, cache: LayerCache) -> torch.Tensor:
        """One new position of each hypothesis, x B x k x d, which attends to its own past in the cache."""
        query, key, value = self.split(self.qkv(x), 3)
        cache.append(key, value)
        return self.attend_few(query, cache.keys, cache.values, cache.visible)


class CrossAttention(Attention):
    """Queries from the target, keys and values from the encoder's output (memory)."""

    def __init__(self, width: int, heads: int, bias: bool, dropout: float, attention_dropout: float):
        super().__init__(heads, dropout, attention_dropout)
        self.projection = nn.Linear(width, width, bias=bias)
        self.query = nn.Linear(width, width, bias=bias)
        self.key_value = nn.Linear(width, 2 * width, bias=bias)

    def keys_values(self, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the memory (B x S x d), each B x H x S x d/H."""
        return self.split(self.key_value(memory), 2)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.attend(*self.split(self.query(x), 1), *self.keys_values(memory), mask)

    def step(self, x: torch.Tensor, cache: LayerCache) -> torch.Tensor:
        """As `forward` for x B x k x d; the hypotheses of a sentence share its memory, so they act as its queries."""
        (query,) = self.split(self.query(x), 1)
        return self.attend_few(query, cache.memory_keys, cache.memory_values, cache.memory_mask)
