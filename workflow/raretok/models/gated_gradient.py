"""The gradient of the output embedding under a gate; the formula is in `raretok.models.output_layer`."""

import torch

from raretok.models.target_places import Places


class GatedGradient:
    """E^T h for the gated columns, and X^T h for the gradient X of an ungated penalty, summed over chunks.

    gates: 2 x V, one gate vector per class. weight_gradient: V x d, gives precision and device.
    """

    def __init__(self, gates, places: Places, weight_gradient):
        self.places, columns = places, places.columns
        self.first = gates[0]
        self.difference = gates[:, columns] - gates[0, columns]
        # For each type, its index in `columns`, or -1.
        self.place = columns.new_full(gates.shape[1:], -1)
        self.place[columns] = torch.arange(len(columns), device=columns.device)
        self.sum = weight_gradient.new_zeros(len(columns), weight_gradient.shape[1])
        self.ungated = None

    def add(self, d, extra, h, part: slice) -> None:
        """Add a chunk. d: D, n x V. extra: X, n x V, or None. h: hidden vectors, n x d. part: its kept positions."""
        if extra is not None:
            self.ungated = torch.zeros_like(self.sum) if self.ungated is None else self.ungated
            accumulate(self.ungated, extra[:, self.places.columns].to(h.dtype), h)
        chosen = self.places.chosen(part)
        if not len(chosen) or not len(self.sum):
            return
        targets, classes = self.places.targets[part][chosen], self.places.classes[part][chosen]
        factor, place = self.difference[classes], self.place[targets]
        own = torch.where(place < 0, factor[:, 0], 1 - self.first[targets])
        factor.scatter_(1, place.clamp_min(0)[:, None], own[:, None])
        entries = d[chosen[:, None], self.places.columns] * factor
        accumulate(self.sum, entries.to(h.dtype), h[chosen])

    def apply_to(self, weight_gradient) -> None:
        """Turn (D + X)^T h, V x d, into the gated gradient, in place."""
        columns = self.places.columns
        first = self.first[columns, None]
        gated = weight_gradient[columns] * first + self.sum
        if self.ungated is not None:
            gated += (1 - first) * self.ungated
        weight_gradient.index_copy_(0, columns, gated)


def accumulate(weight_gradient, d, h) -> None:
    """Add D^T h to V x d. If that has higher precision than D, the sum is computed in it where the device can."""
    if weight_gradient.dtype == d.dtype:
        weight_gradient.addmm_(d.T, h)
    elif d.is_cuda and hasattr(torch.ops.aten.addmm, "dtype_out"):
        torch.addmm(weight_gradient, d.T, h, out_dtype=weight_gradient.dtype, out=weight_gradient)
    else:
        weight_gradient += d.T @ h
