"""Claims about means over seeds, and each seed's share in them: the jackknife."""

import math
import statistics
from collections.abc import Callable

from raretok.reporting.claims.truths import Truth


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
        without = [truth_on([other for other in seeds if other != seed]) for seed in seeds]
        if all(map(math.isfinite, [whole.slack, *(truth.slack for truth in without)])):
            slacks = _shares(whole.slack, [truth.slack for truth in without])
            # Each part of a conjunction has shares of its own.
            parts = list(zip(whole.parts, *(truth.parts for truth in without), strict=True))
            of_parts = [_shares(first.slack, [one.slack for one in others]) for first, *others in parts]
            return {
                seed: Truth(
                    whole.holds,
                    slacks[k],
                    tuple(Truth(first.holds, of_part[k]) for (first, *_), of_part in zip(parts, of_parts, strict=True)),
                )
                for k, seed in enumerate(seeds)
            }
    return {seed: truth_on([seed]) for seed in seeds}


def _shares(whole: float, without: list[float]) -> list[float]:
    """Each seed's share in a slack: of all seeds `whole`, `without` each of them."""
    n = len(without)
    values = [n * whole - (n - 1) * slack for slack in without]
    mean = statistics.fmean(values)
    cautious = min(whole, mean, key=abs) if (whole > 0) == (mean > 0) else 0.0
    return [value - mean + cautious for value in values]


def mean_of(values: dict[int, float], seeds: list[int]) -> float:
    """The mean over some seeds; of one seed its own value, to the bit."""
    numbers = [values[seed] for seed in seeds]
    return math.fsum(numbers) / len(numbers) if all(map(math.isfinite, numbers)) else sum(numbers) / len(numbers)
