"""Ratios of a token's aligned to its marginalising gradients (stop_jostling, section 4.2 and figure 3).

At step s, g1 is a token's gradient through the input embedding, g2 the output gradient from positions with this target,
and g3 the output gradient from all others. Training records running sums (docs/results.md, Observations); these
functions aggregate them to one value per token.
"""

from collections.abc import Mapping

import numpy as np


def ratio_of_average(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """mean_s(|g1| + |g2|) / mean_s |g3|: inf without any marginalisation, NaN without any gradient."""
    return _divide(sums["sum_aligned"], sums["sum_marginal"])


def average_of_ratio(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """mean_s((|g1| + |g2|) / |g3|), where steps with |g3| = 0 use mean_s |g3| as the denominator.

    This is the rule in the paper's text, which calls the value a lower bound.
    """
    steps = np.asarray(sums["steps"], dtype=np.float64)
    mean_marginal = np.asarray(sums["sum_marginal"], dtype=np.float64) / steps
    substituted = _divide(sums["sum_aligned_zero"], mean_marginal)
    return (np.asarray(sums["sum_ratio"], dtype=np.float64) + substituted) / steps


def average_of_ratio_dropped(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """The same mean over the steps with |g3| > 0 only, as in the authors' notebook (S3); NaN if there are none."""
    counted = np.asarray(sums["steps"], dtype=np.float64) - sums["zero_steps"]
    return _divide(sums["sum_ratio"], counted)


def mean_over_tokens(values: np.ndarray) -> tuple[float, int]:
    """Mean and number of the values that are not NaN; tokens without any gradient have no ratio."""
    known = values[~np.isnan(values)]
    return (float(known.mean()) if len(known) else float("nan")), len(known)


def _divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient in float64: x / 0 is inf, 0 / 0 is NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator, dtype=np.float64) / np.asarray(denominator, dtype=np.float64)
