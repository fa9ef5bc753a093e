"""Isotropy I(W) of an embedding matrix (agg, Eq. 3, after Mu and Viswanath 2018), and what signs do to it.

I(W) = min_a Z(a) / max_a Z(a), Z(a) = sum_i exp(<w_i, a>), a over the unit eigenvectors of W^T W. With a, -a is one
too, and Z differs: a routine that returns one of the two leaves I(W) to chance (inventory, A16). Here a runs over both.
For a group of tokens pass its rows alone. Z in float64, in logarithms.

A degenerate eigenvalue has no eigenvectors of its own, and the value then depends on the basis that is returned. Fewer
rows than columns make zero one, which is harmless: there Z(a) is the number of rows for every a.
"""

import numpy as np

# Eigenvectors looked at a time: rows x COLUMNS scores are held.
COLUMNS = 256
SIGN_FREE = "isotropy_sign_free"
# What each metric's signature says of the eigenvectors.
EIGENVECTORS = {
    SIGN_FREE: "both_signs",
    "isotropy_lowest": "one_sign_each_lowest",
    "isotropy_highest": "one_sign_each_highest",
    "isotropy_linalg_eig": "torch_linalg_eig_float32",
}


def isotropy(embeddings: np.ndarray) -> float:
    """I(W) of W (N x d), in [0, 1]: both signs of every eigenvector. NaN where W holds a value that is not finite."""
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return float("nan")
    plus, minus = log_partition(w, symmetric_eigenvectors(w))
    return _ratio(np.concatenate([plus, minus]))


def isotropy_readings(embeddings: np.ndarray) -> dict[str, float]:
    """I(W) of W (N x d) under the names of `EIGENVECTORS`, all in [0, 1]; NaN where W is not finite.

    isotropy_sign_free: that of `isotropy`. isotropy_lowest, isotropy_highest: the least and the largest that one sign
    of each eigenvector can give. isotropy_linalg_eig: with the eigenvectors of the stop_jostling authors' routine.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return dict.fromkeys(EIGENVECTORS, float("nan"))
    plus, minus = log_partition(w, symmetric_eigenvectors(w))
    returned, _ = log_partition(w, general_eigenvectors(embeddings))
    values = (_ratio(np.concatenate([plus, minus])), *sign_range(plus, minus), _ratio(returned))
    return dict(zip(EIGENVECTORS, values, strict=True))


def symmetric_eigenvectors(w: np.ndarray) -> np.ndarray:
    """Unit eigenvectors of W^T W (d x d, one a column), by the routine for symmetric matrices in float64."""
    return np.linalg.eigh(w.T @ w)[1]


def general_eigenvectors(embeddings: np.ndarray) -> np.ndarray:
    """Real parts of what `torch.linalg.eig` returns of W^T W in float32 (d x d), the stop_jostling authors' routine.

    Rounding can make a pair of them complex, whose real parts are no unit vectors: the authors keep these.
    """
    import torch  # not at the top: reporting imports this module without it

    w = torch.as_tensor(np.asarray(embeddings, dtype=np.float32))
    return torch.linalg.eig(w.T @ w).eigenvectors.real.double().numpy()


def log_partition(w: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln Z(a) and ln Z(-a) of each column a of `vectors` (d x k), W being N x d; k numbers each."""
    plus, minus = [], []
    for start in range(0, vectors.shape[1], COLUMNS):
        scores = w @ vectors[:, start : start + COLUMNS]  # N x columns
        plus.append(_log_sum_exp(scores))
        minus.append(_log_sum_exp(-scores))
    return np.concatenate(plus), np.concatenate(minus)


def sign_range(plus: np.ndarray, minus: np.ndarray) -> tuple[float, float]:
    """The least and the largest I(W) over the 2^d ways to take one sign of each eigenvector.

    plus, minus: ln Z of each with the one sign and the other, d. The least takes the lower value of one eigenvector
    and the higher one of another. The largest is the narrowest interval that holds a value of each: one pass over the
    2d sorted values.
    """
    if len(plus) == 1:
        return 1.0, 1.0
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    # Should one eigenvector have both extremes, the next one takes the place of either.
    lowest, highest = np.argsort(low)[:2], np.argsort(high)[:-3:-1]
    widest = max(high[j] - low[i] for i in lowest for j in highest if i != j)

    values, owners = np.concatenate([low, high]), np.tile(np.arange(len(low)), 2)
    order = np.argsort(values, kind="stable")
    held, missing, start, narrowest = np.zeros(len(low), dtype=int), len(low), 0, np.inf
    for end in order:
        missing -= held[owners[end]] == 0
        held[owners[end]] += 1
        while missing == 0:
            first = order[start]
            narrowest = min(narrowest, values[end] - values[first])
            held[owners[first]] -= 1
            missing += held[owners[first]] == 0
            start += 1
    return float(np.exp(-widest)), float(np.exp(-narrowest))


def _ratio(logarithms: np.ndarray) -> float:
    """Least over largest of what the logarithms are of."""
    return float(np.exp(logarithms.min() - logarithms.max()))


def _log_sum_exp(scores: np.ndarray) -> np.ndarray:
    """ln sum_i exp over the rows, one value a column."""
    largest = scores.max(0)
    return largest + np.log(np.exp(scores - largest).sum(0))
