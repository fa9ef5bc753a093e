"""Calibration of the output bias: log-probability of gold tokens by unigram frequency (natural_bias, figure 4).

Test tokens are binned by their type's unigram log-frequency in training, in bins of equal width. A bin's height is the
mean log p(y) of its tokens under the whole model, and under softmax(W phi), without the bias. If W has learnt the
frequencies, both curves rise; if the bias holds them, the curve without the bias falls.
"""

from dataclasses import dataclass

import numpy as np

from raretok.methods.unigram import log_unigram


@dataclass(frozen=True)
class Calibration:
    """Bins of tokens; empty bins are NaN.

    edges: (B + 1,). numbers: tokens, (B,). places: mean unigram log-frequency, (B,). heights: mean log p(y), (B,).
    slope: of the least-squares line through the points (places, heights). token_slope: of the line through all tokens.
    """

    edges: np.ndarray
    numbers: np.ndarray
    places: np.ndarray
    heights: np.ndarray
    slope: float
    token_slope: float


def log_frequencies(counts: np.ndarray) -> np.ndarray:
    """Log relative frequency of each type, (V,), with one added to every count for unseen types (deviations, N5)."""
    return log_unigram(counts).numpy()


def calibrate(log_unigram: np.ndarray, log_p: np.ndarray, bins: int) -> Calibration:
    """Bin n gold tokens by their type's unigram log-frequency.

    log_unigram, log_p: of each token, (n,). bins: B, of equal width between the smallest and the largest frequency; the
    last bin includes its right edge.
    """
    edges = np.linspace(log_unigram.min(), log_unigram.max(), bins + 1)
    member = np.clip(np.searchsorted(edges, log_unigram, side="right") - 1, 0, bins - 1)
    numbers = np.bincount(member, minlength=bins)
    with np.errstate(invalid="ignore"):
        places = np.bincount(member, weights=log_unigram, minlength=bins) / numbers
        heights = np.bincount(member, weights=log_p, minlength=bins) / numbers
    some = numbers > 0
    return Calibration(edges, numbers, places, heights, slope(places[some], heights[some]), slope(log_unigram, log_p))


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of the least-squares line of y on x, (n,) both; NaN if x is constant."""
    if not len(x) or np.ptp(x) == 0:
        return float("nan")
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))
