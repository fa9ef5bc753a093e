"""Frequency bias of neighbours: cosines against frequency rank (agps, figures 5-7)."""

import numpy as np

from rarepapers.metrics.rank_correlation import spearman
from raretok.metrics.mean_similarity import unit_rows


def query_cosines(embeddings: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Cosine of each of q types with every type, (q, V) float64; embeddings V x d, queries ids."""
    unit = unit_rows(embeddings)
    return unit[queries] @ unit.T


def rank_correlations(cosines: np.ndarray, queries: np.ndarray, known: np.ndarray, counts: np.ndarray) -> list[float]:
    """Spearman's correlation of a type's frequency rank with its cosine with the query, for each query.

    cosines: (q, V). known: types that count (V booleans), except the query itself. counts: of the target side (V).
    Types with equal counts share a rank, as all those do that occur on the source side only. Above 0: rare types are
    nearer than frequent ones.
    """
    found = []
    for query, row in zip(queries, cosines, strict=True):
        others = np.flatnonzero(known)
        others = others[others != query]
        found.append(spearman(-counts[others], row[others]))
    return found
