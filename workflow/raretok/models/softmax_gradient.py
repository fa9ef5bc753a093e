"""Cross-entropy of logits and its gradient D with respect to them, in closed form: softmax minus smoothed one-hot.

No entry is skipped, however small, because the tail is the object of study.
"""

import warnings

import torch


def softmax_of(z, out=None):
    """softmax(z) and log sum exp z: n x V -> n x V, n.

    The largest probability is at least 1 / V, so its logarithm is exact and gives the log normaliser; the target's own
    probability might underflow. out: receives the softmax; may be z.
    """
    largest = z.amax(dim=1)
    p = torch.softmax(z, dim=1, out=out)
    return p, largest - p.amax(dim=1).log()


def cross_entropy_gradient(z, targets, label_smoothing: float = 0.0, *, out=None, see=None, penalty=None):
    """Cross-entropy and D = softmax - smoothed one-hot: n x V, in float32 or higher.

    out: receives D; default: z. see: called with z, its softmax and log normaliser; needs an `out`. penalty: called
    with (softmax, log normaliser), returns a penalty's values and slopes (n each), and ids and entries (n x T each, or
    None): its gradient is the slope times the softmax, plus the entries at those ids. Returns the terms of the loss,
    each a factor and a value per position (n), the plain NLL (n), and D.
    """
    rows = targets[:, None]
    target_logits = z.gather(1, rows).squeeze(1)
    mean = z.mean(dim=1) if label_smoothing else None
    d, log_normaliser = softmax_of(z, z if out is None else out)
    nll = log_normaliser - target_logits
    if see is not None:
        see(z, d, log_normaliser)
    terms = smoothed_terms(nll, log_normaliser - mean if label_smoothing else None, label_smoothing)
    if penalty is not None:
        values, slopes, ids, entries = penalty(d, log_normaliser)
        terms.append((1.0, values))
        d *= 1 + slopes[:, None]
        if ids is not None:
            d.scatter_add_(1, ids, entries)
    if label_smoothing:
        d -= label_smoothing / z.shape[1]
    d.scatter_add_(1, rows, d.new_full(rows.shape, label_smoothing - 1))
    return terms, nll, d


def dropping_gradient(loss, outputs, *, kept, out=None, see=None):
    """As `cross_entropy_gradient`, for a loss that drops logits and has a closed form (`Threshold`, `Softminus`).

    outputs: an `Outputs` with logits z. kept: n x V, receives 1 for kept logits and 0 for dropped ones.
    """
    z, targets = outputs.logits, outputs.targets
    loss.kept(outputs, kept)
    target_logits = outputs.target_logits().squeeze(1)
    p, log_normaliser = softmax_of(z, z if out is None else out)
    if see is not None:
        see(z, p, log_normaliser)
    nll = log_normaliser - target_logits
    return [(1.0, loss.from_softmax(p, kept, nll, targets))], nll, p


def smoothed_terms(nll, uniform, label_smoothing: float):
    """Terms of a cross-entropy. uniform: mean NLL over all types, n; None without smoothing."""
    return [(1 - label_smoothing, nll), (label_smoothing, uniform)] if label_smoothing else [(1.0, nll)]


def softmax_gradient(z, target_logits, targets, label_smoothing: float, weights=None, soft_cap: float | None = None):
    """As `cross_entropy_gradient`, for logits of any precision, written so that a compiler fuses it into one pass.

    target_logits: n x 1; gathered by the caller, because a compiler would make three kernels if z were read here and
    then overwritten. weights: factors of D per position, n, or None. soft_cap: the loss is of soft_cap tanh(z /
    soft_cap), and D with respect to z. Statistics are float32 (float64 for float64 logits). D overwrites z, in the
    precision of z. Returns the NLL, n, and the mean NLL over all types, n, or None without smoothing.
    """
    high = z.to(torch.promote_types(z.dtype, torch.float32))
    target_logits = target_logits.to(high.dtype)
    if soft_cap is not None:
        high, target_logits = soft_cap * (high / soft_cap).tanh(), soft_cap * (target_logits / soft_cap).tanh()
    largest = high.amax(dim=1, keepdim=True)
    log_normaliser = largest + (high - largest).exp().sum(dim=1, keepdim=True).log()
    nll, uniform = log_normaliser - target_logits, None
    if label_smoothing:
        uniform = (log_normaliser - high.mean(dim=1, keepdim=True)).squeeze(1)
    is_target = torch.arange(z.shape[1], device=z.device) == targets[:, None]
    # A second exponential, so that no other matrix as large as z is kept.
    d = (high - log_normaliser).exp() - label_smoothing / z.shape[1]
    d = torch.where(is_target, d - (1 - label_smoothing), d)
    if weights is not None:
        d = d * weights[:, None]
    if soft_cap is not None:
        d = d * (1 - (high / soft_cap).square())
    z.copy_(d)
    return nll.squeeze(1), uniform


class Fusion:
    """`softmax_gradient`, compiled unless this machine's compiler fails."""

    def __init__(self):
        self.compiled = None
        self.works = True

    @property
    def is_at_work(self) -> bool:
        """Whether the compiled form is used."""
        return self.works and self.compiled is not None

    def __call__(self, z, targets, label_smoothing: float, weights=None, soft_cap: float | None = None):
        """Terms of the loss, NLL, and weighted D in the precision of z; D overwrites z if compiled."""
        if self.works:
            self.compiled = self.compiled or torch.compile(softmax_gradient)
            # Chunks and micro-batches differ in length.
            target_logits = z.gather(1, targets[:, None])
            for tensor in (z, target_logits, targets, *(() if weights is None else (weights,))):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
            try:
                nll, uniform = self.compiled(z, target_logits, targets, label_smoothing, weights, soft_cap)
                return smoothed_terms(nll, uniform, label_smoothing), nll, z
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # of any kind, raised by the compiler before z is overwritten
                self.works = False
                reason = str(error).strip().split("\n")[0]
                warnings.warn(f"torch.compile does not work here ({reason}); the loss does without", stacklevel=2)
        high = z.to(torch.promote_types(z.dtype, torch.float32))
        slope = None if soft_cap is None else capped(high, soft_cap)
        terms, nll, d = cross_entropy_gradient(high, targets, label_smoothing)
        if weights is not None:
            d *= weights[:, None]
        if slope is not None:
            d *= slope
        return terms, nll, d.to(z.dtype)


def capped(z, soft_cap: float):
    """Make z soft_cap tanh(z / soft_cap), in place; returns the derivative, n x V."""
    z.div_(soft_cap).tanh_()
    slope = 1 - z.square()
    z.mul_(soft_cap)
    return slope


fused_gradient = Fusion()
