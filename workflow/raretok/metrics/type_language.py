"""Which language a type of a joint vocabulary is of: the side of the training text that has more of it."""

import numpy as np

SOURCE, BOTH, TARGET = -1, 0, 1


def language_of(source_counts: np.ndarray, target_counts: np.ndarray) -> np.ndarray:
    """SOURCE, TARGET, or BOTH where neither side has a larger share of it, (V,) int64.

    Shares of each side's tokens, since one side may be longer.
    """
    source, target = (np.asarray(counts, dtype=np.float64) for counts in (source_counts, target_counts))
    return np.sign(target / target.sum() - source / source.sum()).astype(np.int64)


def other_language_share(queries: np.ndarray, neighbours: np.ndarray, language: np.ndarray) -> float:
    """Share of the neighbours (q x k ids) of q types that are of another language than their query; NaN of none."""
    if not neighbours.size:
        return float("nan")
    return float((language[neighbours] != language[queries][:, None]).mean())
