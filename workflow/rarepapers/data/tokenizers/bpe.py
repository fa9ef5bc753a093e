"""Byte-level BPE as in GPT-2: its splitting into words, bytes as its 256 characters, then merges in order."""

import json
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Required, TypedDict

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.core.special_types import END, SPECIAL
from rarepapers.core.type_check import Limit, keys
from rarepapers.data.lines import numbered_lines
from rarepapers.data.tokenizers import TOKENIZER, Published

# GPT-2's vocabulary, with the special types and filled up to a multiple of 8.
PUBLISHED_TYPES = 50_264

Merges = list[tuple[str, str]]


@keys(one_of=("types", "merges"))
class BytePairs(TypedDict, total=False):
    """GPT-2's byte-level BPE."""

    name: Required[Literal["bpe"]]
    # Types of a vocabulary learnt on the training split; 4 are special, 256 are bytes.
    types: Annotated[int, Limit("minimum", 264), Limit("multipleOf", 8)]
    # Published merges, in GPT-2's format.
    merges: Published


class Bpe:
    """Byte-level BPE by given merges."""

    corpora: ClassVar[str] = "language"
    config: ClassVar[type] = BytePairs
    files: ClassVar[tuple[str, ...]] = (TOKENIZER,)
    # All types are kept; the merges determine their number.
    kept: ClassVar[None] = None
    marks_words: ClassVar[bool] = True

    def __init__(self, merges: Merges, origin: str, **details):
        """merges: pairs of pieces in GPT-2's characters for bytes. origin: `published` or `trained`.

        details: further manifest entries.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers

        self._merges, self._origin, self._details = merges, origin, details
        # Bytes, then each merge's piece once, as in GPT-2's vocabulary.
        self._pieces = list(dict.fromkeys([*byte_characters(), *map("".join, merges)]))
        vocabulary = {piece: place for place, piece in enumerate(self._pieces)}
        self._tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    @staticmethod
    def types(entry: dict) -> int:
        return entry.get("types", PUBLISHED_TYPES)

    @classmethod
    def learn(cls, name: str, entry: dict, text: Iterable[Sequence[str]], **details) -> "Bpe":
        """Merges learnt on batches of lines; UserError if they give fewer types than corpus `name` asks for."""
        tokenizer = cls(train_merges(text, entry["types"] - len(SPECIAL)), "trained", **details)
        found = len(tokenizer.symbols)
        if found < entry["types"]:
            raise UserError(
                f"the training text of corpus {name} gives only {found:,} BPE types, but config/corpora.yaml asks for "
                f"{entry['types']:,}; lower tokenizer.types or take a longer text"
            )
        return tokenizer

    @classmethod
    def read(cls, path: Path) -> "Bpe":
        """Merges in GPT-2's file format: one line per merge, two pieces separated by a space; a first line `#version`.

        Raises UserError from `numbered_lines`, or for a line that is not a merge of known pieces.
        """
        merges, known = [], set(byte_characters())
        for number, line in numbered_lines(path):
            if not line or (number == 1 and line.startswith("#version")):
                continue
            pair = tuple(line.split(" "))
            if len(pair) != 2 or not known.issuperset(pair):
                words = f"line {number} is no merge of two known pieces: {line[:80]!r}"
                raise UserError(f"{path}, {words}; get the file again")
            known.add("".join(pair))
            merges.append(pair)
        return cls(merges, "published")

    @classmethod
    def load(cls, folder: Path) -> "Bpe":
        return cls(list(map(tuple, read_json(folder / TOKENIZER)["merges"])), "trained")

    def save(self, folder: Path) -> None:
        write_json(folder / TOKENIZER, {"name": "bpe", "merges": [list(pair) for pair in self._merges]})

    def encode(self, lines: Sequence[str]) -> list[int]:
        flat = []
        for encoding in self._tokenizer.encode_batch_fast(list(lines), add_special_tokens=False):
            flat += encoding.ids
            flat.append(END - len(SPECIAL))
        return [number + len(SPECIAL) for number in flat]

    @cached_property
    def symbols(self) -> list[str]:
        return [*SPECIAL, *map(text_of, self._pieces)]

    @property
    def described(self) -> dict:
        library = f"tokenizers {version('tokenizers')}"
        described = {"name": "bpe", "merges": self._origin, "library": library, "number_of_merges": len(self._merges)}
        return described | self._details

    def split(self, text: str) -> list[str]:
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self.symbols[number + len(SPECIAL)] for number in ids]

    def join(self, symbols: Iterable[str]) -> str:
        """The text of pieces; bytes that are no UTF-8 as U+FFFD."""
        return b"".join(self._bytes.get(symbol, b"") for symbol in symbols).decode("utf-8", "replace")

    @cached_property
    def _bytes(self) -> dict[str, bytes]:
        pieces = dict(zip(self.symbols[len(SPECIAL) :], map(bytes_of, self._pieces), strict=True))
        return pieces | {symbol: symbol.encode() for symbol in SPECIAL}


def train_merges(batches: Iterable[Sequence[str]], types: int) -> Merges:
    """Merges learnt on these lines, from 256 bytes up to `types` types, or as many as the text gives.

    The library breaks ties by the pieces' ids, so equal texts give equal merges for any number of threads.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=types, initial_alphabet=sorted(byte_characters()), special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator(batches, trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


@cache
def byte_characters() -> dict[str, int]:
    """GPT-2's printable characters for bytes, in vocabulary order, and the byte of each."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def bytes_of(piece: str) -> bytes:
    """The bytes of a piece written in GPT-2's characters."""
    return bytes(map(byte_characters().__getitem__, piece))


def text_of(piece: str) -> str:
    """A piece as text: its leading space is a space, bytes that are no UTF-8 are shown as `\\\\xNN`."""
    return bytes_of(piece).decode("utf-8", "backslashreplace")
