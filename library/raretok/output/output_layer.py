"""The output layer: one training loss from hidden vectors and the output embedding, with all gradients in one pass.

Every method of the four papers changes either the loss for given logits, or the gradient of the output embedding W.
The logits have the same values for all methods, so one pass is enough, and it is exact.

Shapes: N positions, d width, V types. z = h W^T + b are the logits, y the targets, D = dL/dz. With a class c(t), 0 or
1, for every position and one gate vector g_c (V) per class:

    dL/dh = D W
    dL/dW = diag(g_0) D^T h + E^T h
    E[t, k] = (g_{c(t)}[k] - g_0[k]) D[t, k], but (1 - g_0[y_t]) D[t, y_t] at the position's own target

This equals the form with three logits (agg, Eqs. 9 and 10). E is 0 except in the gated columns of positions with a rare
target, which are few, so the gate costs one small product. A bias is not gated.

The N x V matrix is never allocated. As in Liger Kernel's fused linear cross-entropy, the logits of a chunk of positions
are computed, overwritten by D, and used for all three gradients before the next chunk.
"""

import functools
from dataclasses import dataclass, replace

import torch
from torch.autograd.function import once_differentiable

from raretok.output.chunk_loss import ChunkLoss
from raretok.output.gated_gradient import GatedGradient, accumulate, multiply
from raretok.output.outputs import Observed, Outputs, is_on_tokens
from raretok.output.target_places import Places

# Bytes of a chunk's logits: what fits into a CPU's cache, and what keeps a GPU busy.
CHUNK_BYTES = {"cpu": 8 * 2**20, "cuda": 420 * 2**20}
# Smallest chunk, in positions: every chunk reads and writes all of dL/dW.
LEAST_POSITIONS = 256
# Matrix products on a GPU work in tiles of this many rows.
TILE = 128
# Devices on which compiled kernels compute D where it has a closed form.
FUSED_DEVICES = ("cuda",)


@dataclass
class Result:
    """The training loss of a micro-batch.

    loss: with gradient; a scalar, or with `per_position` N values (0 for padding). nll: summed plain NLL, detached,
    float64. logits: with `need_logits` the model's logits, N x V, 0 for padding; the backward pass sets their `grad`.
    observed: with `observe`, statistics of the logits.
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
    documents: torch.Tensor | None = None,
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
    """The training loss of a method for a micro-batch, with its gradients.

    method: a `raretok.methods.Method`. gate_state: the result of its gate's `start`, which has counted the targets of
    the whole step, or None. hidden: B x T x d, or N x d. weight: V x d. bias: V. targets: B x T, or N. inputs: the
    token sequences, B x T; only penalties on tokens need them. documents: of the inputs, as in `Outputs`. padding:
    positions with this target do not count. token_weights: factors of the loss per position, shaped like targets,
    without gradient. soft_cap: the logits are soft_cap tanh(z / soft_cap). normaliser: divisor of the summed loss, the
    number of targets of the whole step (default: of this micro-batch). share: the micro-batch's share of the step, a
    factor of penalties on parameters. per_position: return the loss of every position, undivided and without penalties
    on parameters. need_logits: return the logits, N x V. observe: return `Observed`. places: of these targets; made
    before the model's forward pass, they spare waiting for a GPU.

    Gradients are computed here, so the backward pass can run only once; with `per_position` they are computed in the
    backward pass, from recomputed logits. Raises ValueError if a penalty needs sequences and `inputs` is missing.
    """
    hidden = hidden.flatten(0, -2)
    penalty = method.penalty
    has_sequences = inputs is not None and inputs.dim() == 2 and inputs.numel() == targets.numel()
    if penalty is not None and penalty.needs_inputs and not has_sequences:
        raise ValueError("the penalty needs `inputs`, B x T, one for each target")
    places = Places(gate_state, targets, padding) if places is None else places
    batch = method.loss.of_batch(places.targets, len(weight))
    low = weight.dtype
    if torch.is_autocast_enabled(hidden.device.type) and low == torch.float32:
        low = torch.get_autocast_dtype(hidden.device.type)
    if low == torch.float16:
        # Float16 has no number below 3e-8, and the factor of a GradScaler reaches D only in the backward pass.
        low = torch.float32
    chunks = ChunkLoss(method, places, batch, inputs, padding, soft_cap, low, torch.is_grad_enabled(), documents)
    if token_weights is not None:
        chunks.weights = places.of_kept(token_weights.detach().flatten())
    if observe:
        chunks.observed = Observed.empty(len(hidden), chunks.high, hidden.device)
    if per_position:
        loss, nll = _PositionLosses.apply(hidden, weight, bias, chunks)
        return Result(loss, nll, None, chunks.observed)
    logits = None
    if need_logits:
        logits = hidden.new_zeros(len(hidden), len(weight)).requires_grad_(chunks.with_gradient)
    scale = 1 / (max(1, places.number) if normaliser is None else normaliser)
    loss, nll = _ChunkedLoss.apply(hidden, weight, bias, logits, scale, chunks)
    if penalty is not None and not is_on_tokens(penalty):
        with torch.autocast(hidden.device.type, enabled=False):
            # In float16 a sum over all rows can be infinite.
            outputs = Outputs(None, hidden, weight.to(chunks.high), places.all_targets, None, inputs, None, padding)
            loss = loss + share * penalty(outputs)
    return Result(loss, nll, logits, chunks.observed)


@dataclass
class _Pass:
    """Result of one pass over a micro-batch: weighted losses of the kept positions (n), summed NLL, gradients."""

    losses: torch.Tensor
    nll: torch.Tensor
    gradients: list


def _run(chunks: ChunkLoss, hidden, weight, bias, logits, needed: list[bool]) -> _Pass:
    """Compute all chunks. needed: whether hidden, weight and bias need a gradient."""
    places, low, high, device = chunks.places, chunks.low, chunks.high, hidden.device.type
    needed = [need and chunks.with_gradient for need in needed]
    with torch.autocast(device, enabled=False):
        low_weight, low_bias = weight.to(low), None if bias is None else bias.to(low)
        kept = hidden if places.kept is None else hidden[places.kept]
        losses, nlls = [hidden.new_empty(0, dtype=high)], [hidden.new_empty(0, dtype=high)]
        # A matrix that is not trained needs no gate.
        hidden_gradient = None
        if needed[0]:
            # In float16 small gradients would be 0 before the factor of a GradScaler reaches them.
            hidden_gradient = torch.empty_like(kept, dtype=high if kept.dtype == torch.float16 else kept.dtype)
        # The first chunk writes to it, if there is one.
        like = torch.empty_like if places.number else torch.zeros_like
        weight_gradient = like(weight, dtype=high) if needed[1] else None
        bias_gradient = torch.zeros_like(bias, dtype=high) if needed[2] else None
        logits_gradient = None if logits is None else torch.zeros_like(logits)
        gates = places.gates.to(high) if places.has_gates and weight_gradient is not None else None
        gating = past = None
        size = chunk_size(places.number, chunk_positions(len(weight), low.itemsize, device))
        buffer = low_weight.new_empty(size, len(weight))
        for start in range(0, places.number, size):
            part = slice(start, min(start + size, places.number))
            h, y = kept[part], places.targets[part]
            low_h = h.to(low)
            z = linear(low_h, low_weight, low_bias, buffer[: len(y)])
            if logits is not None:
                plain = z if chunks.soft_cap is None else chunks.soft_cap * (z.to(high) / chunks.soft_cap).tanh()
                logits.data[places.positions(part)] = plain.to(logits.dtype)
            chunk = chunks.fused(z, part, h, weight) if device in FUSED_DEVICES else None
            if chunk is None:
                chunk = chunks.chunk(z.to(high), part, h.to(high), weight)
            # Added up after the last chunk, since small kernels cost a GPU time.
            losses.append(chunk.losses())
            nlls.append(chunk.nll)
            if not chunks.with_gradient:
                continue
            d, extra = chunk.d, chunk.extra
            if gates is not None:
                # Not before the first chunk: on a GPU its products run while the host waits for the sizes.
                gating = GatedGradient(gates, places, kept, low, weight_gradient) if gating is None else gating
                gating.add(d, extra, part)
            if extra is not None:
                d += extra
            low_d = d.to(low)
            if hidden_gradient is not None:
                own = hidden_gradient[part]
                multiply(low_d, low_weight, own)
                if chunk.past_hidden is not None:
                    own += chunk.past_hidden
            if logits is not None:
                logits_gradient[places.positions(part)] = d.to(logits.dtype)
            if bias_gradient is not None:
                bias_gradient += d.sum(dim=0, dtype=high)
            if weight_gradient is None:
                continue
            accumulate(weight_gradient, low_d, low_h, is_first=start == 0)
            if chunk.past_weight is not None:
                past = chunk.past_weight if past is None else past + chunk.past_weight
        if gating is not None:
            gating.apply_to(weight_gradient)
        chunks.buffers.clear()
        if past is not None and weight_gradient is not None:
            weight_gradient += past
        if places.kept is not None and hidden_gradient is not None:
            every = torch.zeros_like(hidden, dtype=hidden_gradient.dtype)
            hidden_gradient = every.index_copy_(0, places.kept, hidden_gradient)
        losses, nll = torch.cat(losses), torch.cat(nlls).sum(dtype=torch.float64)
        losses = losses if chunks.weights is None else losses * chunks.weights.to(high)
    return _Pass(losses, nll, [hidden_gradient, weight_gradient, bias_gradient, logits_gradient])


def _without_second_derivatives(backward):
    """As `once_differentiable`, which raises only if the incoming gradient requires grad, but for all of them."""
    checked = once_differentiable(backward)

    @functools.wraps(backward)
    def of(ctx, gradient, nll):
        # With create_graph, a result without a graph would count as a constant.
        return checked(ctx, gradient.detach().requires_grad_() if torch.is_grad_enabled() else gradient, nll)

    return of


class _ChunkedLoss(torch.autograd.Function):
    """The summed loss times `scale`, and the summed plain NLL, with gradients of hidden, weight, bias and logits."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, logits, scale, chunks):
        found = _run(chunks, hidden, weight, bias, logits, ctx.needs_input_grad[:3])
        ctx.scale = scale
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in (hidden, weight, bias, logits)]
        ctx.gradients = found.gradients
        loss = (found.losses.sum(dtype=torch.float64) * scale).to(chunks.high)
        ctx.mark_non_differentiable(found.nll)
        return loss, found.nll

    @staticmethod
    @_without_second_derivatives
    def backward(ctx, loss_gradient, _):
        if ctx.gradients is None:
            raise RuntimeError("the backward pass of the output layer can run only once")
        gradients, ctx.gradients = ctx.gradients, None
        scale = loss_gradient * ctx.scale
        # In place, each in its input's precision.
        scaled = [None if g is None else g.mul_(scale).to(low) for g, low in zip(gradients, ctx.dtypes, strict=True)]
        return *scaled, None, None


class _PositionLosses(torch.autograd.Function):
    """The loss of every position, N, and the summed plain NLL.

    The incoming gradient of a position scales its row of D but is known only in the backward pass, which therefore
    computes all chunks again with these gradients as weights of the positions.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, chunks):
        ctx.save_for_backward(hidden, weight, bias)
        ctx.chunks = chunks
        found = _run(replace(chunks, with_gradient=False, buffers={}), hidden, weight, bias, None, [False] * 3)
        ctx.mark_non_differentiable(found.nll)
        return chunks.places.to_all(found.losses), found.nll

    @staticmethod
    @_without_second_derivatives
    def backward(ctx, losses_gradient, _):
        hidden, weight, bias = ctx.saved_tensors
        chunks = ctx.chunks
        weights = chunks.places.of_kept(losses_gradient)
        weights = weights if chunks.weights is None else weights * chunks.weights
        chunks = replace(chunks, weights=weights, observed=None, buffers={})
        gradients = _run(chunks, hidden, weight, bias, None, ctx.needs_input_grad[:3]).gradients[:3]
        tensors = (hidden, weight, bias)
        return *[None if g is None else g.to(tensor.dtype) for g, tensor in zip(gradients, tensors, strict=True)], None


def linear(h, weight, bias, out):
    """h W^T + b into `out`: n x d, V x d, V or None -> n x V."""
    return torch.mm(h, weight.T, out=out) if bias is None else torch.addmm(bias, h, weight.T, out=out)


def chunk_positions(types: int, size: int, device: str) -> int:
    """Largest number of positions of a chunk. size: bytes of a logit."""
    fitting = CHUNK_BYTES.get(device, CHUNK_BYTES["cuda"]) // (types * size)
    return max(LEAST_POSITIONS, fitting // TILE * TILE)


def chunk_size(positions: int, most: int) -> int:
    """Positions of a chunk: as few chunks as `most` allows, of nearly equal size, in whole tiles."""
    chunks = max(1, -(-positions // most))
    return min(most, max(1, -(-positions // (chunks * TILE))) * TILE)
