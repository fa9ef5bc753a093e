"""Moderated t: estimates of a quantity over seeds whose variance is shrunk towards that of other rows.

Two or three seeds give a poor estimate of a variance. Rows of one metric (methods of one experiment) have similar
variances, so each row's variance is shrunk towards a common one, as limma does for genes (Smyth 2004): a row with d
degrees of freedom and variance s^2 gets (d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees of freedom. s0^2 and d0 are
estimated from the moments of the rows' log variances: the more similar the rows, the larger d0. If rows differ, d0 is
near 0 and the test is Student's t.

limma has thousands of rows, a table has three to forty. With so few, limma's estimate of d0 decides at least one claim
in 8 to 31% of papers without any effect, even if all rows have equal variance. Three things are therefore different,
as measured by benchmarks/claims_error_rate.py:

- What all rows share in a seed (batches, the baseline) is removed before s0^2 and d0 are estimated. Otherwise the
  seeds of one baseline would count once for every row.
- The expected variance of a difference is that of two rows, 2 s0^2, or the average variance of the differences,
  whichever is larger: the seeds of the baseline may vary most.
- d0 is at most half the number of rows beyond three, and at most 2; half of that for levels, which are correlated
  through their seeds.
- A row whose own standard deviation is more than six times the median row's is left out of the pool, and is judged by
  Student's t alone. What rows share in a seed is removed by least squares, which would spread its variance over all.

Give ratios as logarithms. The seeds of a perplexity of 800 differ by more than those of one of 40, but their logarithms
do not: by the delta method sd(log x) = sd(x) / x, and only similar variances can be pooled.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma, stdtr, stdtrit

from rarepapers.reporting.statistics.intervals import CONFIDENCE, has_spread
from rarepapers.reporting.statistics.over_seeds import mean_of, no_variance, variance_of

SeedValues = Mapping[int, float]

# Upper limit of d0, and rows that do not count for it: measured (docs/statistics.md), not taken from limma.
MOST_PRIOR_DF = 2.0
FREE_ROWS = 3
# If hardly any other row has a seed, a row has no degrees of freedom left; fewer than this are rounding errors.
LEAST_DF = 0.05
# A row with more than this many times the median row's standard deviation is not of their kind.
OUTLYING = 6.0


@dataclass(frozen=True)
class Prior:
    """Prior of the variance of a quantity over seeds, from the rows of its metric; df is d0, its weight."""

    variance: float
    df: float


@dataclass(frozen=True)
class Spread:
    """A standard deviation over seeds, with its degrees of freedom."""

    sd: float
    df: float


@dataclass(frozen=True)
class Estimate:
    """A quantity over seeds, in the unit of the values (for ratios, of their logarithm).

    sd: standard deviation of one seed, None if unknown. df: degrees of freedom of sd. prior: the information of other
    rows on sd; None for Student's t. diverged: why several seeds have no variance; empty if they have one.
    """

    mean: float
    sd: float | None
    df: float
    seeds: int
    prior: Prior | None = None
    diverged: str = ""

    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Two-sided 95% confidence interval of the mean; none for one seed."""
        return self._around(self._error, self.df)

    def prediction(self, single: Spread | None = None) -> tuple[float, float] | tuple[None, None]:
        """95% interval of a new seed, such as the paper's run: half its width is t sd sqrt(1/n + 1).

        single: the spread of one new value, if it is not `sd`.
        """
        return self._around(*self._of_new(single))

    def p_predicted(self, value: float, single: Spread | None = None) -> float | None:
        """Two-sided p of a value as that of one new seed: below 0.05 outside `prediction`; None if sd is unknown."""
        error, df = self._of_new(single)
        return None if error is None else float(2 * stdtr(df, -abs(value - self.mean) / error))

    def p(self, null: float = 0.0) -> float | None:
        """Two-sided p for the mean being `null`; None for one seed, and if sd is unknown."""
        return None if self._error is None else float(2 * stdtr(self.df, -abs((self.mean - null) / self._error)))

    def p_within(self, null: float, margin: float) -> float | None:
        """p of two one-sided tests that the mean differs from `null` by less than `margin` (Schuirmann 1987)."""
        if self._error is None:
            return None
        distance = abs(self.mean - null)
        return float(stdtr(self.df, (distance - margin) / self._error))

    @property
    def _error(self) -> float | None:
        """Standard error of the mean. One seed has none, even if sd is known, and so no verdict."""
        return None if self.sd is None or self.seeds < 2 else self.sd / math.sqrt(self.seeds)

    def _of_new(self, single: Spread | None) -> tuple[float | None, float]:
        """Standard deviation of a new value around the mean, and its degrees of freedom."""
        if self.sd is None:
            return None, self.df
        single = single or Spread(self.sd, self.df)
        return math.hypot(single.sd, self.sd / math.sqrt(self.seeds)), single.df

    def _around(self, error: float | None, df: float) -> tuple[float, float] | tuple[None, None]:
        if error is None:
            return None, None
        half = float(stdtrit(df, (1 + CONFIDENCE) / 2)) * error
        return self.mean - half, self.mean + half


def estimate(values: SeedValues, pool: Sequence[SeedValues] = (), compared: bool = True) -> Estimate:
    """Estimate of a quantity by seed, moderated by the other rows of its metric; Student's t without a pool.

    values: the quantity of one row, by seed. pool: of every row of the metric, by seed, with or without this one.
    compared: whether the quantity is a difference to one other row, the same for all of the pool, or a level.

    If seeds are equal up to rounding (counts, shares of few items), only the pool determines sd. Values that are not
    finite, or so large that their variance is not, have a mean and nothing else.
    """
    numbers = list(values.values())
    mean, seeds = mean_of(numbers), len(numbers)
    if diverged := no_variance(values):
        return Estimate(mean, None, 0.0, seeds, diverged=diverged)
    own, df = (variance_of(numbers), seeds - 1) if has_spread(numbers) else (0.0, 0)
    rows = alike([values, *(row for row in pool if row != values)]) if pool else []
    is_alike = values in rows or seeds == 1
    known = prior_of(rows, compared) if is_alike else None
    if known is None:
        return Estimate(mean, math.sqrt(own) if df else None, float(df), seeds)
    total = known.df + df
    return Estimate(mean, math.sqrt((known.df * known.variance + df * own) / total), total, seeds, known)


def single_runs(rows: Sequence[SeedValues], known: Sequence[SeedValues]) -> Spread | None:
    """The spread of a sum or difference of single runs of several rows whose seeds have nothing in common.

    known: for each row, a similar row with the most seeds; a row varies at least as much. Degrees of freedom by Welch
    and Satterthwaite; None if a row has one seed, or none of them any spread.
    """
    if any(len(row) < 2 or no_variance(row) for row in [*rows, *known]):
        return None
    spreads = [max((variance_of(row.values()), len(row) - 1) for row in pair) for pair in zip(rows, known, strict=True)]
    variances = [variance for variance, _ in spreads]
    largest = max(variances)
    if not largest:
        return None
    # Divided by the largest, because the square of a variance can overflow.
    weights = sum((variance / largest) ** 2 / df for variance, df in spreads)
    return Spread(math.sqrt(sum(variances)), (sum(variances) / largest) ** 2 / weights)


def alike(rows: Sequence[SeedValues]) -> list[SeedValues]:
    """The rows that can share a prior: those with several seeds with a variance, not OUTLYING times as much."""
    rows = [row for row in rows if len(row) > 1 and not no_variance(row)]
    sds = [statistics.stdev(row.values()) if has_spread(list(row.values())) else 0.0 for row in rows]
    most = OUTLYING * statistics.median(varied) if (varied := [sd for sd in sds if sd]) else 0.0
    return [row for row, sd in zip(rows, sds, strict=True) if sd <= most]


def prior_of(rows: Sequence[SeedValues], compared: bool = True) -> Prior | None:
    """The prior that rows of one metric give for the variance of each (see `estimate`); None for too few rows.

    Rows that are equal in every seed give none. rows: with several finite seeds. Source: Smyth 2004, Linear Models and
    Empirical Bayes Methods, section 6.2, with the limits described in the module.
    """
    own, own_dfs = own_variances(rows)
    if not len(own):
        return None
    if compared:
        # The baseline: as a difference from itself it is 0 in every seed.
        variances, dfs = row_variances([*rows, dict.fromkeys({seed for row in rows for seed in row}, 0.0)])
    else:
        variances, dfs = own, own_dfs
    most = min((len(variances) - FREE_ROWS) / 2, MOST_PRIOR_DF) * (1 if compared else 0.5)
    if most <= 0:
        return None
    variance, df = squeeze(variances, dfs)
    if compared:
        variance = max(2 * variance, float(np.average(own, weights=own_dfs)))
    return Prior(variance, min(df, most))


def squeeze(variances: np.ndarray, dfs: np.ndarray) -> tuple[float, float]:
    """s0^2 and d0 of a scaled F distribution of `variances` with `dfs` degrees of freedom, by moments of their logs.

    d0 is infinite if they differ by no more than chance; s0^2 is then their mean.
    """
    logs = np.log(variances) - digamma(dfs / 2) + np.log(dfs / 2)
    excess = float(logs.var(ddof=1) - polygamma(1, dfs / 2).mean())
    if excess <= 0:
        return float(np.average(variances, weights=dfs)), math.inf
    half = trigamma_inverse(excess)
    return math.exp(float(logs.mean()) + float(digamma(half)) - math.log(half)), 2 * half


def trigamma_inverse(value: float) -> float:
    """y with trigamma(y) = `value` > 0, by Newton's method on 1/trigamma, which is nearly linear (Smyth 2004)."""
    y = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, y))
        y += step
        if -step / y < 1e-12:
            break
    return y


def row_variances(rows: Sequence[SeedValues]) -> tuple[np.ndarray, np.ndarray]:
    """Variances of rows after removing what they share in a seed, with degrees of freedom; rows may lack seeds.

    They come from the residuals of the least-squares fit value = row + seed; a row's degrees of freedom are those that
    the fit leaves in its cells. Rows without spread are left out, since their logarithm is undefined.
    """
    seeds = sorted({seed for row in rows for seed in row})
    cells = [(number, seeds.index(seed), value) for number, row in enumerate(rows) for seed, value in row.items()]
    if not cells:
        return np.array([]), np.array([])
    of_row, of_seed = (np.array([cell[part] for cell in cells]) for part in (0, 1))
    values = np.array([value for *_, value in cells])
    design = np.zeros((len(cells), len(rows) + len(seeds)))
    design[np.arange(len(cells)), of_row] = design[np.arange(len(cells)), len(rows) + of_seed] = 1
    # Orthonormal basis of the row and seed effects; the design has rank one less, or lower if seeds do not overlap.
    left, singular, _ = np.linalg.svd(design, full_matrices=False)
    basis = left[:, singular > 1e-9 * singular[0]]
    residuals = values - basis @ (basis.T @ values)
    free = 1 - (basis**2).sum(axis=1)
    squares = np.bincount(of_row, residuals**2, minlength=len(rows))
    return _spread_of(squares, np.bincount(of_row, free, minlength=len(rows)))


def own_variances(rows: Sequence[SeedValues]) -> tuple[np.ndarray, np.ndarray]:
    """Variance of each row around its own mean, with its degrees of freedom."""
    dfs = np.array([len(row) - 1.0 for row in rows])
    return _spread_of(np.array([variance_of(row.values()) for row in rows]) * dfs, dfs)


def _spread_of(squares: np.ndarray, dfs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances and degrees of freedom of the rows that have both, beyond rounding errors."""
    kept = (dfs > LEAST_DF) & (squares > 1e-18 * max(squares.max(initial=0.0), 0.0))
    return squares[kept] / dfs[kept], dfs[kept]
