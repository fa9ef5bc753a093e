"""Loss and gradients with respect to the logits of one chunk of positions.

Cross-entropy, losses that drop logits and some penalties have closed forms (`raretok.output.softmax_gradient`);
everything else goes through autograd.

Shapes: n positions of a chunk, d width, V types; z are the logits, D = dL/dz.
"""

import functools
from dataclasses import dataclass, field

import torch

from raretok.output.fused_gradient import fused_gradient
from raretok.output.outputs import Observed, Outputs, OutputsWithSoftmax, is_on_tokens, is_ungated, token_losses
from raretok.output.softmax_gradient import capped, cross_entropy_gradient, dropping_gradient, softmax_of
from raretok.output.target_places import Places

# Rows of a chunk that are processed together on a CPU if further matrices of their size are needed.
ROWS = 32


@dataclass
class Chunk:
    """The result for one chunk.

    terms: of the loss, each a factor and a value per position (n). nll: plain, n. d: n x V, of the loss. extra: n x V,
    of an ungated penalty, or None. past_hidden, past_weight: gradients that do not pass through the logits, or None.
    """

    terms: list
    nll: torch.Tensor
    d: torch.Tensor | None = None
    extra: torch.Tensor | None = None
    past_hidden: torch.Tensor | None = None
    past_weight: torch.Tensor | None = None

    @classmethod
    def of_rows(cls, found: list["Chunk"], d, extra) -> "Chunk":
        """One chunk from several groups of rows, whose D are in one matrix."""
        terms = [
            (factor, torch.cat([rows.terms[k][1] for rows in found])) for k, (factor, _) in enumerate(found[0].terms)
        ]
        past_hidden = [rows.past_hidden for rows in found]
        past_weight = [rows.past_weight for rows in found]
        return cls(
            terms,
            torch.cat([rows.nll for rows in found]),
            d,
            extra,
            None if past_hidden[0] is None else torch.cat(past_hidden),
            None if past_weight[0] is None else sum(past_weight),
        )

    def losses(self) -> torch.Tensor:
        """The loss of every position, n."""
        first, *others = (values if factor == 1.0 else factor * values for factor, values in self.terms)
        return sum(others, first)


@dataclass
class ChunkLoss:
    """Computes chunks of one micro-batch; see `output_loss` for most fields.

    low: precision of the matrix products. weights: of the kept positions. observed: of all positions, to be filled.
    buffers: matrices of the size of a chunk's logits, shared by all chunks.
    """

    method: object
    places: Places
    batch: object
    inputs: torch.Tensor | None
    padding: int | None
    soft_cap: float | None
    low: torch.dtype
    with_gradient: bool
    documents: torch.Tensor | None = None
    weights: torch.Tensor | None = None
    observed: Observed | None = None
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def high(self) -> torch.dtype:
        """Precision of statistics and sums, at least float32."""
        return torch.promote_types(self.low, torch.float32)

    @property
    def on_tokens(self) -> bool:
        """Whether the method's penalty has a value per position."""
        return is_on_tokens(self.method.penalty)

    @property
    def is_plain(self) -> bool:
        """Whether the loss uses the model's own logits."""
        return self.method.perturbation is None and self.method.training_temperature == 1.0

    @property
    def drops(self) -> bool:
        """Whether the loss drops logits and has a closed form."""
        return self.is_plain and not self.on_tokens and self.method.loss.drops_logits

    @property
    def is_closed_cross_entropy(self) -> bool:
        """Whether D has the closed form softmax minus target, and the penalty, if there is one, a closed form, too."""
        is_closed = not self.on_tokens or self.method.penalty.has_closed_form
        return self.is_plain and is_closed and self.method.loss.is_cross_entropy

    @property
    def is_cross_entropy(self) -> bool:
        """Whether the same holds for the sum of both; a penalty that bypasses a gate needs a D of its own."""
        apart = self.places.has_gates and is_ungated(self.method.penalty)
        return self.is_closed_cross_entropy and not apart

    def fused(self, z, part: slice, hidden, weight) -> Chunk | None:
        """As `chunk`, compiled for a GPU, for logits of any precision; None for what cannot be compiled."""
        found = None
        if self.drops or self.is_closed_cross_entropy:
            found = fused_gradient(self, z, part, hidden, weight)
        return None if found is None else Chunk(*found)

    def chunk(self, z, part: slice, hidden, weight) -> Chunk:
        """Loss and gradients of one chunk. z: n x V, is overwritten. part: its kept positions.

        If a CPU needs further matrices, it computes a few rows at a time, so that they fit into the cache. D then
        overwrites the logits.
        """
        is_in_place = self.is_cross_entropy and self.observed is None and self.soft_cap is None
        if z.device.type != "cpu" or is_in_place or len(z) <= ROWS:
            return self.rows(z, part, hidden, weight)
        found = []
        for start in range(0, len(z), ROWS):
            own = slice(start, min(start + ROWS, len(z)))
            rows = self.rows(z[own], slice(part.start + own.start, part.start + own.stop), hidden[own], weight)
            if self.with_gradient:
                if rows.extra is not None and not self.places.has_gates:
                    rows.d, rows.extra = rows.d + rows.extra, None
                if rows.d.data_ptr() != z[own].data_ptr():
                    z[own] = rows.d
                rows.d = None
                if rows.extra is not None:
                    self.buffer("extra", z)[own] = rows.extra
                    rows.extra = None
            found.append(rows)
        extra = self.buffer("extra", z) if "extra" in self.buffers else None
        return Chunk.of_rows(found, z if self.with_gradient else None, extra)

    def rows(self, z, part: slice, hidden, weight) -> Chunk:
        """As `chunk`, for all its rows at once."""
        targets = self.places.targets[part]
        weights = None if self.weights is None else self.weights[part].to(z.dtype)
        slope = None if self.soft_cap is None else capped(z, self.soft_cap)
        see = out = None
        if self.observed is not None:
            see = functools.partial(self.observed.see, self.places.positions(part), targets)
            out = self.buffer("softmax", z)
        loss = self.method.loss
        if self.is_cross_entropy or self.drops:
            if self.drops:
                outputs, kept = Outputs(z, hidden, weight.detach(), targets), self.buffer("kept", z)
                chunk = Chunk(*dropping_gradient(loss, outputs, kept=kept, see=see, out=out))
            else:
                penalty = None
                if self.on_tokens:
                    positions = self.places.positions(part)
                    outputs = Outputs(
                        z, hidden, weight, targets, None, self.inputs, positions, self.padding, self.documents
                    )
                    penalty = functools.partial(self.method.penalty.closed_form, outputs)
                made = cross_entropy_gradient(z, targets, loss.label_smoothing, see=see, out=out, penalty=penalty)
                chunk = Chunk(*made)
            if weights is not None and self.with_gradient:
                chunk.d *= weights[:, None]
        else:
            chunk = self.by_autograd(z, targets, part, hidden, weight, weights, see)
        if slope is not None and self.with_gradient:
            chunk.d = chunk.d * slope
            chunk.extra = None if chunk.extra is None else chunk.extra * slope
        return chunk

    def by_autograd(self, z, targets, part: slice, hidden, weight, weights, see) -> Chunk:
        """As `rows`, for any loss, penalty and perturbation."""
        softmax = softmax_of(z, self.buffer("softmax", z))
        if see is not None:
            see(z, *softmax)
        # Hides tensors saved here from hooks of the caller; torch.utils.checkpoint would compute the whole loss again.
        own_hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
        with torch.set_grad_enabled(self.with_gradient), own_hooks:
            leaves = [leaf.detach().requires_grad_(self.with_gradient) for leaf in (z, hidden, weight)]
            positions = self.places.positions(part) if self.on_tokens else None
            outputs = OutputsWithSoftmax(
                *leaves,
                targets,
                self.batch,
                self.inputs,
                positions,
                self.padding,
                self.documents,
                plain=leaves[0],
                softmax=softmax,
            )
            chunk = Chunk([], softmax[1] - z.gather(1, targets[:, None]).squeeze(1))
            for number, values in enumerate(token_losses(self.method, outputs)):
                if values is None:
                    continue
                chunk.terms.append((1.0, values.detach()))
                if not self.with_gradient:
                    continue
                total = (values if weights is None else values * weights).sum()
                if number == 0:
                    found = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=self.on_tokens)
                    chunk.d, chunk.past_hidden, chunk.past_weight = found
                else:
                    (chunk.extra,) = torch.autograd.grad(total, leaves[:1])
        return chunk

    def buffer(self, name: str, z: torch.Tensor) -> torch.Tensor:
        """A matrix like z with arbitrary contents. No chunk is larger than the first."""
        if name not in self.buffers:
            self.buffers[name] = torch.empty_like(z)
        return self.buffers[name][: len(z)]
