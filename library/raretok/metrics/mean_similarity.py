"""Mean similarity of embeddings: closed forms of means over all pairs, by sums of vectors.

A row of length 0 has cosine 0 with every row. All computations are in float64; W has N rows of width d.
"""

import numpy as np


def unit_rows(embeddings: np.ndarray) -> np.ndarray:
    """The rows of W (N x d) normalised to length 1, float64; a row of length 0 stays 0, NaN stays NaN."""
    w = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    return np.divide(w, norms, out=np.zeros_like(w), where=norms != 0)


def mean_cosine(embeddings: np.ndarray) -> float:
    """S(w) = (1 / N^2) sum_i sum_{j != i} cos(w_i, w_j) (agps, Eq. 9), as (||sum_i u_i||^2 - N) / N^2.

    u_i are the normalised rows; subtracting N (less for rows of length 0) removes the pairs of a row with itself.
    """
    unit = unit_rows(embeddings)
    total = unit.sum(0)
    return float((total @ total - np.sum(unit * unit)) / len(unit) ** 2)


def mean_cosine_between(first: np.ndarray, second: np.ndarray) -> float:
    """Mean cosine over all pairs of a row of `first` and one of `second` (agg, figure 2)."""
    return float(unit_rows(first).mean(0) @ unit_rows(second).mean(0))


def mean_inner_product(embeddings: np.ndarray) -> float:
    """Mean of <w_i, w_j> over the pairs i != j (agps, figure 2); NaN for fewer than two rows."""
    w = np.asarray(embeddings, dtype=np.float64)
    if len(w) < 2:
        return float("nan")
    total = w.sum(0)
    return float((total @ total - np.sum(w * w)) / (len(w) * (len(w) - 1)))
