"""Small-sample coefficient of variation."""

import math
import statistics
from collections.abc import Sequence


def cv_star(measurements: Sequence[float]) -> float | None:
    """CV*, the coefficient of variation for small samples, in percent; for example of a paper's value and ours.

    (1 + 1/(4n)) s*/mean, where s* is the sample standard deviation divided by its bias c4(n) for normal samples. None
    for fewer than two measurements, and if one is not positive or not finite: it needs a ratio scale.
    Source: Belz, Popovic and Mille 2022, Quantified Reproducibility Assessment of NLP Results, section 3.
    """
    n = len(measurements)
    if n < 2 or not all(0 < value < math.inf for value in measurements):
        return None
    c4 = math.sqrt(2 / (n - 1)) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))
    unbiased = statistics.stdev(measurements) / c4
    return 100 * (1 + 1 / (4 * n)) * unbiased / statistics.fmean(measurements)
