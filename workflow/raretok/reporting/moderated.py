"""A stand-in until the moderated estimate is merged: an ordinary t."""
import math, statistics
from dataclasses import dataclass
from scipy.special import stdtr, stdtrit
from raretok.reporting.intervals import has_spread

@dataclass(frozen=True)
class Estimate:
    mean: float
    sd: float | None
    df: float
    seeds: int
    prior: object = None

    def _se(self): return self.sd / math.sqrt(self.seeds)
    def interval(self, level=0.95):
        if self.seeds < 2 or self.sd is None: return None, None
        half = float(stdtrit(self.df, (1 + level) / 2)) * self._se()
        return self.mean - half, self.mean + half
    def p(self, null=0.0):
        if self.seeds < 2 or self.sd is None: return None
        return float(2 * stdtr(self.df, -abs(self.mean - null) / self._se()))
    def prediction(self, runs=1, level=0.95):
        if self.sd is None: return None, None
        half = float(stdtrit(self.df, (1 + level) / 2)) * self.sd * math.sqrt(1 / runs + 1 / self.seeds)
        return self.mean - half, self.mean + half

def estimate(values, pool=(), compared=True):
    numbers = list(values.values())
    mean = statistics.fmean(numbers) if all(map(math.isfinite, numbers)) else sum(numbers)
    if not has_spread(numbers): return Estimate(mean, None, 0, len(numbers))
    return Estimate(mean, statistics.stdev(numbers), len(numbers) - 1, len(numbers))
