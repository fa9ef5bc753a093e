"""Types whose neighbours are shown: words that a reader names, or some of the rare ones."""

from collections.abc import Mapping, Sequence

import numpy as np

from raretok.core.errors import UserError

# What a type that begins a word begins with: a blank (byte-level BPE), SentencePiece's mark, or nothing.
BEFORE_WORDS = (" ", "▁", "")


def query_ids(
    queries: Sequence[str] | Mapping[str, int], symbols: Sequence[str], known: np.ndarray, first_rare: int, corpus: str
) -> np.ndarray:
    """Ids of the types whose neighbours are wanted.

    queries: words, looked up as they stand inside a line first (`BEFORE_WORDS`); or {rare: n} for n types (fewer where
    there are not as many) evenly spaced among the rare ones that are known and made of letters, all that are known
    where none is. symbols: texts of the V types. known: which of them occur in training and are not special; the
    others are no queries (`neighbours.occurring`). Raises UserError for a word that is no known type.
    """
    if isinstance(queries, Mapping):
        rare = [i for i in range(first_rare, len(symbols)) if known[i]]
        rare = [i for i in rare if symbols[i].lstrip(" ▁").isalpha()] or rare
        places = np.linspace(0, len(rare) - 1, min(queries["rare"], len(rare))).round().astype(np.int64)
        return np.array(rare, dtype=np.int64)[places]
    ids = {symbol: i for i, symbol in reversed(list(enumerate(symbols))) if known[i]}
    return np.array([_find(word, ids, corpus) for word in queries], dtype=np.int64)


def _find(word: str, ids: Mapping[str, int], corpus: str) -> int:
    for symbol in (before + word for before in BEFORE_WORDS):
        if symbol in ids:
            return ids[symbol]
    raise UserError(
        f"evaluation.queries names {word!r}, which is no type of corpus {corpus} that occurs in training; "
        "choose words of its vocabulary.json, or {rare: 3} to take three rare types"
    )
