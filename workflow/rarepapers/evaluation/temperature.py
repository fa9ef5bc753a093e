"""Temperature fitted to the validation text, and perplexities at it (stop_jostling, 4.3).

Some methods train logits that are too flat or too steep by design. A temperature fitted on the validation text corrects
this, so that methods can be compared on the test text.
"""

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar

from rarepapers.evaluation.metric_rows import row
from rarepapers.machine.clock import log

# Search interval, and precision of the log temperature: such an error changes the loss by a millionth.
LOWEST, HIGHEST, EXACT = 0.02, 20.0, 1e-3
FITTED = "fitted_perplexity"


def fit(mean_nll: Callable[[float], float]) -> float:
    """The temperature that minimises `mean_nll`, the validation loss in nats; never worse than 1.

    mean_nll is convex in 1 / T, as a log-sum-exp of z / T minus a linear term, so it has one minimum.
    """
    found = minimize_scalar(
        lambda logarithm: mean_nll(math.exp(logarithm)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": EXACT},
    )
    temperature = math.exp(found.x)
    return temperature if found.fun <= mean_nll(1.0) else 1.0


def temperature_rows(temperature: float, n: int, lowest: float = LOWEST, highest: float = HIGHEST) -> list[dict]:
    """Rows with the fitted temperature, and whether it is at an end of the searched interval (1) or not (0).

    At an end, a better temperature may lie outside, so the log has a warning. n: number of validation tokens.
    """
    ends = [end for end in (lowest, highest) if math.isclose(temperature, end, rel_tol=3 * EXACT)]
    if ends:
        log(
            f"warning: the temperature that fits the validation text is {temperature:.4g}, at an end of the searched "
            f"interval ({lowest:g} to {highest:g}); the perplexities at it may not be the model's best"
        )
    return [
        row(name, "", "valid@best", value, n, text="valid", checkpoint="best")
        for name, value in (("fitted_temperature", temperature), ("temperature_at_bound", len(ends)))
    ]
