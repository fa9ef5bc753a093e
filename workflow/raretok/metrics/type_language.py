"""Language of the types of a joint vocabulary: the side of the training text with the larger share of them."""

import numpy as np

SOURCE, BOTH, TARGET = -1, 0, 1


def language_of(source_counts: np.ndarray, target_counts: np.ndarray) -> np.ndarray:
    """SOURCE, TARGET, or BOTH if the shares are equal, (V,) int64.

    Shares are relative to each side's tokens, since one side may be longer.
    """
    source, target = (np.asarray(counts, dtype=np.float64) for counts in (source_counts, target_counts))
    return np.sign(target / target.sum() - source / source.sum()).astype(np.int64)


def other_language_share(queries: np.ndarray, neighbours: np.ndarray, language: np.ndarray) -> float:
    """Share of the neighbours (q x k ids) of q types in another language than their query; NaN without neighbours."""
    if not neighbours.size:
        return float("nan")
    return float((language[neighbours] != language[queries][:, None]).mean())
