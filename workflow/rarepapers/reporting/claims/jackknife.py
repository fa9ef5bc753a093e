"""Jackknife pseudo-values for claims about means over seeds."""

import math
from collections.abc import Callable

from rarepapers.reporting.claims.truths import Truth
from rarepapers.reporting.statistics import over_seeds


def shares(seeds: list[int], truth_on: Callable[[list[int]], Truth]) -> dict[int, Truth]:
    """The truth on the means over all `seeds`, with each seed's pseudo-value instead of the slack.

    truth_on: the truth on the means over some of the seeds. A slack is usually not linear: |x - 0.72| of a mean is at
    most the mean of |x - 0.72|, and with more seeds the latter would refute what is true with growing certainty. The
    jackknife pseudo-value of a seed is n s - (n - 1) s', with the slack s on the means of all n seeds and s' on those
    of the others; for a linear slack it is the seed's own slack. With one seed, or infinite slacks, each seed's own
    slack is used.

    The mean of pseudo-values is s minus its estimated bias, which overshoots where a slack has a kink, while s itself
    is biased to one side there. The pseudo-values are therefore shifted so that their mean is the smaller of the two in
    absolute value, or 0 if their signs differ. Source: Tukey 1958, Bias and Confidence in Not-quite Large Samples.
    """
    n = len(seeds)
    if n > 1:
        whole = truth_on(seeds)
        without = [truth_on([other for other in seeds if other != seed]) for seed in seeds]
        if all(map(math.isfinite, [whole.slack, *(truth.slack for truth in without)])):
            slacks = _shares(whole.slack, [truth.slack for truth in without])
            # Each part of a conjunction has its own pseudo-values.
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
    """Pseudo-values of a slack: `whole` on all seeds, `without` each of them."""
    n = len(without)
    values = [n * whole - (n - 1) * slack for slack in without]
    mean = over_seeds.mean_of(values)
    cautious = min(whole, mean, key=abs) if (whole > 0) == (mean > 0) else 0.0
    return [value - mean + cautious for value in values]


def mean_of(values: dict[int, float], seeds: list[int]) -> float:
    """The mean over some seeds; for one seed its own value, to the bit."""
    return over_seeds.mean_of(values[seed] for seed in seeds)
