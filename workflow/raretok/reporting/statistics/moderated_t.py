"""Moderated t: how far seeds of one quantity differ, with what the other rows of its metric say about that.

Two or three seeds tell little of a variance. Rows of one metric (methods of one experiment) have similar ones, so each
row's variance is drawn towards that of all, as limma does for genes (Smyth 2004): a row with d degrees of freedom and
variance s^2 gets (d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees of freedom. s0^2 and d0 come from the moments of the
rows' log variances: the more alike the rows, the larger d0; where rows differ, d0 is near 0 and this is Student's t.

limma has thousands of rows, a table has three to forty. With so few, its estimate of d0 lets 8 to 31% of papers claim
something false even where all rows are alike. So three things differ, measured by benchmarks/claims_error_rate.py:

- What all rows share in a seed (batches, the row they are compared with) is removed before s0^2 and d0 are estimated:
  else the seeds of one baseline count once for every row.
- A difference is expected to vary as two rows do, 2 s0^2, or as the differences do on average, whichever is more: the
  row that all are compared with may be the one whose seeds differ most.
- d0 is at most half the rows beyond three, and at most 2; half of that for levels, which share their seeds' fortune.

Give ratios as logarithms. The seeds of a perplexity of 800 differ by more than those of one of 40, their logarithms
do not: by the delta method sd(log x) = sd(x) / x, and only what is alike can be pooled.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma, stdtr, stdtrit

from raretok.reporting.statistics.intervals import has_spread

SeedValues = Mapping[int, float]

# d0 at most, and rows that it takes no account of: measured (docs/statistics.md), not taken from limma.
MOST_PRIOR_DF = 2.0
FREE_ROWS = 3
# A seed that hardly any other row has leaves a row no degrees of freedom; fewer than this are rounding.
LEAST_DF = 0.05


@dataclass(frozen=True)
class Prior:
    """What the rows of a metric say about the variance of a quantity over seeds; df: d0, what that weighs."""

    variance: float
    df: float


@dataclass(frozen=True)
class Estimate:
    """A quantity over seeds.

    sd: of one seed, None where nothing tells it. df: degrees of freedom of sd. prior: what other rows say about sd;
    None for Student's t. In the unit of the values: for ratios, of their logarithm.
    """

    mean: float
    sd: float | None
    df: float
    seeds: int
    prior: Prior | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float] | tuple[None, None]:
        """Two-sided confidence interval of the mean; none for one seed."""
        return self._around(self._error, level)

    def prediction(self, level: float = 0.95) -> tuple[float, float] | tuple[None, None]:
        """Interval in which a new seed lies, such as the paper's one run: sd sqrt(1/n + 1)."""
        return self._around(None if self.sd is None else self.sd * math.sqrt(1 / self.seeds + 1), level)

    def p(self, null: float = 0.0) -> float | None:
        """Two-sided p that the mean is `null`; None for one seed, and where nothing tells the spread of seeds."""
        return None if self._error is None else float(2 * stdtr(self.df, -abs((self.mean - null) / self._error)))

    @property
    def _error(self) -> float | None:
        """Standard error of the mean. One seed has none, whatever is known of the spread: it gives no verdict."""
        return None if self.sd is None or self.seeds < 2 else self.sd / math.sqrt(self.seeds)

    def _around(self, error: float | None, level: float) -> tuple[float, float] | tuple[None, None]:
        if error is None:
            return None, None
        half = float(stdtrit(self.df, (1 + level) / 2)) * error
        return self.mean - half, self.mean + half


def estimate(values: SeedValues, pool: Sequence[SeedValues] = (), compared: bool = True) -> Estimate:
    """A quantity by seed, moderated by the same quantity of other rows of its metric; Student's t without a pool.

    values: the quantity of one row, by seed. pool: of every row of the metric, by seed, with or without this one.
    compared: the quantity is a difference to one other row, the same for all of the pool; else each row's own level.

    Seeds that agree but for rounding (counts, shares of few things) say nothing of the spread: such a row has the
    pool's alone. Values that are not finite have a mean and nothing else.
    """
    numbers = list(values.values())
    if not all(map(math.isfinite, numbers)):
        return Estimate(sum(numbers), None, 0.0, len(numbers))
    mean, seeds = statistics.fmean(numbers), len(numbers)
    own, df = (statistics.variance(numbers), seeds - 1) if has_spread(numbers) else (0.0, 0)
    known = prior_of([values, *(row for row in pool if row != values)], compared) if pool else None
    if known is None:
        return Estimate(mean, math.sqrt(own) if df else None, float(df), seeds)
    total = known.df + df
    return Estimate(mean, math.sqrt((known.df * known.variance + df * own) / total), total, seeds, known)


def prior_of(rows: Sequence[SeedValues], compared: bool = True) -> Prior | None:
    """What rows of one metric say about the variance of each of them (`estimate`); None for too few rows.

    Source: Smyth 2004, Linear Models and Empirical Bayes Methods, section 6.2, within the bounds that the module names.
    """
    rows = [row for row in rows if len(row) > 1 and all(map(math.isfinite, row.values()))]
    own, own_dfs = own_variances(rows)
    if compared:
        # The row that all are compared with: as a difference to itself it is 0 in every seed.
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

    d0 is infinite where they differ by no more than chance; then s0^2 is their mean.
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
    """Variance of each row beside what rows share in a seed, with its degrees of freedom; rows may lack seeds.

    Of the residuals of value = row + seed, by least squares; a row's degrees of freedom are what the fit leaves of its
    cells. Rows without spread are left out: they say nothing of a logarithm.
    """
    seeds = sorted({seed for row in rows for seed in row})
    cells = [(number, seeds.index(seed), value) for number, row in enumerate(rows) for seed, value in row.items()]
    if not cells:
        return np.array([]), np.array([])
    of_row, of_seed = (np.array([cell[part] for cell in cells]) for part in (0, 1))
    values = np.array([value for *_, value in cells])
    design = np.zeros((len(cells), len(rows) + len(seeds)))
    design[np.arange(len(cells)), of_row] = design[np.arange(len(cells)), len(rows) + of_seed] = 1
    # Orthonormal basis of what row and seed explain; the design lacks one rank, or more where seeds do not overlap.
    left, singular, _ = np.linalg.svd(design, full_matrices=False)
    basis = left[:, singular > 1e-9 * singular[0]]
    residuals = values - basis @ (basis.T @ values)
    free = 1 - (basis**2).sum(axis=1)
    squares = np.bincount(of_row, residuals**2, minlength=len(rows))
    return _spread_of(squares, np.bincount(of_row, free, minlength=len(rows)))


def own_variances(rows: Sequence[SeedValues]) -> tuple[np.ndarray, np.ndarray]:
    """Variance of each row around its own mean, with its degrees of freedom."""
    dfs = np.array([len(row) - 1.0 for row in rows])
    return _spread_of(np.array([statistics.variance(row.values()) for row in rows]) * dfs, dfs)


def _spread_of(squares: np.ndarray, dfs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances and degrees of freedom of the rows that have both, more than rounding leaves."""
    kept = (dfs > LEAST_DF) & (squares > 1e-18 * max(squares.max(initial=0.0), 0.0))
    return squares[kept] / dfs[kept], dfs[kept]
