"""The output layer: hidden vectors and the output embedding matrix to one training loss.

Every method in the four papers either changes the loss of given logits, or the gradient that the output
embedding W receives. The logits' values are the same for all, so one pass is enough and is exact.

Shapes: N positions, d width, V types. z = h W^T + b are the logits, y the targets, D = dL/dz. With a class c(t) of
every position and one gate vector g_c (V) per class:

    dL/dh = D W
    dL/dW = sum_c diag(g_c) D_c^T h_c + sum_t (1 - g_{c(t)}[y_t]) D[t, y_t] outer(e_{y_t}, h_t)

D_c and h_c hold the positions of class c. The second sum gives each position's own target its full gradient. This is
the papers' form of three logits (agg, Eqs. 9 and 10) without the second and third of them. A bias is not gated.

N x V is never held: the logits of some positions are computed, turned into D in place, and used up for all three
gradients before the next positions' turn, as Liger Kernel's fused linear cross-entropy does.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from raretok.models.softmax import cross_entropy_gradient, fused_gradient

# Bytes of logits that are held at once: what a CPU's cache holds, what a GPU fills its cores with.
CHUNK_BYTES = {"cpu": 8 * 2**20, "cuda": 192 * 2**20}
# Positions of a chunk at least: every chunk reads and writes all of dL/dW once.
LEAST_POSITIONS = 256
# Where D of cross-entropy is made by a compiled kernel.
FUSED_DEVICES = ("cuda",)


@dataclass
class Outputs:
    """What a loss, penalty or perturbation may look at: n positions of a micro-batch, or all of it.

    logits: n x V; None for a penalty on parameters. hidden: n x d. weight: V x d. targets: n.
    batch: targets of the whole micro-batch, padding left out. inputs: B x T, the sequences that the positions are
    from, and positions: n, each one's index in them, row by row. padding: the id that is no token, or None.
    """

    logits: torch.Tensor | None
    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor
    batch: torch.Tensor | None = None
    inputs: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    padding: int | None = None

    def target_logits(self) -> torch.Tensor:
        """Logits of the targets, n x 1."""
        return self.logits.gather(1, self.targets[:, None])

    def cross_entropy(self, logits: torch.Tensor | None = None, label_smoothing: float = 0.0) -> torch.Tensor:
        """-log softmax(logits)[y] of each position, n; of the plain logits where none are given."""
        logits = self.logits if logits is None else logits
        return F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=label_smoothing)


@dataclass
class Result:
    """The training loss of a micro-batch.

    loss: scalar with gradient. nll: summed plain NLL of its positions, detached, in float64. logits: N x V plain
    logits, whose `grad` is set by the backward pass, where they were asked for; rows of padding are 0.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    logits: torch.Tensor | None = None


def output_loss(
    method,
    gate_state,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    *,
    inputs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    padding: int | None = None,
    normaliser: float | torch.Tensor | None = None,
    share: float = 1.0,
    batch: torch.Tensor | None = None,
    need_logits: bool = False,
) -> Result:
    """The training loss of a method over a micro-batch, and its gradients.

    method: a `raretok.methods.Method`. gate_state: what its gate's `start` returned, or None; it has counted the
    targets of the whole update already and is only read here. hidden: B x T x d, or N x d. weight: V x d. bias: V.
    targets: B x T, or N. inputs: B x T, the sequences; only penalties on tokens need them. padding: positions with
    this target do not count. normaliser: the number of targets that the sum of losses is divided by, those of the
    whole update where it has several micro-batches (default: those of this one). share: the micro-batch's share of
    the update, by which penalties on parameters count. batch: targets of the whole micro-batch, any shape, where
    several processes share it out and these are some of its rows. need_logits: keep the logits, N x V.

    The gradients are computed here, not in the backward pass, which may run once. Raises ValueError for a penalty on
    tokens without sequences.
    """
    hidden, flat = hidden.flatten(0, -2), targets.flatten()
    penalty = method.penalty
    on_tokens = is_on_tokens(penalty)
    if on_tokens and (inputs is None or inputs.dim() != 2 or inputs.numel() != len(flat)):
        raise ValueError("a penalty on tokens needs `inputs`, B x T, one for each target")
    is_padding, batch = None, flat if batch is None else batch.flatten()
    if padding is not None:
        # A padding id may lie outside the vocabulary.
        is_padding = flat == padding
        batch, flat = batch[batch != padding], flat.masked_fill(is_padding, 0)
    gating = gate_state.gates(flat) if gate_state is not None else None
    segments = arrange(flat, gating, is_padding)
    job = _Job(method, on_tokens, segments, flat, batch, inputs, padding, torch.is_grad_enabled())
    logits = None
    if need_logits:
        logits = hidden.new_zeros(len(flat), len(weight)).requires_grad_(job.with_gradient)
    scale = 1 / (max(1, len(batch)) if normaliser is None else normaliser)
    loss, nll = _ChunkedLoss.apply(hidden, weight, bias, logits, scale, job)
    if penalty is not None and not on_tokens:
        with torch.autocast(hidden.device.type, enabled=False):
            loss = loss + share * penalty(Outputs(None, hidden, weight, flat, batch, inputs, None, padding))
    return Result(loss, nll, logits)


def is_on_tokens(penalty) -> bool:
    """Whether a method's penalty is one of each position, and not of parameters; False where there is none."""
    return hasattr(penalty, "token_loss")


def token_losses(method, outputs: Outputs) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A method's loss, and its penalty on tokens where it has one, summed over positions, with their gradients.

    The penalty is of the plain logits; the method's perturbation and temperature change them for its loss.
    """
    penalty = method.penalty.token_loss(outputs).sum() if is_on_tokens(method.penalty) else None
    if method.perturbation is not None:
        outputs.logits = method.perturbation(outputs)
    temperature = method.training_temperature
    # A tensor where methods that differ in it are computed together.
    if isinstance(temperature, torch.Tensor) or temperature != 1.0:
        outputs.logits = outputs.logits * temperature
    return method.loss(outputs).sum(), penalty


@dataclass
class Segment:
    """Positions that share a gate.

    positions: their indices, or a slice of all. size: their number. gate: V, or None. by_rows: the gate can be put on
    the rows of dL/dW once all positions of the segment are in it, because the gate of each one's own target is 1.
    """

    positions: torch.Tensor | slice
    size: int
    gate: torch.Tensor | None = None
    by_rows: bool = False

    def chunks(self, positions: int):
        """The segment in parts of nearly equal size, of at most so many positions: their indices."""
        number = -(-self.size // positions)
        for k in range(number):
            part = slice(k * self.size // number, (k + 1) * self.size // number)
            yield part if isinstance(self.positions, slice) else self.positions[part]


def arrange(targets: torch.Tensor, gating, is_padding: torch.Tensor | None) -> list[Segment]:
    """Positions by class, the most frequent class first, padding (N, bool) left out.

    Only the first segment's gate can be put on rows, since dL/dW holds nothing else yet; others are gated entry by
    entry, and are small: rare targets are few.
    """
    if gating is None and is_padding is None:
        return [Segment(slice(None), len(targets))]
    gates, classes = gating if gating is not None else (None, torch.zeros_like(targets))
    number = 1 if gates is None else len(gates)
    own_is_gated = torch.zeros_like(targets, dtype=torch.bool) if gates is None else gates[classes, targets] != 1
    if is_padding is not None:
        classes = classes.masked_fill(is_padding, number)
    members = classes == torch.arange(number, device=classes.device)[:, None]
    # The host waits for the device here, and nowhere else.
    sizes, gated = torch.stack([members.sum(dim=1), (members & own_is_gated).sum(dim=1)]).tolist()
    segments = []
    order = None if max(sizes) == len(targets) else classes.argsort(stable=True)
    for c in sorted(range(number), key=lambda c: -sizes[c]):
        start = sum(sizes[:c])
        positions = slice(None) if order is None else order[start : start + sizes[c]]
        if sizes[c]:
            gate = None if gates is None else gates[c]
            segments.append(Segment(positions, sizes[c], gate, not segments and not gated[c]))
    return segments


@dataclass
class _Job:
    """What one call of the layer works through; see `output_loss`."""

    method: object
    on_tokens: bool
    segments: list[Segment]
    targets: torch.Tensor
    batch: torch.Tensor
    inputs: torch.Tensor | None
    padding: int | None
    with_gradient: bool

    @property
    def positions(self) -> int:
        """Number of the positions that are no padding."""
        return sum(segment.size for segment in self.segments)

    @property
    def is_cross_entropy(self) -> bool:
        """Whether D has the closed form, softmax minus target, from plain logits."""
        method = self.method
        is_plain = method.perturbation is None and method.training_temperature == 1.0 and not self.on_tokens
        return is_plain and getattr(method.loss, "is_cross_entropy", False)

    def chunk_loss(self, z, index, hidden, weight):
        """Loss and gradients of one chunk.

        z: n x V, may be overwritten. index: the chunk's positions. Returns the summed loss, the summed plain NLL, D of
        the loss, D of a penalty on tokens (or None), and gradients that went past the logits, of hidden and weight
        (or None).
        """
        method, targets = self.method, self.targets[index]
        if self.is_cross_entropy:
            return *cross_entropy_gradient(z, targets, method.loss.label_smoothing), None, None, None
        with torch.set_grad_enabled(self.with_gradient):
            leaves = [leaf.detach().requires_grad_(self.with_gradient) for leaf in (z, hidden, weight)]
            positions = torch.arange(len(self.targets), device=z.device)[index] if self.on_tokens else None
            outputs = Outputs(*leaves, targets, self.batch, self.inputs, positions, self.padding)
            nll = F.cross_entropy(z, targets, reduction="sum")
            loss, penalty = token_losses(method, outputs)
            gradients, penalty_gradient = (None, None, None), None
            if self.with_gradient:
                gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
            if penalty is not None:
                if self.with_gradient:
                    (penalty_gradient,) = torch.autograd.grad(penalty, leaves[:1])
                loss = loss + penalty
        return loss.detach(), nll, gradients[0], penalty_gradient, *gradients[1:]


class _ChunkedLoss(torch.autograd.Function):
    """The summed loss times `scale`, and the summed plain NLL, with gradients of hidden, weight, bias and logits."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, logits, scale, job):
        device = hidden.device.type
        low = weight.dtype
        if torch.is_autocast_enabled(device) and low == torch.float32:
            low = torch.get_autocast_dtype(device)
        # Statistics and sums are never of lower precision than float32.
        high = torch.promote_types(low, torch.float32)
        with torch.autocast(device, enabled=False):
            low_weight, low_bias = weight.to(low), None if bias is None else bias.to(low)
            total = torch.zeros(2, dtype=torch.float64, device=hidden.device)
            hidden_gradient = torch.zeros_like(hidden) if job.positions < len(job.targets) else torch.empty_like(hidden)
            weight_gradient = torch.zeros_like(weight, dtype=high)
            bias_gradient = None if bias is None else torch.zeros_like(bias, dtype=high)
            logits_gradient = None if logits is None else torch.zeros_like(logits)
            past = None
            fuses = job.is_cross_entropy and device in FUSED_DEVICES
            for segment in job.segments:
                gate = None if segment.gate is None else segment.gate.to(high)
                by_rows = segment.by_rows and not job.on_tokens
                for index in segment.chunks(chunk_positions(len(weight), low.itemsize, device)):
                    h, y = hidden[index], job.targets[index]
                    low_h = h.to(low)
                    z = F.linear(low_h, low_weight, low_bias)
                    if logits is not None:
                        logits.data[index] = z.to(logits.dtype)
                    if fuses and (gate is None or by_rows):
                        loss, nll, d = fused_gradient(z, y, job.method.loss.label_smoothing)
                        extra = past_h = past_w = None
                    else:
                        loss, nll, d, extra, past_h, past_w = job.chunk_loss(z.to(high), index, h.to(high), weight)
                    total += torch.stack([loss, nll])
                    if not job.with_gradient:
                        continue
                    both = d if extra is None else d + extra
                    low_d = both.to(low)
                    hidden_part = (low_d @ low_weight).to(hidden.dtype)
                    hidden_gradient[index] = hidden_part if past_h is None else hidden_part + past_h
                    if logits is not None:
                        logits_gradient[index] = both.to(logits.dtype)
                    if bias is not None:
                        bias_gradient += both.sum(dim=0, dtype=high)
                    if gate is not None and not by_rows:
                        gated = gate_entries(d, gate, y)
                        low_d = (gated if extra is None else gated + extra).to(low)
                    accumulate(weight_gradient, low_d, low_h)
                    if past_w is not None:
                        past = past_w if past is None else past + past_w
                if gate is not None and by_rows and job.with_gradient:
                    weight_gradient *= gate[:, None]
            if past is not None:
                weight_gradient += past
        ctx.scale = scale
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in (hidden, weight, bias, logits)]
        ctx.gradients = [hidden_gradient, weight_gradient, bias_gradient, logits_gradient]
        loss, nll = (total[0] * scale).to(high), total[1]
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, loss_gradient, _):
        if ctx.gradients is None:
            raise RuntimeError("the output layer's gradients were used already; its backward pass runs once")
        gradients, ctx.gradients = ctx.gradients, None
        scale = loss_gradient * ctx.scale
        # In place, each in its input's precision.
        scaled = [None if g is None else g.mul_(scale).to(low) for g, low in zip(gradients, ctx.dtypes, strict=True)]
        return *scaled, None, None


def gate_entries(d, gate, targets):
    """D, n x V, times the gate (V), but for each position's own target."""
    own = d.gather(1, targets[:, None])
    return (d * gate).scatter_(1, targets[:, None], own)


def accumulate(weight_gradient, d, h) -> None:
    """Add D^T h to V x d, which may be of higher precision."""
    if weight_gradient.dtype == d.dtype:
        weight_gradient.addmm_(d.T, h)
    else:
        weight_gradient += d.T @ h


def chunk_positions(types: int, size: int, device: str) -> int:
    """Positions whose logits are held at once, for so many types of `size` bytes each."""
    return max(LEAST_POSITIONS, CHUNK_BYTES.get(device, CHUNK_BYTES["cuda"]) // (types * size))
