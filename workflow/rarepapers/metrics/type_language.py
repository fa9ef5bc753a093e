"""Language of each type of a joint vocabulary: the side on which it is relatively more frequent."""

import numpy as np

SOURCE, BOTH, TARGET = -1, 0, 1


def language_of(source_counts: np.ndarray, target_counts: np.ndarray) -> np.ndarray:
    """SOURCE or TARGET, the side with the higher relative frequency, or BOTH if they are equal; (V,) int64."""
    source, target = (np.asarray(counts, dtype=np.float64) for counts in (source_counts, target_counts))
    return np.sign(target / target.sum() - source / source.sum()).astype(np.int64)


def other_language_share(queries: np.ndarray, neighbours: np.ndarray, language: np.ndarray) -> float:
    """Share of the neighbours (q x k ids) of q types in the other language than their query; NaN without neighbours.

    A type of BOTH languages is in neither's other one.
    """
    if not neighbours.size:
        return float("nan")
    return float((language[neighbours] * language[queries][:, None] < 0).mean())
