"""Losses and gradients of a chunk's logits on a GPU, in one or two compiled passes without further n x V matrices.

Plain cross-entropy takes one pass. What the other closed forms need between the statistics of the rows and D (a margin,
a penalty, statistics for `observe`) has one number per row, or few, so they take two: `row_statistics`, then
`write_gradient`. Logits may have any precision; statistics are float32 (float64 for float64 logits).

Shapes: n positions of a chunk, V types; z are the logits, D = dL/dz.
"""

import warnings

import torch

from raretok.output.outputs import Outputs
from raretok.output.softmax_gradient import smoothed_terms


def softmax_gradient(z, target_logits, targets, label_smoothing: float, weights=None, soft_cap: float | None = None):
    """As `softmax_gradient.cross_entropy_gradient`, in one pass; D overwrites z.

    target_logits: n x 1; gathered by the caller, because a compiler would make three kernels if z were read here and
    then overwritten. weights: factors of D per position, n, or None. soft_cap: the loss is of soft_cap tanh(z /
    soft_cap), and D with respect to z. Returns the NLL, n, and the mean NLL over all types, n, or None without
    smoothing.
    """
    high, slope = high_precision(z, soft_cap)
    target_logits, _ = high_precision(target_logits, soft_cap)
    largest = high.amax(dim=1, keepdim=True)
    log_normaliser = largest + (high - largest).exp().sum(dim=1, keepdim=True).log()
    nll, uniform = log_normaliser - target_logits, None
    if label_smoothing:
        uniform = (log_normaliser - high.mean(dim=1, keepdim=True)).squeeze(1)
    # A second exponential, so that no other matrix as large as z is kept.
    d = (high - log_normaliser).exp() - label_smoothing / z.shape[1]
    d = torch.where(is_target(z, targets), d - (1 - label_smoothing), d)
    if weights is not None:
        d = d * weights[:, None]
    z.copy_(d if slope is None else d * slope)
    return nll.squeeze(1), uniform


def row_statistics(z, least_kept, is_strict: bool, smooths: bool, observes: bool, soft_cap: float | None):
    """Statistics of each row, n: log normaliser, largest logit, mean, entropy, mass and number of kept logits.

    least_kept: n x 1, the threshold above which logits are kept (and at which, unless `is_strict`), or None. The mean
    is None unless it `smooths`, the entropy unless it `observes`, mass and number without a threshold.
    """
    high, _ = high_precision(z, soft_cap)
    largest = high.amax(dim=1, keepdim=True)
    share = (high - largest).exp()
    total = share.sum(dim=1)
    log_normaliser = largest.squeeze(1) + total.log()
    mean = entropy = mass = number = None
    if smooths:
        mean = high.mean(dim=1)
    if observes:
        # The product of a logit of -inf and its probability of 0 is NaN.
        entropy = log_normaliser - (share * high.clamp_min(torch.finfo(high.dtype).min)).sum(dim=1) / total
    if least_kept is not None:
        kept = high > least_kept if is_strict else high >= least_kept
        mass, number = torch.where(kept, share, 0).sum(dim=1) / total, kept.sum(dim=1)
    return log_normaliser, largest.squeeze(1), mean, entropy, mass, number


def write_gradient(
    z, targets, log_normaliser, factors, constants, own, least_kept, is_strict: bool, soft_cap: float | None
):
    """Overwrite z with D: factor softmax(z) of the kept logits, plus a constant, plus `own` at the target.

    log_normaliser, factors, own: n. constants: n, or None. least_kept, is_strict: as in `row_statistics`. Returns z.
    """
    high, slope = high_precision(z, soft_cap)
    d = (high - log_normaliser[:, None]).exp() * factors[:, None]
    if least_kept is not None:
        d = torch.where(high > least_kept if is_strict else high >= least_kept, d, 0)
    if constants is not None:
        d = d + constants[:, None]
    d = torch.where(is_target(z, targets), d + own[:, None], d)
    return z.copy_(d if slope is None else d * slope)


def high_precision(z, soft_cap: float | None):
    """The logits in high precision, under the soft cap if there is one, and the derivative of that, or None."""
    high = z.to(torch.promote_types(z.dtype, torch.float32))
    if soft_cap is None:
        return high, None
    high = soft_cap * (high / soft_cap).tanh()
    return high, 1 - (high / soft_cap).square()


def is_target(z, targets):
    """n x V."""
    return torch.arange(z.shape[1], device=z.device) == targets[:, None]


class Fusion:
    """Runs functions compiled, unless this machine's compiler fails."""

    def __init__(self):
        self.compiled = {}
        self.works = True

    @property
    def is_at_work(self) -> bool:
        """Whether compiled functions are used."""
        return self.works and bool(self.compiled)

    def __call__(self, function, *arguments):
        """The compiled function's result; None if compiling fails, or has failed before."""
        if not self.works:
            return None
        if function not in self.compiled:
            self.compiled[function] = torch.compile(function)
        # Chunks and micro-batches differ in length.
        for tensor in arguments:
            if isinstance(tensor, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
        try:
            return self.compiled[function](*arguments)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # of any kind, raised by the compiler before z is overwritten
            self.works = False
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"torch.compile does not work here ({reason}); the loss does without", stacklevel=2)
            return None


fusion = Fusion()


def fused_gradient(chunks, z, part: slice, hidden, weight):
    """The fields terms, nll, d and extra of a `chunk_loss.Chunk`; None if compiling fails.

    chunks: a `ChunkLoss` with a closed form. z: n x V; D overwrites it. part: its kept positions. hidden: n x d.
    """
    targets = chunks.places.targets[part]
    weights = None if chunks.weights is None else chunks.weights[part].to(chunks.high)
    target_logits = z.gather(1, targets[:, None])
    if chunks.drops or chunks.on_tokens or chunks.observed is not None:
        return _in_two_passes(chunks, z, part, targets, target_logits, weights, hidden, weight)
    label_smoothing = chunks.method.loss.label_smoothing
    found = fusion(softmax_gradient, z, target_logits, targets, label_smoothing, weights, chunks.soft_cap)
    if found is None:
        return None
    nll, uniform = found
    return smoothed_terms(nll, uniform, label_smoothing), nll, z, None


def _in_two_passes(chunks, z, part: slice, targets, target_logits, weights, hidden, weight):
    """`fused_gradient` where D needs statistics of the rows first. weights: of the positions, n, or None."""
    loss, soft_cap, types = chunks.method.loss, chunks.soft_cap, z.shape[1]
    positions, observed = chunks.places.positions(part), chunks.observed
    target_logits, _ = high_precision(target_logits, soft_cap)
    hidden, weight = hidden.to(chunks.high), weight.detach()
    outputs = Outputs(z, hidden, weight, targets, None, chunks.inputs, positions, chunks.padding, chunks.documents)
    threshold = (loss.least_kept(outputs, target_logits), loss.is_strict) if chunks.drops else (None, False)
    label_smoothing = loss.label_smoothing
    found = fusion(row_statistics, z, *threshold, bool(label_smoothing), observed is not None, soft_cap)
    if found is None:
        return None
    log_normaliser, largest, mean, entropy, mass, number = found
    target_logits = target_logits.squeeze(1)
    nll = log_normaliser - target_logits
    if observed is not None:
        observed.fill(positions, target_logits, log_normaliser, entropy, largest)

    scale = torch.ones_like(nll) if weights is None else weights
    factors, constants = scale, None
    if chunks.drops:
        values, divisor, own = loss.of_kept(nll, mass, lambda: number)
        terms = [(1.0, values)]
        factors = scale if divisor is None else scale / divisor
    else:
        terms = smoothed_terms(nll, None if mean is None else log_normaliser - mean, label_smoothing)
        own = torch.full_like(nll, label_smoothing - 1)
        constants = -label_smoothing / types * scale if label_smoothing else None
    ids = extra = None
    if chunks.on_tokens:

        def probability(ids):
            return (high_precision(z.gather(1, ids), soft_cap)[0] - log_normaliser[:, None]).exp()

        values, slopes, ids, entries = chunks.method.penalty.closed_form(outputs, probability, log_normaliser)
        terms.append((1.0, values))
    if not chunks.with_gradient:
        return terms, nll, None, None
    if ids is not None:
        entries = entries * scale[:, None]
        if soft_cap is not None:
            entries *= high_precision(z.gather(1, ids), soft_cap)[1]
    if chunks.on_tokens and chunks.is_cross_entropy:
        factors = factors * (1 + slopes)
    elif chunks.on_tokens:
        # The penalty bypasses the gate.
        of_softmax, of_target = slopes * scale, torch.zeros_like(nll)
        arguments = targets, log_normaliser, of_softmax, None, of_target, None, False, soft_cap
        extra = fusion(write_gradient, z.clone(), *arguments)
    d = fusion(write_gradient, z, targets, log_normaliser, factors, constants, own * scale, *threshold, soft_cap)
    if d is None:
        return None
    if ids is not None:
        (d if extra is None else extra).scatter_add_(1, ids, entries.to(z.dtype))
    return terms, nll, d, extra
