"""The gradient of the output embedding under a gate; the formula is in `raretok.output.output_layer`."""

import torch

from raretok.output.target_places import Places

# Entries of E that are held before their product is added: none on a CPU, where they are in the cache now, and on a GPU
# so many that a few small kernels per chunk remain.
HELD = {"cpu": 0, "cuda": 2**24}


class GatedGradient:
    """E^T h for the gated columns, and X^T h for the gradient X of an ungated penalty, summed over chunks.

    gates: 2 x V, one gate vector per class. hidden: of the kept positions, n x d. low: precision of the products.
    weight_gradient: V x d, gives the precision of the sums.
    """

    def __init__(self, gates, places: Places, hidden, low: torch.dtype, weight_gradient):
        self.places, self.hidden, self.low, columns = places, hidden, low, places.columns
        self.first = gates[0]
        self.difference = gates[:, columns] - gates[0, columns]
        # For each type, its index in `columns`, or -1.
        self.place = columns.new_full(gates.shape[1:], -1)
        self.place[columns] = torch.arange(len(columns), device=columns.device)
        self.sum = weight_gradient.new_zeros(len(columns), weight_gradient.shape[1])
        self.ungated = None
        # Of the chunks since the last product: D at chosen positions and gated columns, and those positions.
        self.held: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add(self, d, extra, part: slice) -> None:
        """Add a chunk. d: D, n x V. extra: X, n x V, or None. part: its kept positions."""
        columns = self.places.columns
        if extra is not None:
            self.ungated = torch.zeros_like(self.sum) if self.ungated is None else self.ungated
            accumulate(self.ungated, extra[:, columns].to(self.low), self.hidden[part].to(self.low))
        chosen = self.places.chosen(part)
        if not len(chosen) or not len(columns):
            return
        self.held.append((d[(chosen - part.start)[:, None], columns], chosen))
        if sum(entries.numel() for entries, _ in self.held) > HELD.get(d.device.type, HELD["cuda"]):
            self.add_held()

    def add_held(self) -> None:
        """Add E^T h of the chunks held so far."""
        if not self.held:
            return
        held, self.held = self.held, []
        entries, positions = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*held, strict=True))
        targets = self.places.targets[positions]
        factor, place = self.difference[self.places.classes[positions]], self.place[targets]
        own = torch.where(place < 0, factor[:, 0], 1 - self.first[targets])
        factor.scatter_(1, place.clamp_min(0)[:, None], own[:, None])
        accumulate(self.sum, entries.mul_(factor).to(self.low), self.hidden[positions].to(self.low))

    def apply_to(self, weight_gradient) -> None:
        """Turn (D + X)^T h, V x d, into the gated gradient, in place."""
        self.add_held()
        columns = self.places.columns
        first = self.first[columns, None]
        gated = torch.addcmul(self.sum, weight_gradient[columns], first)
        if self.ungated is not None:
            gated += (1 - first) * self.ungated
        weight_gradient.index_copy_(0, columns, gated)


def accumulate(weight_gradient, d, h, is_first: bool = False) -> None:
    """Add D^T h to V x d, or write it there if it `is_first`.

    If V x d has higher precision than D, the sum is computed in it where the device can.
    """
    old = 0 if is_first else 1
    if weight_gradient.dtype == d.dtype:
        weight_gradient.addmm_(d.T, h, beta=old)
    elif d.is_cuda and hasattr(torch.ops.aten.addmm, "dtype_out"):
        torch.addmm(weight_gradient, d.T, h, beta=old, out_dtype=weight_gradient.dtype, out=weight_gradient)
    elif is_first:
        weight_gradient.copy_(d.T @ h)
    else:
        weight_gradient += d.T @ h


def multiply(d, weight, out) -> None:
    """D W into `out`, n x d, in its precision where the device can."""
    if out.dtype == d.dtype:
        torch.mm(d, weight, out=out)
    elif (
        d.is_cuda
        and (d.dtype, out.dtype) == (torch.bfloat16, torch.float32)
        and hasattr(torch.ops.aten.mm, "dtype_out")
    ):
        torch.mm(d, weight, out_dtype=out.dtype, out=out)
    else:
        out.copy_(d @ weight)
