"""Spearman's rank correlation in numpy, for word similarity and for claims about curves."""

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, float64; ties share their mean rank."""
    _, group, sizes = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return (last - (sizes - 1) / 2)[group]


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of the ranks of two sequences of equal length; NaN if one is constant, empty or has a NaN."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not len(first) or np.isnan(first).any() or np.isnan(second).any():
        return float("nan")
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale else float("nan")
