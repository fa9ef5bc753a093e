"""The temperature that fits a model to the validation text, and perplexities at it (stop_jostling, 4.3).

Some methods train logits that are too flat or too steep by design. One number, fitted on the validation text, puts that
right, so that methods can be held against each other on the test text.
"""

import math
from collections.abc import Callable

import torch
from scipy.optimize import minimize_scalar

from raretok.evaluation.rows import row
from raretok.evaluation.signature import signature

# Where a temperature is looked for, and how exactly its logarithm is found: that leaves a millionth of the loss.
LOWEST, HIGHEST, EXACT = 0.02, 20.0, 1e-3
FITTED = "fitted_perplexity"


class Tempered:
    """A model whose logits are divided by a temperature; in everything else it is the model."""

    def __init__(self, model: torch.nn.Module, temperature: float):
        self.model, self.temperature = model, temperature

    def __call__(self, *inputs):
        """Hidden vectors, as the model's."""
        return self.model(*inputs)

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (... x V) of hidden vectors (... x d), divided by the temperature."""
        return self.model.logits(hidden) / self.temperature


def fit(mean_nll: Callable[[float], float]) -> float:
    """The temperature at which `mean_nll`, of the validation text in nats, is least; never worse than 1.

    mean_nll is convex in 1 / T: a log-sum-exp of z / T less a term that is linear in it. So it has one minimum.
    """
    found = minimize_scalar(
        lambda logarithm: mean_nll(math.exp(logarithm)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": EXACT},
    )
    temperature = math.exp(found.x)
    return temperature if found.fun <= mean_nll(1.0) else 1.0


def temperature_row(temperature: float, n: int) -> dict:
    """The row that says what was fitted; n: validation tokens."""
    sign = signature("fitted_temperature", text="valid", checkpoint="best")
    return row("fitted_temperature", "", "valid@best", temperature, n, sign)
