"""Claims about means over seeds, and each seed's share in them: the jackknife."""

import math
import statistics
from collections.abc import Callable

from raretok.reporting.predicates import Truth


def shares(seeds: list[int], truth_on: Callable[[list[int]], Truth]) -> dict[int, Truth]:
    """The truth on the means over all `seeds`, with each seed's share in its slack in place of the slack.

    truth_on: the truth on the means over some of the seeds. A slack is seldom linear: |x - 0.72| of a mean is less than
    the mean of |x - 0.72|, and the more seeds, the surer would the latter refute what is true. A seed's share is its
    jackknife pseudo-value, n s - (n - 1) s', of the slack s on the means of all n seeds and s' on those of the others;
    of a linear slack it is the seed's own. One seed, and slacks that are infinite, have none: then each seed's own.

    The mean of pseudo-values is s less its bias, which overshoots where a slack has a bend, and s itself lies to one
    side there. So shares are moved to have the mean that says less, the one nearer to 0; none, where they disagree.
    Source: Tukey 1958, Bias and Confidence in Not-quite Large Samples.
    """
    n = len(seeds)
    if n > 1:
        whole = truth_on(seeds)
        values = [
            n * whole.slack - (n - 1) * truth_on([other for other in seeds if other != seed]).slack for seed in seeds
        ]
        if all(map(math.isfinite, values)):
            mean = statistics.fmean(values)
            cautious = min(whole.slack, mean, key=abs) if (whole.slack > 0) == (mean > 0) else 0.0
            moved = [Truth(whole.holds, value - mean + cautious) for value in values]
            return dict(zip(seeds, moved, strict=True))
    return {seed: truth_on([seed]) for seed in seeds}


def mean_of(values: dict[int, float], seeds: list[int]) -> float:
    """The mean over some seeds; of one seed its own value, to the bit."""
    numbers = [values[seed] for seed in seeds]
    return math.fsum(numbers) / len(numbers) if all(map(math.isfinite, numbers)) else sum(numbers) / len(numbers)
