"""Unlikelihood (Welleck et al. 2020; agg, table 4): a penalty on the probability of earlier tokens."""

from dataclasses import dataclass

from raretok.methods.counting import check_not_negative
from raretok.methods.parts import Penalty

# Least value of 1 - p, from Welleck et al.'s code: below it the logarithm is cut and has no gradient.
FLOOR = 1e-5


@dataclass(frozen=True)
class Unlikelihood(Penalty):
    """Penalty: -alpha * sum over c in C_t of log(1 - p(c | t)) at every position t, from the plain logits.

    C_t are the distinct inputs of the same document up to t, without the target y_t. The loss needs `inputs` at every
    call, and `documents` if sequences are packed.

    Args:
        alpha: weight of the penalty, at least 0.
        gated: whether a gate also acts on the penalty's gradient. If not, the penalty moves probability from earlier
            tokens to all others, and the gate keeps the loss from taking it back from the rare ones.
    """

    on_tokens = True
    needs_inputs = True
    has_closed_form = True

    alpha: float = 1.0
    gated: bool = False

    def __post_init__(self):
        check_not_negative(self, "alpha")

    def token_loss(self, outputs):
        """The penalty of each position, N."""
        candidates, counts = self.candidates(outputs)
        log_p = outputs.logits.gather(1, candidates) - outputs.log_normaliser()[:, None]
        terms = (-log_p.expm1()).clamp_min(FLOOR).log()
        return -self.alpha * terms.masked_fill(~counts, 0.0).sum(dim=1)

    def closed_form(self, outputs, probability, log_normaliser):
        """The penalty and its gradient for `softmax_gradient.cross_entropy_gradient`.

        With r_c = alpha p_c / (1 - p_c) the gradient is r_k at the candidates k, minus p_k times the sum of all r_c.
        """
        candidates, counts = self.candidates(outputs)
        p = probability(candidates)
        rest = 1 - p
        terms = rest.clamp_min(FLOOR).log().masked_fill_(~counts, 0.0)
        ratios = (self.alpha * p / rest).masked_fill_(~counts | (rest < FLOOR), 0.0)
        return -self.alpha * terms.sum(dim=1), -ratios.sum(dim=1), candidates, ratios

    def candidates(self, outputs):
        """Ids of the sequence of each position, N x T, and which of them are in C_t."""
        import torch

        inputs = outputs.inputs
        context = inputs.shape[1]
        sequence, time = outputs.positions // context, outputs.positions % context
        # A token counts once, at its first occurrence; n x T instead of n x V.
        can_count, documents = first_occurrences(inputs, outputs.documents), outputs.documents
        if outputs.padding is not None:
            is_padding = inputs == outputs.padding
            can_count &= ~is_padding
            # A padding id may lie outside the vocabulary.
            inputs = inputs.masked_fill(is_padding, 0)
        candidates, counts = inputs[sequence], can_count[sequence]
        counts &= torch.arange(context, device=inputs.device) <= time[:, None]
        if documents is not None:
            counts &= documents[sequence] == documents[sequence, time][:, None]
        counts &= candidates != outputs.targets[:, None]
        return candidates, counts


def first_occurrences(inputs, documents=None):
    """Whether a token occurs for the first time in its sequence, or document: B x T -> B x T (bool)."""
    import torch

    if documents is not None:
        inputs = documents * (inputs.max() - inputs.min() + 1) + inputs
    order = inputs.argsort(dim=1, stable=True)
    ordered = inputs.gather(1, order)
    first = torch.ones_like(inputs, dtype=torch.bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.zeros_like(first).scatter(1, order, first)


def reference(z, y, x, alpha=1.0, padding=None):
    """The formula, position by position: z B x T x V, targets y and inputs x B x T -> B x T."""
    import torch

    losses = []
    for b in range(len(z)):
        for t in range(z.shape[1]):
            p = torch.softmax(z[b, t], dim=0)
            total = 0 * z[b, t].sum()
            for c in set(x[b, : t + 1].tolist()) - {int(y[b, t]), padding}:
                total = total - torch.log(torch.clamp(1 - p[c], min=FLOOR))
            losses.append(alpha * total)
    return torch.stack(losses).view(y.shape)
