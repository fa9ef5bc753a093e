"""Isotropy I(W) of an embedding matrix (agg, Eq. 3, after Mu and Viswanath 2018), and its dependence on signs.

I(W) = min_a Z(a) / max_a Z(a), Z(a) = sum_i exp(<w_i, a>), over the unit eigenvectors a of W^T W. If a is one, so is
-a, with another Z. A routine that returns only one of the two makes I(W) arbitrary (deviations, A16); here a runs over
both. For a group of tokens, pass only its rows. Z is computed in float64, as a logarithm.

The eigenvectors of a degenerate eigenvalue are not unique, so the value then depends on the basis that is returned.
Fewer rows than columns make 0 degenerate, which is harmless: Z(a) is then the number of rows for every such a.
"""

import numpy as np

# Eigenvectors at a time: rows x COLUMNS scores are in memory.
COLUMNS = 256
SIGN_FREE = "isotropy_sign_free"
# Description of the eigenvectors in each metric's signature.
EIGENVECTORS = {
    SIGN_FREE: "both_signs",
    "isotropy_lowest": "one_sign_each_lowest",
    "isotropy_highest": "one_sign_each_highest",
    "isotropy_linalg_eig": "torch_linalg_eig_float32",
}


def isotropy(embeddings: np.ndarray) -> float:
    """I(W) of W (N x d), in [0, 1], over both signs of every eigenvector. NaN if W is not finite."""
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return float("nan")
    plus, minus = log_partition(w, symmetric_eigenvectors(w))
    return _ratio(np.concatenate([plus, minus]))


def isotropy_readings(embeddings: np.ndarray) -> dict[str, float]:
    """I(W) of W (N x d) for each name in `EIGENVECTORS`, all in [0, 1]; NaN if W is not finite.

    isotropy_sign_free: as `isotropy`. isotropy_lowest, isotropy_highest: the smallest and largest value with one sign
    per eigenvector. isotropy_linalg_eig: with the eigenvectors of the stop_jostling authors' routine.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return dict.fromkeys(EIGENVECTORS, float("nan"))
    plus, minus = log_partition(w, symmetric_eigenvectors(w))
    returned, _ = log_partition(w, general_eigenvectors(embeddings))
    values = (_ratio(np.concatenate([plus, minus])), *sign_range(plus, minus), _ratio(returned))
    return dict(zip(EIGENVECTORS, values, strict=True))


def symmetric_eigenvectors(w: np.ndarray) -> np.ndarray:
    """Unit eigenvectors of W^T W as columns (d x d), by the routine for symmetric matrices in float64."""
    return np.linalg.eigh(w.T @ w)[1]


def general_eigenvectors(embeddings: np.ndarray) -> np.ndarray:
    """Real parts of the output of `torch.linalg.eig` for W^T W in float32 (d x d), the stop_jostling authors' routine.

    Rounding can make a pair of eigenvectors complex; the real parts are then not unit vectors. The authors keep these.
    """
    import torch  # not at the top: reporting imports this module without it

    w = torch.as_tensor(np.asarray(embeddings, dtype=np.float32))
    return torch.linalg.eig(w.T @ w).eigenvectors.real.double().numpy()


def log_partition(w: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln Z(a) and ln Z(-a) for each column a of `vectors` (d x k), where W is N x d; k numbers each."""
    plus, minus = [], []
    for start in range(0, vectors.shape[1], COLUMNS):
        scores = w @ vectors[:, start : start + COLUMNS]  # N x columns
        plus.append(_log_sum_exp(scores))
        minus.append(_log_sum_exp(-scores))
    return np.concatenate(plus), np.concatenate(minus)


def sign_range(plus: np.ndarray, minus: np.ndarray) -> tuple[float, float]:
    """The smallest and largest I(W) over the 2^d choices of one sign per eigenvector.

    plus, minus: ln Z of each eigenvector with either sign, (d,). The smallest value takes the lower number of one
    eigenvector and the higher number of another. The largest corresponds to the narrowest interval that holds a number
    of each, found in one pass over the 2d sorted numbers.
    """
    if len(plus) == 1:
        return 1.0, 1.0
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    # If one eigenvector has both extremes, the next one replaces either of them.
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
    """Smallest divided by largest of the exponentials."""
    return float(np.exp(logarithms.min() - logarithms.max()))


def _log_sum_exp(scores: np.ndarray) -> np.ndarray:
    """ln sum_i exp over the rows, one value a column."""
    largest = scores.max(0)
    return largest + np.log(np.exp(scores - largest).sum(0))
