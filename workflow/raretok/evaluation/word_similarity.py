"""Word similarity: do cosines of word vectors rank pairs of words as people do (agg, table 6; inventory 1.5)?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from raretok.evaluation.similarity import unit_rows


@dataclass(frozen=True)
class WordSimilarity:
    """Spearman's rho times 100 over `pairs` pairs; `coverage`: share of the `words` words without unknown pieces."""

    spearman: float
    pairs: int
    coverage: float
    words: int


def word_similarity(
    pairs: Sequence[tuple[str, str, float]],
    pieces: Callable[[str], Sequence[int]],
    embeddings: np.ndarray,
    unknown: int,
) -> WordSimilarity:
    """Rank correlation of cosine similarity and human score over all `pairs` (word, word, score).

    pieces: ids of a word's pieces; its vector is the mean of their rows of W (V x d). A piece that is no type has
    the id `unknown`, whose row it takes; so has a word without pieces. No pair is left out.
    """
    words = sorted({word for first, second, _ in pairs for word in (first, second)})
    ids = {word: list(pieces(word)) or [unknown] for word in words}
    vectors = unit_rows(np.stack([np.asarray(embeddings[ids[word]], dtype=np.float64).mean(0) for word in words]))
    place = {word: i for i, word in enumerate(words)}
    cosines = [vectors[place[first]] @ vectors[place[second]] for first, second, _ in pairs]
    covered = sum(unknown not in ids[word] for word in words)
    rho = spearman(np.array(cosines), np.array([score for _, _, score in pairs]))
    return WordSimilarity(100 * rho, len(pairs), covered / len(words), len(words))


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, float64; equal values share the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return (last - (sizes - 1) / 2)[group]


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of the ranks of two sequences; NaN when one is constant or holds a NaN."""
    if np.isnan(first).any() or np.isnan(second).any():
        return float("nan")
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale else float("nan")
