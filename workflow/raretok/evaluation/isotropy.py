"""Isotropy I(W) of an embedding matrix (agg, Eq. 3, after Mu and Viswanath 2018)."""

import numpy as np

# Eigenvectors looked at a time: rows x COLUMNS scores are held.
COLUMNS = 256


def isotropy(embeddings: np.ndarray) -> tuple[float, float]:
    """I(W) with the eigenvectors as returned, and its sign-free variant, of W (N x d); both in [0, 1].

    I(W) = min_a Z(a) / max_a Z(a), Z(a) = sum_i exp(<w_i, a>), a over the unit eigenvectors of W^T W. The
    sign of an eigenvector is the linear algebra library's choice and changes Z(a), so the second number takes
    both a and -a (inventory, A16); the published metric is the first. For a group of tokens pass its rows
    alone. NaN when W holds a value that is not finite. Float64 throughout, in logarithms.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return float("nan"), float("nan")
    _, vectors = np.linalg.eigh(w.T @ w)
    # Of -a the scores are those of a negated.
    plus, minus = [], []
    for start in range(0, vectors.shape[1], COLUMNS):
        scores = w @ vectors[:, start : start + COLUMNS]  # N x columns
        plus.append(_log_sum_exp(scores))
        minus.append(_log_sum_exp(-scores))
    returned = np.concatenate(plus)
    both = np.concatenate([returned, *minus])
    return float(np.exp(returned.min() - returned.max())), float(np.exp(both.min() - both.max()))


def _log_sum_exp(scores: np.ndarray) -> np.ndarray:
    """ln sum_i exp over the rows, one value a column."""
    largest = scores.max(0)
    return largest + np.log(np.exp(scores - largest).sum(0))
