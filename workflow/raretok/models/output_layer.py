"""The output layer: hidden vectors and the output embedding matrix to one training loss.

Every method in the four papers either changes the loss of given logits, or the gradient that the output
embedding W receives. The logits' values are the same for all, so one pass is enough and is exact.

Shapes: N positions, d width, V types. z = h W^T + b are the logits, y the targets, D = dL/dz. With a class c(t) of
every position, 0 or 1, and one gate vector g_c (V) per class:

    dL/dh = D W
    dL/dW = diag(g_0) D^T h + E^T h
    E[t, k] = (g_{c(t)}[k] - g_0[k]) D[t, k], but (1 - g_0[y_t]) D[t, y_t] at the position's own target

This is the papers' form of three logits (agg, Eqs. 9 and 10) without the second and third of them. E is 0 but for the
gated columns of positions whose target is rare, and those are few: the gate costs one small product. A bias is not
gated.

N x V is never held: the logits of some positions are computed, turned into D in place, and used up for all three
gradients before the next positions' turn, as Liger Kernel's fused linear cross-entropy does.
"""

import functools
from dataclasses import dataclass, field, replace

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from raretok.models.softmax_gradient import (
    capped,
    cross_entropy_gradient,
    dropping_gradient,
    fused_gradient,
    softmax_of,
)
from raretok.models.target_places import Places

# Bytes of logits that are held at once: what a CPU's cache holds, what a GPU fills its cores with.
CHUNK_BYTES = {"cpu": 8 * 2**20, "cuda": 352 * 2**20}
# Positions of a chunk at least: every chunk reads and writes all of dL/dW once.
LEAST_POSITIONS = 256
# Rows of a chunk that are worked on together on a CPU, where that takes further matrices.
ROWS = 32
# A GPU's matrix products work in tiles of so many rows; what does not fill one is wasted.
TILE = 128
# Where D of cross-entropy is made by a compiled kernel.
FUSED_DEVICES = ("cuda",)


@dataclass
class Outputs:
    """What a loss, penalty or perturbation may look at: n positions of a micro-batch, or all of it.

    logits: n x V; None for a penalty on parameters. hidden: n x d. weight: V x d. targets: n.
    batch: what the loss's `of_batch` made of the targets of the whole micro-batch, or None. inputs: B x T, the
    sequences that the positions are from, and positions: n, each one's index in them, row by row. padding: the id that
    is no token, or None.
    """

    logits: torch.Tensor | None
    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor
    batch: object = None
    inputs: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    padding: int | None = None

    def target_logits(self) -> torch.Tensor:
        """Logits of the targets, n x 1."""
        return self.logits.gather(1, self.targets[:, None])

    def log_normaliser(self) -> torch.Tensor:
        """log sum exp of the logits of each position, n."""
        return self.logits.logsumexp(dim=1)

    def cross_entropy(self, logits: torch.Tensor | None = None, label_smoothing: float = 0.0) -> torch.Tensor:
        """-log softmax(logits)[y] of each position, n; of the plain logits where none are given."""
        logits = self.logits if logits is None else logits
        return F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=label_smoothing)


@dataclass
class _SharedOutputs(Outputs):
    """Outputs that compute one softmax of the plain logits for all that asks for it.

    plain: the logits, n x V, a leaf. softmax: of them, and their log normaliser.
    """

    plain: torch.Tensor | None = None
    softmax: tuple[torch.Tensor, torch.Tensor] | None = None

    def log_normaliser(self) -> torch.Tensor:
        """As in `Outputs`."""
        return _LogNormaliser.apply(self.logits, *self._softmax_of(self.logits))

    def cross_entropy(self, logits: torch.Tensor | None = None, label_smoothing: float = 0.0) -> torch.Tensor:
        """As in `Outputs`."""
        logits = self.logits if logits is None else logits
        return _CrossEntropy.apply(logits, self.targets, label_smoothing, *self._softmax_of(logits))

    def _softmax_of(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.softmax if logits is self.plain else softmax_of(logits.detach())


class _LogNormaliser(torch.autograd.Function):
    """log sum exp of logits, n, whose softmax is known: n x V."""

    @staticmethod
    def forward(ctx, logits, p, log_normaliser):
        ctx.p = p
        return log_normaliser.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return ctx.p * gradient[:, None], None, None


class _CrossEntropy(torch.autograd.Function):
    """-log softmax(logits)[y], n, smoothed, of logits whose softmax is known: n x V."""

    @staticmethod
    def forward(ctx, logits, targets, label_smoothing, p, log_normaliser):
        ctx.p, ctx.rows, ctx.label_smoothing = p, targets[:, None], label_smoothing
        nll = log_normaliser - logits.gather(1, ctx.rows).squeeze(1)
        if not label_smoothing:
            return nll
        return (1 - label_smoothing) * nll + label_smoothing * (log_normaliser - logits.mean(dim=1))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        gradient = gradient[:, None]
        d = ctx.p * gradient
        if ctx.label_smoothing:
            d -= gradient * (ctx.label_smoothing / d.shape[1])
        return d.scatter_add_(1, ctx.rows, gradient * (ctx.label_smoothing - 1)), None, None, None, None


@dataclass
class Observed:
    """What a pass saw of the model's own logits, at every position; 0 and False where there is no target.

    log_probability: log softmax(z)[y], in nats. entropy: of softmax(z), in nats. is_best: whether no type has a larger
    logit than the target. All in the shape of the targets, without gradient.
    """

    log_probability: torch.Tensor
    entropy: torch.Tensor
    is_best: torch.Tensor

    @classmethod
    def empty(cls, positions: int, dtype: torch.dtype, device: torch.device) -> "Observed":
        """Of so many positions, nothing seen yet."""
        zeros = torch.zeros(2, positions, dtype=dtype, device=device)
        return cls(*zeros, torch.zeros(positions, dtype=torch.bool, device=device))

    def see(self, where, targets, z, p, log_normaliser) -> None:
        """Fill in the positions `where`, n, of plain logits z, n x V, with their softmax p."""
        target_logits = z.gather(1, targets[:, None]).squeeze(1)
        self.log_probability[where] = target_logits - log_normaliser
        self.entropy[where] = log_normaliser - torch.linalg.vecdot(p, z)
        self.is_best[where] = target_logits >= z.amax(dim=1)


@dataclass
class Result:
    """The training loss of a micro-batch.

    loss: with gradient, a scalar, or per position (N, 0 for padding) where that was asked for. nll: summed plain NLL of
    its positions, detached, in float64. logits: N x V plain logits, whose `grad` is set by the backward pass, where
    they were asked for; rows of padding are 0. observed: what was seen, where that was asked for.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    logits: torch.Tensor | None = None
    observed: Observed | None = None


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
    token_weights: torch.Tensor | None = None,
    soft_cap: float | None = None,
    normaliser: float | torch.Tensor | None = None,
    share: float = 1.0,
    per_position: bool = False,
    need_logits: bool = False,
    observe: bool = False,
    places: Places | None = None,
) -> Result:
    """The training loss of a method over a micro-batch, and its gradients.

    method: a `raretok.methods.Method`. gate_state: what its gate's `start` returned, or None; it has counted the
    targets of the whole step already and is only read here. hidden: B x T x d, or N x d. weight: V x d. bias: V.
    targets: B x T, or N. inputs: B x T, the sequences; only penalties on tokens need them. padding: positions with
    this target do not count. token_weights: what the loss of each position is multiplied by, as many as targets, or
    None; they get no gradient. soft_cap: the model's logits are soft_cap tanh(z / soft_cap). normaliser: the number of
    targets that the sum of losses is divided by, those of the whole step where it has several micro-batches (default:
    those of this one). share: the micro-batch's share of the step, by which penalties on parameters count.
    per_position: the loss of every position, undivided and without penalties on parameters. need_logits: keep the
    logits, N x V. observe: keep what `Observed` holds. places: of these targets, where they were made before the
    forward pass, so that the host does not wait for it.

    The gradients are computed here, not in the backward pass, which may run once; those of single positions are
    computed in the backward pass, from logits that are computed again. Raises ValueError for a penalty that needs
    sequences without them.
    """
    hidden = hidden.flatten(0, -2)
    penalty = method.penalty
    on_tokens = is_on_tokens(penalty)
    needs_inputs = getattr(penalty, "needs_inputs", False)
    if needs_inputs and (inputs is None or inputs.dim() != 2 or inputs.numel() != targets.numel()):
        raise ValueError("the penalty needs `inputs`, B x T, one for each target")
    places = Places(gate_state, targets, padding) if places is None else places
    batch = of_batch(method.loss, places.targets, len(weight))
    low = weight.dtype
    if torch.is_autocast_enabled(hidden.device.type) and low == torch.float32:
        low = torch.get_autocast_dtype(hidden.device.type)
    job = _Job(method, on_tokens, places, batch, inputs, padding, soft_cap, low, torch.is_grad_enabled())
    if token_weights is not None:
        job.weights = places.of_kept(token_weights.detach().flatten())
    if observe:
        job.observed = Observed.empty(len(hidden), job.high, hidden.device)
    if per_position:
        loss, nll = _PositionLosses.apply(hidden, weight, bias, job)
        return Result(loss, nll, None, job.observed)
    logits = None
    if need_logits:
        logits = hidden.new_zeros(len(hidden), len(weight)).requires_grad_(job.with_gradient)
    scale = 1 / (max(1, places.number) if normaliser is None else normaliser)
    loss, nll = _ChunkedLoss.apply(hidden, weight, bias, logits, scale, job)
    if penalty is not None and not on_tokens:
        with torch.autocast(hidden.device.type, enabled=False):
            loss = loss + share * penalty(
                Outputs(None, hidden, weight, places.all_targets, None, inputs, None, padding)
            )
    return Result(loss, nll, logits, job.observed)


def of_batch(loss, targets: torch.Tensor, types: int):
    """What a loss needs to know of all targets of a micro-batch (n, of all processes), or None."""
    return loss.of_batch(targets, types) if hasattr(loss, "of_batch") else None


def is_on_tokens(penalty) -> bool:
    """Whether a method's penalty is one of each position, and not of parameters; False where there is none."""
    return hasattr(penalty, "token_loss")


def is_ungated(penalty) -> bool:
    """Whether a method's penalty is one of each position, whose gradient goes past the gate."""
    return is_on_tokens(penalty) and not getattr(penalty, "gated", False)


def token_losses(method, outputs: Outputs) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A method's loss, and its ungated penalty on tokens if it has one, of each position (n), with their gradients.

    A gated penalty is part of the loss. Penalties are of the plain logits; the method's perturbation and temperature
    change them for its loss.
    """
    penalty = method.penalty.token_loss(outputs) if is_on_tokens(method.penalty) else None
    if method.perturbation is not None:
        outputs.logits = method.perturbation(outputs)
    temperature = method.training_temperature
    # A tensor where methods that differ in it are computed together.
    if isinstance(temperature, torch.Tensor) or temperature != 1.0:
        outputs.logits = outputs.logits * temperature
    loss = method.loss(outputs)
    return (loss, penalty) if penalty is None or is_ungated(method.penalty) else (loss + penalty, None)


@dataclass
class _Job:
    """What one call of the layer works through; see `output_loss`.

    low: the precision of the matrix products. weights: of the kept positions, n. observed: of all positions, to fill.
    room: matrices as large as a chunk's logits, which all chunks use in turn.
    """

    method: object
    on_tokens: bool
    places: Places
    batch: object
    inputs: torch.Tensor | None
    padding: int | None
    soft_cap: float | None
    low: torch.dtype
    with_gradient: bool
    weights: torch.Tensor | None = None
    observed: Observed | None = None
    room: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def high(self) -> torch.dtype:
        """That of statistics and sums, which is never lower than float32."""
        return torch.promote_types(self.low, torch.float32)

    @property
    def is_plain(self) -> bool:
        """Whether the loss is of plain logits."""
        return self.method.perturbation is None and self.method.training_temperature == 1.0

    @property
    def is_cross_entropy(self) -> bool:
        """Whether D has the closed form, softmax minus target, to which a penalty's closed form may be added.

        That of a penalty cannot be if a gate acts on the loss alone: both parts are then needed apart.
        """
        penalty = self.method.penalty
        apart = self.places.gates is not None and is_ungated(penalty)
        is_closed = not self.on_tokens or (hasattr(penalty, "closed_form") and not apart)
        return self.is_plain and is_closed and getattr(self.method.loss, "is_cross_entropy", False)

    def chunk(self, z, part, hidden, weight) -> "_Chunk":
        """Loss and gradients of one chunk. z: n x V, is overwritten. part: which of the kept positions.

        What needs more matrices than z goes through some rows at a time, whose D takes the place of their logits: on a
        CPU those matrices are then small enough for its cache.
        """
        is_in_place = self.is_cross_entropy and self.observed is None and self.soft_cap is None
        if z.device.type != "cpu" or is_in_place or len(z) <= ROWS:
            return self.rows(z, part, hidden, weight)
        found = []
        for start in range(0, len(z), ROWS):
            own = slice(start, min(start + ROWS, len(z)))
            rows = self.rows(z[own], slice(part.start + own.start, part.start + own.stop), hidden[own], weight)
            if self.with_gradient:
                if rows.extra is not None and self.places.gates is None:
                    rows.d, rows.extra = rows.d + rows.extra, None
                if rows.d.data_ptr() != z[own].data_ptr():
                    z[own] = rows.d
                rows.d = None
                if rows.extra is not None:
                    self.room_for("extra", z)[own] = rows.extra
                    rows.extra = None
            found.append(rows)
        extra = self.room_for("extra", z) if "extra" in self.room else None
        return _Chunk.of_rows(found, z if self.with_gradient else None, extra)

    def rows(self, z, part, hidden, weight) -> "_Chunk":
        """As `chunk`, of all its rows at once."""
        targets = self.places.targets[part]
        weights = None if self.weights is None else self.weights[part].to(z.dtype)
        slope = None if self.soft_cap is None else capped(z, self.soft_cap)
        see = None
        if self.observed is not None:
            see = functools.partial(self.observed.see, self.places.positions(part), targets)
        loss = self.method.loss
        out = None if see is None else self.room_for("softmax", z)
        drops = self.is_plain and not self.on_tokens and getattr(loss, "has_closed_form", False)
        if self.is_cross_entropy or drops:
            if drops:
                outputs, kept = Outputs(z, hidden, weight.detach(), targets), self.room_for("kept", z)
                chunk = _Chunk(*dropping_gradient(loss, outputs, kept=kept, see=see, out=out))
            else:
                penalty = None
                if self.on_tokens:
                    positions = self.places.positions(part)
                    outputs = Outputs(z, hidden, weight, targets, None, self.inputs, positions, self.padding)
                    penalty = functools.partial(self.method.penalty.closed_form, outputs)
                made = cross_entropy_gradient(z, targets, loss.label_smoothing, see=see, out=out, penalty=penalty)
                chunk = _Chunk(*made)
            if weights is not None and self.with_gradient:
                chunk.d *= weights[:, None]
        else:
            chunk = self.chunk_by_autograd(z, targets, part, hidden, weight, weights, see)
        if slope is not None and self.with_gradient:
            chunk.d = chunk.d * slope
            chunk.extra = None if chunk.extra is None else chunk.extra * slope
        return chunk

    def room_for(self, name: str, z: torch.Tensor) -> torch.Tensor:
        """A matrix like z, with what another chunk has left in it; no chunk is larger than the first."""
        if name not in self.room:
            self.room[name] = torch.empty_like(z)
        return self.room[name][: len(z)]

    def chunk_by_autograd(self, z, targets, part, hidden, weight, weights, see) -> "_Chunk":
        """As `chunk`, of any loss, penalty and perturbation."""
        softmax = softmax_of(z, self.room_for("softmax", z))
        if see is not None:
            see(z, *softmax)
        with torch.set_grad_enabled(self.with_gradient):
            leaves = [leaf.detach().requires_grad_(self.with_gradient) for leaf in (z, hidden, weight)]
            positions = self.places.positions(part) if self.on_tokens else None
            outputs = _SharedOutputs(
                *leaves, targets, self.batch, self.inputs, positions, self.padding, leaves[0], softmax
            )
            chunk = _Chunk([], softmax[1] - z.gather(1, targets[:, None]).squeeze(1))
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


@dataclass
class _Chunk:
    """What came of some positions.

    terms: of the loss, each a factor and a value per position (n). nll: plain, n. d: n x V, of the loss; extra: of a
    penalty on tokens, or None. past_hidden, past_weight: gradients that went past the logits, or None.
    """

    terms: list
    nll: torch.Tensor
    d: torch.Tensor | None = None
    extra: torch.Tensor | None = None
    past_hidden: torch.Tensor | None = None
    past_weight: torch.Tensor | None = None

    @classmethod
    def of_rows(cls, found: list["_Chunk"], d, extra) -> "_Chunk":
        """One of several, whose D lies in one matrix."""
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

    def sums(self, weights: torch.Tensor | None) -> torch.Tensor:
        """The summed loss, weighted, and the summed plain NLL, 2."""
        terms = [(factor, values if weights is None else values * weights) for factor, values in self.terms]
        loss = sum(values.sum() if factor == 1.0 else factor * values.sum() for factor, values in terms)
        return torch.stack([loss, self.nll.sum()])


@dataclass
class _Pass:
    """What one pass over a micro-batch found: sums of loss and NLL (2), losses of positions (N), gradients."""

    total: torch.Tensor
    losses: torch.Tensor | None
    gradients: list


def _run(job: _Job, hidden, weight, bias, logits, needed: list[bool], per_position: bool = False) -> _Pass:
    """Work through all chunks. needed: whether hidden, weight and bias need a gradient."""
    places, low, high, device = job.places, job.low, job.high, hidden.device.type
    needed = [need and job.with_gradient for need in needed]
    with torch.autocast(device, enabled=False):
        low_weight, low_bias = weight.to(low), None if bias is None else bias.to(low)
        kept = hidden if places.kept is None else hidden[places.kept]
        total = torch.zeros(2, dtype=torch.float64, device=hidden.device)
        losses = hidden.new_zeros(len(hidden), dtype=high) if per_position else None
        # What is not trained needs no gradient, and a matrix that is not trained no gate.
        hidden_gradient = torch.empty_like(kept) if needed[0] else None
        weight_gradient = torch.zeros_like(weight, dtype=high) if needed[1] else None
        bias_gradient = torch.zeros_like(bias, dtype=high) if needed[2] else None
        logits_gradient = None if logits is None else torch.zeros_like(logits)
        gates = None if places.gates is None or weight_gradient is None else places.gates.to(high)
        gating = None if gates is None else _Gating(gates, places, weight_gradient)
        past = None
        fuses = job.is_cross_entropy and not job.on_tokens and job.observed is None and device in FUSED_DEVICES
        size = chunk_size(places.number, chunk_positions(len(weight), low.itemsize, device))
        buffer = low_weight.new_empty(size, len(weight))
        for start in range(0, places.number, size):
            part = slice(start, min(start + size, places.number))
            h, y = kept[part], places.targets[part]
            weights = None if job.weights is None else job.weights[part].to(high)
            low_h = h.to(low)
            z = linear(low_h, low_weight, low_bias, buffer[: len(y)])
            if logits is not None:
                plain = z if job.soft_cap is None else job.soft_cap * (z.to(high) / job.soft_cap).tanh()
                logits.data[places.positions(part)] = plain.to(logits.dtype)
            if fuses:
                chunk = _Chunk(*fused_gradient(z, y, job.method.loss.label_smoothing, weights, job.soft_cap))
            else:
                chunk = job.chunk(z.to(high), part, h.to(high), weight)
            total += chunk.sums(weights)
            if losses is not None:
                losses[places.positions(part)] = sum(factor * values for factor, values in chunk.terms)
            if not job.with_gradient:
                continue
            d, extra = chunk.d, chunk.extra
            if gating is not None:
                gating.add(d, extra, low_h, part)
            if extra is not None:
                d += extra
            low_d = d.to(low)
            if hidden_gradient is not None:
                hidden_part = (low_d @ low_weight).to(hidden.dtype)
                past_hidden = chunk.past_hidden
                hidden_gradient[part] = hidden_part if past_hidden is None else hidden_part + past_hidden
            if logits is not None:
                logits_gradient[places.positions(part)] = d.to(logits.dtype)
            if bias_gradient is not None:
                bias_gradient += d.sum(dim=0, dtype=high)
            if weight_gradient is None:
                continue
            accumulate(weight_gradient, low_d, low_h)
            if chunk.past_weight is not None:
                past = chunk.past_weight if past is None else past + chunk.past_weight
        if gating is not None:
            gating.close(weight_gradient)
        job.room.clear()
        if past is not None and weight_gradient is not None:
            weight_gradient += past
        if places.kept is not None and hidden_gradient is not None:
            hidden_gradient = torch.zeros_like(hidden).index_copy_(0, places.kept, hidden_gradient)
    return _Pass(total, losses, [hidden_gradient, weight_gradient, bias_gradient, logits_gradient])


class _ChunkedLoss(torch.autograd.Function):
    """The summed loss times `scale`, and the summed plain NLL, with gradients of hidden, weight, bias and logits."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, logits, scale, job):
        found = _run(job, hidden, weight, bias, logits, ctx.needs_input_grad[:3])
        ctx.scale = scale
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in (hidden, weight, bias, logits)]
        ctx.gradients = found.gradients
        loss, nll = (found.total[0] * scale).to(job.high), found.total[1]
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx, loss_gradient, _):
        if ctx.gradients is None:
            raise RuntimeError("the output layer's gradients were used already; its backward pass runs once")
        gradients, ctx.gradients = ctx.gradients, None
        scale = loss_gradient * ctx.scale
        # In place, each in its input's precision.
        scaled = [None if g is None else g.mul_(scale).to(low) for g, low in zip(gradients, ctx.dtypes, strict=True)]
        return *scaled, None, None


class _PositionLosses(torch.autograd.Function):
    """The loss of every position, N, and the summed plain NLL.

    What arrives for each position scales its row of D, and is known in the backward pass alone: that goes through all
    chunks once more, with it as the positions' weights.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, job):
        ctx.save_for_backward(hidden, weight, bias)
        ctx.job = job
        found = _run(
            replace(job, with_gradient=False, room={}), hidden, weight, bias, None, [False] * 3, per_position=True
        )
        losses, nll = found.losses, found.total[1]
        if job.weights is not None:
            losses = losses * job.places.to_all(job.weights).to(losses.dtype)
        ctx.mark_non_differentiable(nll)
        return losses, nll

    @staticmethod
    @once_differentiable
    def backward(ctx, losses_gradient, _):
        hidden, weight, bias = ctx.saved_tensors
        job = ctx.job
        weights = job.places.of_kept(losses_gradient)
        weights = weights if job.weights is None else weights * job.weights
        job = replace(job, weights=weights, observed=None, room={})
        gradients = _run(job, hidden, weight, bias, None, ctx.needs_input_grad[:3]).gradients[:3]
        tensors = (hidden, weight, bias)
        return *[None if g is None else g.to(tensor.dtype) for g, tensor in zip(gradients, tensors, strict=True)], None


class _Gating:
    """E^T h of the gated columns (see the top), summed over chunks; and X^T h, of an ungated penalty's gradient X.

    gates: 2 x V. weight_gradient: V x d, for its precision and device.
    """

    def __init__(self, gates, places: Places, weight_gradient):
        self.places, columns = places, places.columns
        self.first = gates[0]
        self.difference = gates[:, columns] - gates[0, columns]
        # Where among the columns a type is, or -1.
        self.place = columns.new_full(gates.shape[1:], -1)
        self.place[columns] = torch.arange(len(columns), device=columns.device)
        self.sum = weight_gradient.new_zeros(len(columns), weight_gradient.shape[1])
        self.ungated = None

    def add(self, d, extra, h, part: slice) -> None:
        """Take a chunk's D and X, n x V (X may be None), and hidden vectors, n x d."""
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

    def close(self, weight_gradient) -> None:
        """Make (D + X)^T h the gated gradient."""
        columns = self.places.columns
        first = self.first[columns, None]
        gated = weight_gradient[columns] * first + self.sum
        if self.ungated is not None:
            gated += (1 - first) * self.ungated
        weight_gradient.index_copy_(0, columns, gated)


def linear(h, weight, bias, out):
    """h W^T + b into `out`: n x d, V x d, V or None -> n x V."""
    return torch.mm(h, weight.T, out=out) if bias is None else torch.addmm(bias, h, weight.T, out=out)


def accumulate(weight_gradient, d, h) -> None:
    """Add D^T h to V x d, which may be of higher precision: then summed in it, where the device can."""
    if weight_gradient.dtype == d.dtype:
        weight_gradient.addmm_(d.T, h)
    elif d.is_cuda and hasattr(torch.ops.aten.addmm, "dtype_out"):
        torch.addmm(weight_gradient, d.T, h, out_dtype=weight_gradient.dtype, out=weight_gradient)
    else:
        weight_gradient += d.T @ h


def chunk_positions(types: int, size: int, device: str) -> int:
    """Positions whose logits are held at once at most, for so many types of `size` bytes each."""
    fitting = CHUNK_BYTES.get(device, CHUNK_BYTES["cuda"]) // (types * size)
    return max(LEAST_POSITIONS, fitting // TILE * TILE)


def chunk_size(positions: int, most: int) -> int:
    """Positions of a chunk, such that chunks are as few as `most` allows, nearly equal and whole tiles."""
    chunks = max(1, -(-positions // most))
    return min(most, max(1, -(-positions // (chunks * TILE))) * TILE)
