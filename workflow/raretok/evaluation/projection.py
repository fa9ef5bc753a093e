"""Embeddings in the plane of their first two principal components (stop_jostling, figure 6)."""

import numpy as np


def principal_components(embeddings: np.ndarray, components: int = 2) -> np.ndarray:
    """Coordinates (V x components, float64) of the centred rows of W (V x d).

    The axes are the leading right singular vectors of the centred matrix. A singular vector is known up to
    its sign: here its largest entry by absolute value, the first of equals, is positive. Missing components
    (d or V too small) are 0. NaN when W holds a value that is not finite.
    """
    w = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(w).all():
        return np.full((len(w), components), np.nan)
    centred = w - w.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:components]
    largest = np.abs(directions).argmax(1)
    signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
    plane = np.zeros((len(w), components))
    plane[:, : len(directions)] = centred @ (directions * signs[:, None]).T
    return plane


def translation_distance(plane: np.ndarray) -> float:
    """Mean Euclidean distance of the two language versions of a character, rows i and i + n of 2n x 2."""
    n = len(plane) // 2
    return float(np.linalg.norm(plane[:n] - plane[n:], axis=1).mean())
