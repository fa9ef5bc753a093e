"""Maximum likelihood: the baseline of all four papers."""

from dataclasses import dataclass

from raretok.methods.parts import Loss


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Loss: maximum likelihood, -log softmax(z)[y], optionally smoothed towards the uniform distribution.

    Args:
        label_smoothing: mass given to all V types in equal parts, from 0 to 1.
    """

    label_smoothing: float = 0.0

    # The output layer knows its gradient in closed form.
    is_cross_entropy = True

    def __post_init__(self):
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError("label_smoothing must be from 0 to 1")

    def __call__(self, outputs):
        """Loss of each position, N."""
        return outputs.cross_entropy(label_smoothing=self.label_smoothing)


def weighted_by_type(weights, outputs):
    """Cross-entropy of each position times the weight of its target, N; weights: V."""
    return weights.to(outputs.logits.dtype)[outputs.targets] * outputs.cross_entropy()


def reference(z, y, label_smoothing=0.0):
    """The formula, position by position: z N x V, y N -> N."""
    import torch

    losses = []
    for logits, target in zip(z, y, strict=True):
        log_p = logits - torch.log(torch.exp(logits).sum())
        losses.append(-(1 - label_smoothing) * log_p[target] - label_smoothing * log_p.mean())
    return torch.stack(losses)
