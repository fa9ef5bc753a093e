"""Symmetry of an embedding matrix under the frequencies of its types (Yokoi et al. 2024, arXiv 2411.00680).

I(W) and the mean cosine count every type once, as if types were uniform. Here each row counts as often as its type
occurs, p = counts / sum(counts), so that the few frequent rows, which a model mostly uses, decide.
"""

import numpy as np

CENTRALITY, ISOTROPY = "zipfian_centrality", "zipfian_isotropy"


def zipfian_symmetry(embeddings: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Centrality and isotropy of W (V x d) under counts (V), both in [0, 1]; 1 is the most symmetric.

    zipfian_centrality (first moment): 1 - |E_p w| / E_p |w|.
    zipfian_isotropy (second moment): entropy of the normalised eigenvalues of the covariance of w under p, divided by
    ln d.

    NaN where W is not finite, nothing was counted, d is 1, or all rows that count are equal.
    """
    w, p = np.asarray(embeddings, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if not np.isfinite(w).all() or not p.sum():
        return {CENTRALITY: float("nan"), ISOTROPY: float("nan")}
    p = p / p.sum()
    mean, length = p @ w, p @ np.linalg.norm(w, axis=1)
    variances = np.linalg.svd(np.sqrt(p)[:, None] * (w - mean), compute_uv=False) ** 2
    whole, d = variances.sum(), w.shape[1]
    # What rounding leaves of equal rows.
    varies = whole > np.finfo(float).eps ** 2 * (p @ np.sum(w * w, axis=1)) * len(w)
    shares = variances[variances > 0] / whole if varies else np.array([np.nan])
    return {
        CENTRALITY: float(1 - np.linalg.norm(mean) / length) if length else float("nan"),
        ISOTROPY: float(-(shares * np.log(shares)).sum() / np.log(d)) if d > 1 else float("nan"),
    }
