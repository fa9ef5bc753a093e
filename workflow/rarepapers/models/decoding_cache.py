"""Cache of decoding: keys and values of earlier positions.

Shapes: B sentences, k hypotheses per sentence, S source positions, H heads, e = d/H, n slots.

The past of a hypothesis is never copied when another hypothesis continues it: all hypotheses of a sentence share its
slots, one for each position of each hypothesis, and `visible` tells which slots are the past of which hypothesis.
"""

import torch

HIDDEN = float("-inf")


class LayerCache:
    """Keys and values of one decoder block: of the memory, computed once, and of the past, a view of the used slots."""

    def __init__(self, memory_keys: torch.Tensor, memory_values: torch.Tensor, slots: int):
        batch, heads, _, size = memory_keys.shape
        self.memory_keys, self.memory_values = memory_keys.contiguous(), memory_values.contiguous()
        self.memory_mask: torch.Tensor | None = None
        self.visible: torch.Tensor | None = None
        self.used = 0
        self._keys = memory_keys.new_empty(batch, heads, slots, size)
        self._values = torch.empty_like(self._keys)

    @property
    def keys(self) -> torch.Tensor:
        """Keys of the slots in use, B x H x n x e."""
        return self._keys[:, :, : self.used]

    @property
    def values(self) -> torch.Tensor:
        """Values of the slots in use, B x H x n x e."""
        return self._values[:, :, : self.used]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Fill k more slots with B x H x k x e keys and values."""
        end = self.used + keys.shape[2]
        self._keys[:, :, self.used : end] = keys
        self._values[:, :, self.used : end] = values
        self.used = end

    def keep(self, sentences: torch.Tensor, columns: int) -> None:
        """Keep only these sentences (indices) and the first `columns` positions of the memory."""
        self.memory_keys = self.memory_keys[sentences, :, :columns]
        self.memory_values = self.memory_values[sentences, :, :columns]
        keys, values = self.keys[sentences], self.values[sentences]
        slots = self._keys.shape[2]
        self._keys = keys.new_empty(len(sentences), keys.shape[1], slots, keys.shape[3])
        self._values = torch.empty_like(self._keys)
        self._keys[:, :, : self.used], self._values[:, :, : self.used] = keys, values


class Cache:
    """The caches of all blocks, and what they share.

    layers: one per block. steps: positions decoded so far. is_branched: whether a sentence ever had several hypotheses.
    visible: B x k x n, 0 if slot n is in the past of a hypothesis, else -inf. lengths: of the sources, B. mask:
    B x 1 x 1 x S, also 0 or -inf; None: no padding.
    """

    def __init__(self, layers: list[LayerCache], mask: torch.Tensor | None, dtype: torch.dtype):
        """mask: true for visible memory, or None. dtype: of the queries, which additive masks must have."""
        first = layers[0].memory_keys
        self.layers = layers
        self.steps = 0
        self.is_branched = False
        self.visible = first.new_zeros(len(first), 1, 0, dtype=dtype)
        self.mask = None
        self.lengths = torch.full((len(first),), first.shape[2], device=first.device)
        if mask is not None:
            self.mask = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, HIDDEN)
            self.lengths = mask.flatten(1).sum(1)

    def begin(self, hypotheses: int) -> None:
        """Make room for one more position of each of the k hypotheses, which sees its own past and itself."""
        batch, k, _ = self.visible.shape
        if k != hypotheses:
            raise ValueError(f"{hypotheses} hypotheses are continued, but `reorder` was told of {k}")
        own = torch.full((k, k), HIDDEN, dtype=self.visible.dtype, device=self.visible.device).fill_diagonal_(0)
        self.visible = torch.cat([self.visible, own.expand(batch, k, k)], dim=2)
        # The only hypothesis of a sentence sees every slot.
        self.is_branched = self.is_branched or k > 1
        visible = self.visible[:, None] if self.is_branched else None
        for layer in self.layers:
            layer.visible, layer.memory_mask = visible, self.mask
        self.steps += 1

    def reorder(self, parents: torch.Tensor) -> None:
        """Replace the hypotheses by continuations of hypotheses `parents` (B x k) of the same sentence."""
        self.visible = self.visible.gather(1, parents[:, :, None].expand(-1, -1, self.visible.shape[2]))

    def keep(self, sentences: torch.Tensor) -> None:
        """Keep only these sentences (indices in the batch, ascending)."""
        self.lengths = self.lengths[sentences]
        columns = int(self.lengths.max())
        self.visible = self.visible[sentences]
        if self.mask is not None:
            self.mask = self.mask[sentences, :, :, :columns]
        for layer in self.layers:
            layer.keep(sentences, columns)
