"""fast_align's model in NumPy: IBM model 2 with a diagonal prior (Dyer, Chahuneau and Smith 2013).

The target word at position j of n comes from the source word at position i of m with the prior probability

    p(0) = P0,    p(i) = (1 - P0) exp(-tension |i / m - j / n|) / Z(j, m, n)

and from that source word by a translation table. Five iterations of expectation maximisation, with variational Bayes
for the table and gradient ascent on the tension (fast_align -d -o -v), are followed by the most likely source position
of every target word. It needs only NumPy; tests compare it with a literal implementation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import digamma

# fast_align's defaults.
ITERATIONS = 5
NULL_PROBABILITY = 0.08  # P0, that a target word comes from no source word
ALPHA = 0.01  # of the symmetric Dirichlet prior on a row of the table
START_TENSION = 4.0
TENSION_BOUNDS = (0.1, 14.0)
TENSION_STEPS = 8
TENSION_RATE = 20.0
OPTIONS = {
    "iterations": ITERATIONS,
    "favor_diagonal": True,
    "optimize_tension": True,
    "variational_bayes": True,
    "alpha": ALPHA,
    "prob_align_null": NULL_PROBABILITY,
}
# Cells (a target word with each source word of its pair, and with none) in memory at a time.
CELLS = 4_000_000


@dataclass(frozen=True)
class Side:
    """The sentences of one language: concatenated word ids, and the length of each sentence."""

    words: np.ndarray  # int64, from 0
    lengths: np.ndarray  # int64, one per sentence
    types: int

    @property
    def starts(self) -> np.ndarray:
        """Offset of each sentence in `words`, and the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def number_words(sentences: Iterable[list[str]]) -> Side:
    """Words of `sentences` as ids in order of their first occurrence."""
    ids: dict[str, int] = {}
    words, lengths = [], []
    for sentence in sentences:
        words += [ids.setdefault(word, len(ids)) for word in sentence]
        lengths.append(len(sentence))
    return Side(np.array(words, dtype=np.int64), np.array(lengths, dtype=np.int64), len(ids))


def link(source: Side, target: Side, folder: Path) -> np.ndarray:
    """The most likely source position of every target word, from 0; -1 for no word. Shape: (target words,).

    folder: for a temporary file with the cells' places in the table, 4 bytes per cell. Deterministic: one thread adds
    in a fixed order.
    """
    bounds = _bounds(source, target)
    keys = _keys(_chunk(source, target, *pairs) for pairs in bounds)
    for number, pairs in enumerate(bounds):
        chunk = _chunk(source, target, *pairs)
        np.save(folder / f"cells{number}.npy", np.searchsorted(keys, chunk.keys()).astype(np.int32))
    rows = keys // target.types
    # Before the first iteration all target words are equally likely.
    table = np.ones(len(keys))
    tension = START_TENSION
    sizes, numbers = np.unique(np.stack([source.lengths, target.lengths]), axis=1, return_counts=True)
    for iteration in range(ITERATIONS - 1):
        counts, feature = np.zeros(len(keys)), 0.0
        for number, pairs in enumerate(bounds):
            chunk = _chunk(source, target, *pairs)
            cells = np.load(folder / f"cells{number}.npy", mmap_mode="r")
            joint = chunk.prior(tension) * table[cells]
            share = joint / np.repeat(np.add.reduceat(joint, chunk.starts), chunk.sizes)
            counts += np.bincount(cells, share, minlength=len(keys))
            # fast_align counts target positions from 0 here, and from 1 in the prior.
            feature -= np.sum(np.abs(chunk.distances(0)) * share * (chunk.places > 0))
        if iteration:
            for _ in range(TENSION_STEPS):
                gradient = (feature - _expected_feature(sizes, numbers, tension)) / len(target.words)
                tension = float(np.clip(tension + TENSION_RATE * gradient, *TENSION_BOUNDS))
        totals = np.bincount(rows, counts, minlength=source.types + 1)
        entries = np.bincount(rows, minlength=source.types + 1)
        table = np.exp(digamma(counts + ALPHA) - digamma(totals + ALPHA * entries)[rows])
    best = np.empty(len(target.words), dtype=np.int64)
    for number, pairs in enumerate(bounds):
        chunk = _chunk(source, target, *pairs)
        cells = np.load(folder / f"cells{number}.npy", mmap_mode="r")
        best[chunk.words] = chunk.likeliest(chunk.prior(tension) * table[cells]) - 1
        (folder / f"cells{number}.npy").unlink()
    return best


@dataclass(frozen=True)
class _Chunk:
    """The cells of some pairs: of each target word, place 0 (no source word), then places 1 to m of the source."""

    words: slice  # of the target words
    sizes: np.ndarray  # m + 1 of each target word
    starts: np.ndarray  # first cell of each target word
    places: np.ndarray  # 0 to m, of each cell
    relative: np.ndarray  # j / n of each target word, from 1 / n
    step: np.ndarray  # 1 / n of each target word
    sources: np.ndarray  # id of each cell's source word, 0 for none
    targets: np.ndarray  # id of each target word
    types: int  # of the target

    def keys(self) -> np.ndarray:
        """One number for each cell's pair of words."""
        return self.sources * self.types + np.repeat(self.targets, self.sizes)

    def distances(self, first: int) -> np.ndarray:
        """i / m - j / n of each cell, target places counted from `first`."""
        relative = self.relative - (1 - first) * self.step
        return self.places / np.repeat(self.sizes - 1, self.sizes) - np.repeat(relative, self.sizes)

    def prior(self, tension: float) -> np.ndarray:
        """p(i) of each cell."""
        weights = np.exp(-tension * np.abs(self.distances(1)))
        weights[self.starts] = 0
        weights *= np.repeat((1 - NULL_PROBABILITY) / np.add.reduceat(weights, self.starts), self.sizes)
        weights[self.starts] = NULL_PROBABILITY
        return weights

    def likeliest(self, joint: np.ndarray) -> np.ndarray:
        """The first place of the largest value of each target word."""
        largest = np.repeat(np.maximum.reduceat(joint, self.starts), self.sizes)
        return np.minimum.reduceat(np.where(joint == largest, self.places, len(joint)), self.starts)


def _bounds(source: Side, target: Side) -> list[tuple[int, int]]:
    """First and last pair (exclusive) of each chunk, which has at most `CELLS` cells or a single pair."""
    cells = np.cumsum(target.lengths * (source.lengths + 1))
    bounds, first = [], 0
    while first < len(cells):
        done = cells[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(cells, done + CELLS, side="right")))
        bounds.append((first, last))
        first = last
    return bounds


def _chunk(source: Side, target: Side, first: int, last: int) -> _Chunk:
    """The cells of pairs `first` to `last`."""
    m, n = source.lengths[first:last], target.lengths[first:last]
    words = slice(int(target.starts[first]), int(target.starts[last]))
    sizes = np.repeat(m + 1, n)
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    place = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + 1
    ids = np.concatenate([[0], source.words + 1])
    # `ids` is shifted by one: a sentence's start plus a place from 1 finds the source word, and index 0 is no word.
    at = np.repeat(np.repeat(source.starts[first:last], n), sizes) + places
    return _Chunk(
        words=words,
        sizes=sizes,
        starts=starts,
        places=places,
        relative=place / np.repeat(n, n),
        step=1 / np.repeat(n, n),
        sources=ids[np.where(places > 0, at, 0)],
        targets=target.words[words],
        types=target.types,
    )


def _keys(chunks: Iterable[_Chunk]) -> np.ndarray:
    """The distinct keys of all cells, sorted; merged when new ones outnumber known ones, which bounds memory."""
    known, new = np.empty(0, dtype=np.int64), []
    for chunk in chunks:
        new.append(np.unique(chunk.keys()))
        if sum(map(len, new)) > len(known):
            known, new = np.unique(np.concatenate([known, *new])), []
    return np.unique(np.concatenate([known, *new]))


def _expected_feature(sizes: np.ndarray, numbers: np.ndarray, tension: float) -> float:
    """Expected diagonal feature under the prior, summed over pairs. sizes: m and n, 2 x S; numbers: pairs, S."""
    total = 0.0
    for m, n, pairs in zip(*sizes.tolist(), numbers.tolist(), strict=True):
        distance = np.abs(np.arange(1, m + 1) / m - np.arange(1, n + 1)[:, None] / n)
        weights = np.exp(-tension * distance)
        total -= pairs * float(np.sum(distance * weights / weights.sum(axis=1, keepdims=True)))
    return total
