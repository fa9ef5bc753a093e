"""Model outputs as losses, penalties and perturbations see them, and a method's loss per position.

Shapes: n positions, d width, V types; z = h W^T + b are the logits, y the targets.
"""

from dataclasses import dataclass

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from raretok.methods.parts import Penalty
from raretok.output.softmax_gradient import softmax_of


@dataclass
class Outputs:
    """The output of a model for n positions of a micro-batch, or for the whole micro-batch.

    logits: n x V; None for a penalty on parameters. hidden: n x d. weight: V x d. targets: n. batch: the result of the
    loss's `of_batch`, or None. inputs: the token sequences, B x T. positions: the index of each position in the
    flattened sequences, n. padding: the id that is no token, or None. documents: the number of the document that each
    input belongs to, B x T, increasing, or None if each sequence is one.
    """

    logits: torch.Tensor | None
    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor
    batch: object = None
    inputs: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    padding: int | None = None
    documents: torch.Tensor | None = None

    def target_logits(self) -> torch.Tensor:
        """Logits of the targets, n x 1."""
        return self.logits.gather(1, self.targets[:, None])

    def log_normaliser(self) -> torch.Tensor:
        """log sum exp of the logits of each position, n."""
        return self.logits.logsumexp(dim=1)

    def cross_entropy(self, logits: torch.Tensor | None = None, label_smoothing: float = 0.0) -> torch.Tensor:
        """-log softmax(logits)[y] of each position, n. logits: n x V, by default the model's."""
        logits = self.logits if logits is None else logits
        return F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=label_smoothing)


@dataclass
class OutputsWithSoftmax(Outputs):
    """Outputs that compute the softmax of the model's logits once for all callers.

    plain: the model's logits, n x V, an autograd leaf. softmax: their softmax, n x V, and log normaliser, n.
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
    """log sum exp of logits, n, given their softmax, n x V."""

    @staticmethod
    def forward(ctx, logits, p, log_normaliser):
        ctx.p = p
        return log_normaliser.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return ctx.p * gradient[:, None], None, None


class _CrossEntropy(torch.autograd.Function):
    """-log softmax(logits)[y], n, with label smoothing, given the softmax of the logits, n x V."""

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


def is_on_tokens(penalty: Penalty | None) -> bool:
    """Whether a method's penalty has a value per position; False for one on parameters, and for None."""
    return penalty is not None and penalty.on_tokens


def is_ungated(penalty: Penalty | None) -> bool:
    """Whether a method's penalty has a value per position and its gradient bypasses the gate."""
    return is_on_tokens(penalty) and not penalty.gated


def token_losses(method, outputs: Outputs) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A method's loss per position, n, and its ungated penalty per position, n, or None; both with gradients.

    A gated penalty is part of the loss. Penalties use the model's logits; the loss uses those after the method's
    perturbation and training temperature.
    """
    penalty = method.penalty.token_loss(outputs) if is_on_tokens(method.penalty) else None
    if method.perturbation is not None:
        outputs.logits = method.perturbation(outputs)
    temperature = method.training_temperature
    if temperature != 1.0:
        outputs.logits = outputs.logits * temperature
    loss = method.loss(outputs)
    return (loss, penalty) if penalty is None or is_ungated(method.penalty) else (loss + penalty, None)


@dataclass
class Observed:
    """Statistics of the model's own logits at every position; 0 and False at positions without a target.

    log_probability: log softmax(z)[y], in nats. entropy: of softmax(z), in nats. is_best: whether no type has a larger
    logit than the target. All have the shape of the targets and no gradient.
    """

    log_probability: torch.Tensor
    entropy: torch.Tensor
    is_best: torch.Tensor

    @classmethod
    def empty(cls, positions: int, dtype: torch.dtype, device: torch.device) -> "Observed":
        """Statistics of `positions` positions, to be filled by `see`."""
        zeros = torch.zeros(2, positions, dtype=dtype, device=device)
        return cls(*zeros, torch.zeros(positions, dtype=torch.bool, device=device))

    def see(self, where, targets, z, p, log_normaliser) -> None:
        """Fill in the positions `where`, n, from the model's logits z, n x V, and their softmax p."""
        target_logits = z.gather(1, targets[:, None]).squeeze(1)
        mean = torch.linalg.vecdot(p, z)
        # The product of a logit of -inf and its probability of 0 is NaN. Asking a GPU would take longer than the copy.
        if z.device.type != "cpu" or mean.isnan().any():
            mean = torch.linalg.vecdot(p, z.clamp_min(torch.finfo(z.dtype).min))
        self.fill(where, target_logits, log_normaliser, log_normaliser - mean, z.amax(dim=1))

    def fill(self, where, target_logits, log_normaliser, entropy, largest) -> None:
        """The same from statistics of each position, n."""
        self.log_probability[where] = target_logits - log_normaliser
        self.entropy[where] = entropy
        self.is_best[where] = target_logits >= largest
