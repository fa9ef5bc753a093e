"""Cross-entropy of logits and its gradient D with respect to them, in closed form: softmax minus smoothed one-hot.

No entry is left out however small: the tail is the object of study.
"""

import warnings

import torch


def cross_entropy_gradient(z, targets, label_smoothing: float = 0.0):
    """Summed cross-entropy, summed plain NLL and D = softmax - smoothed one-hot, in place of z: n x V, float32 up.

    One softmax gives D and the log normaliser both: at the largest logit the probability is at least 1 / V, so its
    logarithm loses nothing, where the target's own might underflow.
    """
    rows = targets[:, None]
    target_logits, largest = z.gather(1, rows).squeeze(1), z.amax(dim=1)
    mean = z.mean(dim=1) if label_smoothing else None
    d = torch.softmax(z, dim=1, out=z)
    log_normaliser = largest - d.amax(dim=1).log()
    loss = nll = (log_normaliser - target_logits).sum()
    if label_smoothing:
        loss = (1 - label_smoothing) * nll + label_smoothing * (log_normaliser - mean).sum()
        d -= label_smoothing / z.shape[1]
    d.scatter_add_(1, rows, d.new_full(rows.shape, label_smoothing - 1))
    return loss, nll, d


def softmax_gradient(z, target_logits, targets, label_smoothing: float):
    """As `cross_entropy_gradient`, from logits of any precision, in steps that a compiler makes one pass of.

    target_logits: n x 1, gathered before: a compiler would make three kernels where z is read and then overwritten.
    Statistics are float32 (float64 for such logits); D takes the place and the precision of z.
    """
    high = z.to(torch.promote_types(z.dtype, torch.float32))
    largest = high.amax(dim=1, keepdim=True)
    log_normaliser = largest + (high - largest).exp().sum(dim=1, keepdim=True).log()
    loss = nll = (log_normaliser - target_logits).sum()
    if label_smoothing:
        mean = high.mean(dim=1, keepdim=True)
        loss = (1 - label_smoothing) * nll + label_smoothing * (log_normaliser - mean).sum()
    is_target = torch.arange(z.shape[1], device=z.device) == targets[:, None]
    # Another exponential rather than the same one again: nothing as large as z is kept for it.
    d = (high - log_normaliser).exp() - label_smoothing / z.shape[1]
    z.copy_(torch.where(is_target, d - (1 - label_smoothing), d))
    return loss, nll


class Fusion:
    """`softmax_gradient` compiled, for as long as this machine's compiler works."""

    def __init__(self):
        self.compiled = None
        self.works = True

    @property
    def is_at_work(self) -> bool:
        """Whether the compiled form has computed something and has not failed."""
        return self.works and self.compiled is not None

    def __call__(self, z, targets, label_smoothing: float):
        """Summed loss, summed NLL and D in the precision of z, in its place if that can be."""
        if self.works:
            self.compiled = self.compiled or torch.compile(softmax_gradient)
            # The last chunk is shorter, and micro-batches differ in length.
            target_logits = z.gather(1, targets[:, None])
            for tensor in (z, target_logits, targets):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
            try:
                return *self.compiled(z, target_logits, targets, label_smoothing), z
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # whatever a compiler's chain of tools raises, before z is touched
                self.works = False
                reason = str(error).strip().split("\n")[0]
                warnings.warn(f"torch.compile does not work here ({reason}); the loss goes on without", stacklevel=2)
        high = z.to(torch.promote_types(z.dtype, torch.float32))
        loss, nll, d = cross_entropy_gradient(high, targets, label_smoothing)
        return loss, nll, d.to(z.dtype)


fused_gradient = Fusion()
