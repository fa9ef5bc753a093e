"""Spectrum control (Wang et al. 2020): the output matrix as U diag(sigma) V^T whose singular values decay slowly."""

from dataclasses import dataclass

from raretok.methods.parts import Penalty

PRIORS = ("exponential", "polynomial")


@dataclass(frozen=True)
class Spectrum(Penalty):
    """orthogonality * (||U^T U - I||^2 + ||V^T V - I||^2) + decay * ||sigma - prior||^2, Frobenius and 2-norms.

    The prior is c1 exp(-c2 k^g) or c1 k^-g for the k-th singular value, k from 1; c1 is fitted so that the prior's
    first value is the largest singular value, and is not differentiated. The source leaves weights, c2 and g to a
    search; ours are choices.

    orthogonality, decay: weights of the two penalties. prior: exponential or polynomial. g: exponent, >= 0.
    c2: rate of the exponential prior, >= 0.
    """

    makes_matrix = True

    orthogonality: float = 1.0
    decay: float = 10.0
    prior: str = "exponential"
    g: float = 1.0
    c2: float = 0.01

    def __post_init__(self):
        if self.prior not in PRIORS:
            raise ValueError(f"prior must be one of {', '.join(PRIORS)}")
        if min(self.orthogonality, self.decay, self.g, self.c2) < 0:
            raise ValueError("orthogonality, decay, g and c2 must be at least 0")

    def parametrise(self, model) -> None:
        """Replace the output matrix (and the input's, if tied) by U diag(sigma) V^T, from the SVD of its values."""
        from torch.nn.utils import parametrize

        weight, factors = model.output_weight, factors_module()
        owners = [(m, name) for m in model.modules() for name, p in m.named_parameters(recurse=False) if p is weight]
        for module, name in owners:
            parametrize.register_parametrization(module, name, factors)

    def __call__(self, outputs):
        """The penalty, a scalar; raises ValueError if the model was not parametrised."""
        import torch

        if not hasattr(outputs.weight, "factors"):
            raise ValueError("spectrum control needs a model that its `parametrise` has changed")
        u, sigma, v = outputs.weight.factors
        identity = torch.eye(len(sigma), dtype=sigma.dtype, device=sigma.device)
        orthogonality = (u.T @ u - identity).square().sum() + (v.T @ v - identity).square().sum()
        k = torch.arange(1, len(sigma) + 1, dtype=sigma.dtype, device=sigma.device)
        shape = torch.exp(-self.c2 * k**self.g) if self.prior == "exponential" else k**-self.g
        prior = sigma.detach().abs().max() / shape[0] * shape
        return self.orthogonality * orthogonality + self.decay * (sigma - prior).square().sum()


def factors_module():
    """A module that multiplies U (V x d), sigma (d) and V (d x d), and that splits a matrix into them.

    The product carries the three as its attribute `factors`, because the penalty sees only the output matrix.
    """
    import torch

    class Factors(torch.nn.Module):
        def forward(self, u, sigma, v):
            with torch.autocast(u.device.type, enabled=False):
                weight = (u * sigma) @ v.T
            weight.factors = (u, sigma, v)
            return weight

        def right_inverse(self, weight):
            u, sigma, v_transposed = torch.linalg.svd(weight, full_matrices=False)
            return u, sigma, v_transposed.T.contiguous()

    return Factors()


def reference(u, sigma, v, orthogonality=1.0, decay=10.0, prior="exponential", g=1.0, c2=0.01):
    """The penalty entry by entry: u V x d, sigma d, v d x d -> scalar."""
    import math

    total = 0
    for matrix in (u, v):
        for i in range(len(sigma)):
            for j in range(len(sigma)):
                total = total + orthogonality * ((matrix[:, i] * matrix[:, j]).sum() - float(i == j)) ** 2
    decays = [math.exp(-c2 * k**g) if prior == "exponential" else k**-g for k in range(1, len(sigma) + 1)]
    c1 = max(abs(float(value)) for value in sigma.detach()) / decays[0]
    for k in range(len(sigma)):
        total = total + decay * (sigma[k] - c1 * decays[k]) ** 2
    return total
