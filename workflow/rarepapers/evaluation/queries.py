"""Queries for nearest neighbours: given words, or a selection of rare types."""

from collections.abc import Mapping, Sequence

import numpy as np

from rarepapers.core.errors import UserError

# Possible beginnings of a word-initial type: a blank (byte-level BPE), SentencePiece's mark, or nothing.
BEFORE_WORDS = (" ", "▁", "")


def query_ids(
    queries: Sequence[str] | Mapping[str, int], symbols: Sequence[str], known: np.ndarray, first_rare: int, corpus: str
) -> np.ndarray:
    """Ids of the query types.

    queries: words, looked up first in the form that they have inside a line (`BEFORE_WORDS`); or {rare: n} for up to n
    evenly spaced known rare types that consist of letters, or any known rare types if none does. symbols: texts of the
    V types. known: types that occur in training and are not special (`neighbours.occurring`), V booleans; only these
    can be queries. Raises UserError for a word that is not a known type.
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
