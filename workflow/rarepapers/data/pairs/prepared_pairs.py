"""Prepared sentence pairs: memory-mapped ids of both sides, line offsets, and texts."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import END
from rarepapers.data.prepared_corpus import Corpus

# Ids per chunk in the search for line ends.
CHUNK = 2**24


@dataclass(frozen=True)
class Pairs:
    """One split of a prepared corpus of kind `translation`.

    source, target: concatenated ids of all lines, each ending with END, (tokens,) unsigned integers, memory maps.
    source_offsets, target_offsets: (pairs + 1,) int64; line i is ids[offsets[i] : offsets[i + 1]].
    """

    folder: Path
    split: str
    source: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.target_offsets) - 1

    @cached_property
    def source_offsets(self) -> np.ndarray:
        return _offsets(self.source)

    @cached_property
    def target_offsets(self) -> np.ndarray:
        return _offsets(self.target)

    def texts(self, side: str) -> list[str]:
        """The plain, detokenised lines of `source` or `target`."""
        return (self.folder / f"{self.split}.{side}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def load_pairs(corpus: Corpus, split: str) -> Pairs:
    """The pairs of a split: train, valid, test, or `domain.<name>`; raises UserError if the corpus does not have it."""
    if split not in corpus.splits:
        known = ", ".join(corpus.splits)
        raise UserError(f"corpus {corpus.name} of config/corpora.yaml has no split {split}; it has {known}")
    return Pairs(corpus.folder, split, corpus.ids(split, "source"), corpus.ids(split, "target"))


def _offsets(ids: np.ndarray) -> np.ndarray:
    ends = [np.flatnonzero(ids[at : at + CHUNK] == END) + at + 1 for at in range(0, len(ids), CHUNK)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *ends])
