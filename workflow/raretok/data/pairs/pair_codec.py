"""Codecs between plain text and final ids: `codec_of` for any prepared corpus, PairCodec for translation."""

from collections.abc import Iterable

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.data.pairs import pieces
from raretok.data.pairs.preparation import Preparation
from raretok.data.prepared_corpus import Corpus
from raretok.data.text.tokenizers import SPECIAL, TOKENIZER, UNKNOWN, Codec


class PairCodec:
    """Codec of a corpus of kind `translation`; `side`, `source` or `target`, selects the language.

    Special types and unused fillers are decoded as nothing.
    """

    def __init__(self, corpus: Corpus):
        manifest = read_json(corpus.folder / "manifest.json")
        self._symbols = corpus.symbols
        self._ids = {symbol: number for number, symbol in enumerate(corpus.symbols) if number >= len(SPECIAL)}
        occurs = corpus.counts + corpus.source_counts > 0
        self._printed = {number for number in self._ids.values() if occurs[number]}
        self._pieces = pieces.load(corpus.folder)
        self._preparations = {
            side: Preparation(manifest["preparation"], language) for side, language in manifest["languages"].items()
        }

    def ids(self, text: str, side: str = "target") -> list[int]:
        """Final ids of plain text, UNKNOWN for pieces outside the vocabulary; no END is added."""
        return self.encode([text], side)[0]

    def encode(self, lines: Iterable[str], side: str) -> list[list[int]]:
        """Final ids of each plain line, without END."""
        prepared = [self._preparations[side].apply(" ".join(line.split())) for line in lines]
        return [[self._ids.get(piece, UNKNOWN) for piece in line] for line in self._pieces.split(prepared)]

    def text(self, ids: Iterable[int]) -> str:
        """Final ids as prepared text: pieces joined, words of a tokenised corpus still separate."""
        return self._pieces.join([self._symbols[number] for number in ids if number in self._printed])

    def detokenised(self, ids: Iterable[int], side: str = "target") -> str:
        """Final ids as plain text."""
        return self._preparations[side].undo(self.text(ids))

    def tokenised(self, ids: Iterable[int], side: str = "target") -> str:
        """Final ids as Moses tokens between blanks."""
        text = self.text(ids)
        return text if self._preparations[side].tokenises else self._preparations[side].words(text)

    def words(self, text: str, side: str = "target") -> str:
        """Plain text as Moses tokens between blanks, prepared like the corpus: the reference for `tokenised`."""
        prepared = self._preparations[side].apply(text)
        return prepared if self._preparations[side].tokenises else self._preparations[side].words(prepared)


def codec_of(corpus: Corpus):
    """The codec of a prepared corpus: Codec for kind `language`, PairCodec for kind `translation`.

    Raises UserError if its tokenizer is missing or damaged.
    """
    try:
        if corpus.kind == "translation":
            return PairCodec(corpus)
        return Codec(corpus)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise UserError(
            f"{corpus.folder / TOKENIZER} is missing or damaged; delete {corpus.folder} and run the workflow again"
        ) from error
