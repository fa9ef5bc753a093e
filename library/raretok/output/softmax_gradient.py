"""Cross-entropy of logits and its gradient D with respect to them, in closed form: softmax minus smoothed one-hot.

No entry is skipped, however small, because the tail is the object of study.
"""

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
    with a function from ids (n x T) to their probabilities, and the log normaliser; returns a penalty's values and
    slopes (n each), and ids and entries (n x T each, or None): its gradient is the slope times the softmax, plus the
    entries at those ids. Returns the terms of the loss, each a factor and a value per position (n), the plain NLL (n),
    and D.
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
        values, slopes, ids, entries = penalty(lambda ids: d.gather(1, ids), log_normaliser)
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
    z, rows = outputs.logits, outputs.targets[:, None]
    target_logits = outputs.target_logits()
    compare = torch.gt if loss.is_strict else torch.ge
    compare(z, loss.least_kept(outputs, target_logits), out=kept)
    p, log_normaliser = softmax_of(z, z if out is None else out)
    if see is not None:
        see(z, p, log_normaliser)
    nll = log_normaliser - target_logits.squeeze(1)
    p *= kept
    values, mass, own = loss.of_kept(nll, p.sum(dim=1), lambda: kept.sum(dim=1))
    if mass is not None:
        p /= mass[:, None]
    p.scatter_add_(1, rows, own[:, None])
    return [(1.0, values)], nll, p


def smoothed_terms(nll, uniform, label_smoothing: float):
    """Terms of a cross-entropy. uniform: mean NLL over all types, n; None without smoothing."""
    return [(1 - label_smoothing, nll), (label_smoothing, uniform)] if label_smoothing else [(1.0, nll)]


def capped(z, soft_cap: float):
    """Make z soft_cap tanh(z / soft_cap), in place; returns the derivative, n x V."""
    z.div_(soft_cap).tanh_()
    slope = 1 - z.square()
    z.mul_(soft_cap)
    return slope
