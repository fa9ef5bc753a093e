"""Word similarity: rank correlation of cosines with human scores of word pairs (agg, table 6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rarepapers.metrics.rank_correlation import spearman
from raretok.metrics.mean_similarity import unit_rows


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

    pieces: ids of a word's pieces; its vector is the mean of their rows of W (V x d). Pieces outside the vocabulary,
    and words without pieces, use the row of the id `unknown`. No pair is left out.
    """
    words = sorted({word for first, second, _ in pairs for word in (first, second)})
    ids = {word: list(pieces(word)) or [unknown] for word in words}
    vectors = unit_rows(np.stack([np.asarray(embeddings[ids[word]], dtype=np.float64).mean(0) for word in words]))
    place = {word: i for i, word in enumerate(words)}
    cosines = [vectors[place[first]] @ vectors[place[second]] for first, second, _ in pairs]
    covered = sum(unknown not in ids[word] for word in words)
    rho = spearman(np.array(cosines), np.array([score for _, _, score in pairs]))
    return WordSimilarity(100 * rho, len(pairs), covered / len(words), len(words))
