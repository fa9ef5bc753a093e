"""Observations: what is written down during training without changing a bit of it."""

import torch

from raretok.errors import UserError


class GradientNorms:
    """Norms of the three parts of each token's embedding gradient (stop_jostling, section 4.2).

    Per step and token i: g1 is the gradient through the input embedding (context alignment), g2 the output
    gradient from positions whose target is i, g3 the output gradient from all other positions. Running sums
    over steps, one value a token (V):
    sum_aligned |g1| + |g2|; sum_marginal |g3|; sum_ratio (|g1| + |g2|) / |g3| over steps with |g3| > 0;
    sum_aligned_zero |g1| + |g2| over steps with |g3| = 0; zero_steps the number of those; steps (a scalar).
    """

    SUMS = ("sum_aligned", "sum_marginal", "sum_ratio", "sum_aligned_zero", "zero_steps")

    def __init__(self, model: torch.nn.Module):
        if not model.config.tied:
            raise UserError("observe: gradient_norms needs tied embeddings (model.tied: true)")
        shape, device = len(model.output_weight), model.output_weight.device
        self.tensors = {name: torch.zeros(shape, dtype=torch.float64, device=device) for name in self.SUMS}
        self.tensors["steps"] = torch.zeros((), dtype=torch.float64, device=device)

    def record(self, logits_gradient, hidden, targets, inputs, input_gradient) -> None:
        """Add one step: gradients before clipping, and before a gate, which the paper never observes.

        logits_gradient: dL/dz, N x V. hidden: N x d. targets, inputs: N. input_gradient: dL/d(embedding), N x d.
        """
        with torch.no_grad():
            marginal = logits_gradient.clone()
            own = marginal.gather(1, targets[:, None])
            marginal.scatter_(1, targets[:, None], 0.0)
            zeros = hidden.new_zeros(marginal.shape[1], hidden.shape[1])
            g1 = zeros.index_add(0, inputs, input_gradient).norm(dim=1).double()
            g2 = zeros.index_add(0, targets, own * hidden).norm(dim=1).double()
            g3 = (marginal.T @ hidden).norm(dim=1).double()
            aligned, zero = g1 + g2, g3 == 0
            self.tensors["sum_aligned"] += aligned
            self.tensors["sum_marginal"] += g3
            self.tensors["sum_ratio"] += (aligned / g3).masked_fill(zero, 0.0)
            self.tensors["sum_aligned_zero"] += aligned * zero
            self.tensors["zero_steps"] += zero
            self.tensors["steps"] += 1


OBSERVATIONS = {"gradient_norms": GradientNorms}


def build_observations(names: list[str], model: torch.nn.Module) -> dict[str, GradientNorms]:
    """The observers that a run's `observe` names; UserError for one that does not exist."""
    for name in names:
        if name not in OBSERVATIONS:
            raise UserError(f"observe names {name!r}; it can be {', '.join(OBSERVATIONS)}")
    return {name: OBSERVATIONS[name](model) for name in names}
