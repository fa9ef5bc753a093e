"""Words separated by white space."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NotRequired, TypedDict

from rarepapers.core.files import write_json
from rarepapers.core.special_types import END, SPECIAL, UNKNOWN
from rarepapers.core.type_check import Limit
from rarepapers.data.tokenizers import TOKENIZER

# Types of WikiText-103, an upper bound for entries without `types`.
MOST_TYPES = 267_744


class PlainWords(TypedDict):
    """Words separated by white space."""

    name: Literal["words"]
    # Number of types to keep: 4 special ones, then the most frequent; all others become <unk>. Default: all.
    types: NotRequired[Annotated[int, Limit("minimum", 8), Limit("multipleOf", 8)]]


class Words:
    """Words separated by white space. A word that equals a special type is <unk>, as in WikiText."""

    corpora: ClassVar[str] = "language"
    config: ClassVar[type] = PlainWords
    files: ClassVar[tuple[str, ...]] = (TOKENIZER,)
    marks_words: ClassVar[bool] = False

    def __init__(self, kept: int | None = None):
        self.kept = kept
        self._ids = dict.fromkeys(SPECIAL, UNKNOWN)

    @staticmethod
    def types(entry: dict) -> int:
        return entry.get("types", MOST_TYPES)

    @classmethod
    def learn(cls, name: str, entry: dict, text: Iterable[Sequence[str]], **details) -> "Words":
        return cls(entry.get("types"))

    @classmethod
    def load(cls, folder: Path) -> "Words":
        return cls()

    def save(self, folder: Path) -> None:
        write_json(folder / TOKENIZER, {"name": "words"})

    def encode(self, lines: Sequence[str]) -> list[int]:
        """Raw ids of the lines, each ending with END; a new word gets the next id."""
        ids, flat = self._ids, []
        for line in lines:
            words = line.split()
            for word in words:
                if word not in ids:
                    ids[word] = len(ids)
            flat += [ids[word] for word in words]
            flat.append(END)
        return flat

    @property
    def symbols(self) -> list[str]:
        return list(self._ids)

    @property
    def described(self) -> dict:
        return {"name": "words", "merges": None, "library": None}

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, symbols: Iterable[str]) -> str:
        return " ".join(symbols)
