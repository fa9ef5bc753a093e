"""Codecs between plain text and final ids of a prepared corpus: Codec for language, PairCodec for translation."""

from collections.abc import Iterable, Mapping, Sequence

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import SPECIAL, UNKNOWN
from rarepapers.data.pairs.preparation import Preparation, preparations_of
from rarepapers.data.prepared_corpus import Corpus
from rarepapers.data.tokenizers import TOKENIZER, load_tokenizer


class Codec:
    """Text of a corpus of kind `language`; symbols: the vocabulary, by id."""

    def __init__(self, symbols: Sequence[str], tokenizer):
        self._symbols, self._tokenizer = symbols, tokenizer
        self._ids = {symbol: number for number, symbol in enumerate(symbols) if number >= len(SPECIAL)}

    def ids(self, text: str) -> list[int]:
        """Final ids of `text`, UNKNOWN for what the vocabulary lacks; nothing is stripped, no END is added."""
        return [self._ids.get(symbol, UNKNOWN) for symbol in self._tokenizer.split(text)]

    def text(self, ids: Iterable[int]) -> str:
        """Text of final ids; special types as their names."""
        return self._tokenizer.join(self._symbols[number] for number in ids)


class PairCodec(Codec):
    """Text of a corpus of kind `translation`; `side`, `source` or `target`, selects the language.

    Special types, and types that occur on neither side of the training text (`occurs`, V booleans), are decoded as
    nothing. preparations: of each side.
    """

    def __init__(
        self, symbols: Sequence[str], tokenizer, occurs: Sequence[bool], preparations: Mapping[str, Preparation]
    ):
        super().__init__(symbols, tokenizer)
        self._printed = {number for number in self._ids.values() if occurs[number]}
        self._preparations = preparations

    def ids(self, text: str, side: str = "target") -> list[int]:
        """Final ids of plain text, UNKNOWN for pieces outside the vocabulary; no END is added."""
        return self.encode([text], side)[0]

    def encode(self, lines: Iterable[str], side: str) -> list[list[int]]:
        """Final ids of each plain line, without END."""
        prepared = [self._preparations[side].apply(" ".join(line.split())) for line in lines]
        return [[self._ids.get(piece, UNKNOWN) for piece in line] for line in self._tokenizer.split(prepared)]

    def text(self, ids: Iterable[int]) -> str:
        """Final ids as prepared text: pieces joined, words of a tokenised corpus still separate."""
        return self._tokenizer.join([self._symbols[number] for number in ids if number in self._printed])

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
        tokenizer = load_tokenizer(corpus.folder)
        if corpus.kind == "language":
            return Codec(corpus.symbols, tokenizer)
        occurs = corpus.counts + corpus.source_counts > 0
        return PairCodec(corpus.symbols, tokenizer, occurs, preparations_of(corpus.preparation, corpus.languages))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise UserError(
            f"{corpus.folder / TOKENIZER} is missing or damaged; delete {corpus.folder} and run the workflow again"
        ) from error
