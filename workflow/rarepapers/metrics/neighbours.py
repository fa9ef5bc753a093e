"""Nearest tokens by cosine similarity, and related characters among them (stop_jostling, 4.6 and table 2)."""

from collections.abc import Sequence

import numpy as np

from raretok.metrics.mean_similarity import unit_rows


def cosines(embeddings: np.ndarray) -> np.ndarray:
    """Cosine similarity of every pair of rows, V x V, float64; a row of length 0 has 0 with every row."""
    unit = unit_rows(embeddings)
    return unit @ unit.T


def occurring(counts: np.ndarray, special: Sequence[int]) -> np.ndarray:
    """Which of V types can be queries and neighbours: those that occur in training (`counts`) and are not special.

    Types without occurrences, such as fillers of the vocabulary, were only pushed away in training, so their neighbours
    mean nothing.
    """
    known = np.asarray(counts) > 0
    known[list(special)] = False
    return known


def nearest_to(
    embeddings: np.ndarray, queries: np.ndarray, k: int, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and cosines (q x k each) of the k nearest tokens of each of the q ids `queries`, itself excluded.

    Sorted by decreasing cosine, ties by id. q x V cosines are in memory. known: possible neighbours (V booleans, which
    include the queries); by default all. k is limited to their number minus one.
    """
    unit = unit_rows(embeddings)
    similarity = unit[queries] @ unit.T
    np.put_along_axis(similarity, np.asarray(queries)[:, None], -np.inf, axis=1)
    if known is not None:
        similarity[:, ~known] = -np.inf
        k = min(k, max(0, int(known.sum()) - 1))
    return _largest(similarity, k)


def _largest(similarity: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and values of the k largest entries of each row, k at most the row's length minus one (the token itself)."""
    k = min(k, similarity.shape[1] - 1)
    ids = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(similarity, ids, axis=1)


def related(symbols: list[str]) -> np.ndarray:
    """Whether token j is a related character of token i: the same letter in other case, language or both.

    symbols: the n characters of one language; token i + n is character i of the other. Returns 2n x 2n booleans, False
    for non-letters and on the diagonal.
    """
    folded = np.array([s.lower() if s.isalpha() else "" for s in symbols] * 2)
    same = (folded[:, None] == folded[None, :]) & (folded != "")[:, None]
    np.fill_diagonal(same, False)
    return same


def related_share(neighbour_ids: np.ndarray, symbols: list[str], queries: str | None = None) -> tuple[int, int]:
    """Number of related characters among the neighbours of the letters, and number of neighbours.

    neighbour_ids: 2n x k, from `nearest_to`. queries: letters of both languages to use ("Aa" gives table 2's 12
    neighbours for k = 3); None: every letter.
    """
    chosen = [i for i, s in enumerate(symbols) if (s.isalpha() if queries is None else s in queries)]
    rows = np.array(chosen + [i + len(symbols) for i in chosen], dtype=int)
    hits = np.take_along_axis(related(symbols), neighbour_ids, axis=1)[rows]
    return int(hits.sum()), hits.size
