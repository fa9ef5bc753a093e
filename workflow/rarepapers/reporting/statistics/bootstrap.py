"""Bootstrap intervals over training seeds.

Whole runs are resampled, never test items: resampling test items (`metrics/translation_tests.py`) tells nothing about
other seeds. Intervals are percentiles. Every interval seeds its own generator, so it depends on its numbers alone. With
few seeds bootstrap intervals are too narrow (docs/statistics.md); the t interval is not.
"""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from rarepapers.reporting.statistics.intervals import CONFIDENCE, Interval, has_spread
from rarepapers.reporting.statistics.over_seeds import mean_of

RESAMPLES = 4999
SEED = 1


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Mean of `values` (one per seed) with the 95% percentile interval of the means of resampled seeds.

    No bounds if the values have no spread, as for a t interval.
    """
    mean = mean_of(values)
    if not has_spread(values):
        return Interval(mean, None, None)
    return Interval(mean, *_bounds([values], np.mean))


def probability_of_improvement(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Interval:
    """Share of pairs of runs in which the second method's run has the larger value; ties count half.

    first, second: data sets x seeds; the result is the mean over data sets. The interval resamples the runs of each
    data set and method separately (stratified). No bounds if any of them has a single seed. Source: Agarwal et al.
    2021, Deep Reinforcement Learning at the Edge of the Statistical Precipice, section 4.3.
    """
    samples = [sample for pair in zip(first, second, strict=True) for sample in pair]
    value = float(_share_above(*map(np.asarray, samples)))
    if any(len(sample) < 2 for sample in samples):
        return Interval(value, None, None)
    return Interval(value, *_bounds(samples, _share_above))


def _share_above(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    """The share for samples that alternate between first and second method, ... x seeds; mean over data sets, ..."""
    shares = []
    for first, second in zip(samples[::2], samples[1::2], strict=True):
        first, second = first[..., :, None], second[..., None, :]
        shares.append(((second > first) + 0.5 * (second == first)).mean((-2, -1)))
    return np.mean(shares, axis=0)


def _bounds(samples: Sequence[Sequence[float]], statistic) -> tuple[float, float]:
    found = stats.bootstrap(
        [np.asarray(sample, dtype=float) for sample in samples],
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(found.low), float(found.high)
