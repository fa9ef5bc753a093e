"""Projection of embeddings on their first two components, and singular values.

Centred (principal components: stop_jostling figure 6, agps figures 1, 3, 4) or not (singular value decomposition: agg
figures 1, 3). Directions are defined up to their sign: here the entry with the largest absolute value, the first for
ties, is positive. NaN if W is not finite.
"""

import numpy as np


def plane(embeddings: np.ndarray, centred: bool) -> np.ndarray:
    """Coordinates (V x 2, float64) of the rows of W (V x d) on its first two right singular vectors.

    centred: subtract the mean of the rows first. The vectors are eigenvectors of the d x d matrix W^T W, since a full
    decomposition of W costs ten times as much and its left vectors are not needed.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return np.full((len(w), 2), np.nan)
    if centred:
        w = w - w.mean(0)
    _, vectors = np.linalg.eigh(w.T @ w)
    # Eigenvalues are in increasing order.
    return _project(w, vectors[:, ::-1].T[:2])


def relative_singular_values(embeddings: np.ndarray) -> np.ndarray:
    """sigma_i / sigma_1 of W (V x d) in decreasing order, (d,) float64 (agg, figure 3c).

    Square roots of the eigenvalues of W^T W; values below 1e-8 are rounding errors. NaN for a matrix of zeros.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return np.full(w.shape[1], np.nan)
    squares = np.linalg.eigvalsh(w.T @ w)[::-1].clip(min=0)
    with np.errstate(invalid="ignore"):
        return np.sqrt(squares / squares[0])


def translation_distance(plane: np.ndarray) -> float:
    """Mean Euclidean distance of the two language versions of a character, rows i and i + n of 2n x 2."""
    n = len(plane) // 2
    return float(np.linalg.norm(plane[:n] - plane[n:], axis=1).mean())


def relative_translation_distance(plane: np.ndarray) -> float:
    """`translation_distance` divided by the mean distance of all n^2 pairs of characters across the two languages.

    Independent of the scale of W; 1 if the two versions of a character are as far apart as any two characters across
    languages. NaN if all distances are 0.
    """
    n = len(plane) // 2
    pairs = np.linalg.norm(plane[:n, None] - plane[None, n:], axis=2).mean()
    return translation_distance(plane) / float(pairs) if pairs else float("nan")


def _project(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Coordinates of `rows` (V x d) on `directions` (at most 2 x d), with fixed signs."""
    largest = np.abs(directions).argmax(1)
    signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
    coordinates = np.zeros((len(rows), 2))
    coordinates[:, : len(directions)] = rows @ (directions * signs[:, None]).T
    return coordinates
