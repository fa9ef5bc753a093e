"""Tokenizers of language corpora: byte-level BPE as in GPT-2, or words separated by white space.

There are two forms of ids. Raw ids are those of a tokenizer while a text is read: 0 to 3 are the special types, the
others
have the tokenizer's own order. Final ids are sorted by decreasing training frequency (`raretok.data.text.encode_text`).
Prepared corpora hold final ids, and `codec_of` (raretok.data.pairs.pair_codec) converts between them and text.

Special types are fairseq's, in its order: <s>, <pad>, </s> (every line's last token) and <unk>.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.data.prepared_corpus import Corpus

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
START, PAD, END, UNKNOWN = range(4)
TOKENIZER = "tokenizer.json"

Merges = list[tuple[str, str]]


class Words:
    """Words separated by white space. A word that equals a special type is <unk>, as in WikiText."""

    def __init__(self):
        self._ids = dict.fromkeys(SPECIAL, UNKNOWN)

    def encode(self, lines: Sequence[str]) -> np.ndarray:
        """Raw ids of the lines, each ending with END, (tokens,) uint32; a new word gets the next id."""
        ids, flat = self._ids, []
        for line in lines:
            words = line.split()
            for word in words:
                if word not in ids:
                    ids[word] = len(ids)
            flat += [ids[word] for word in words]
            flat.append(END)
        return np.array(flat, dtype=np.uint32)

    @property
    def symbols(self) -> list[str]:
        """Text of every raw id."""
        return list(self._ids)

    @property
    def described(self) -> dict:
        """The manifest entry."""
        return {"name": "words", "merges": None, "library": None}

    @property
    def saved(self) -> dict:
        """The data that `codec_of` needs besides the vocabulary."""
        return {"name": "words"}


class BPE:
    """Byte-level BPE: GPT-2's splitting into words, bytes as its 256 characters, then merges in order."""

    def __init__(self, merges: Merges, origin: str, **details):
        """merges: pairs of pieces in GPT-2's characters for bytes. origin: `published` or `trained`.

        details: further manifest entries.
        """
        self._merges, self._origin, self._details = merges, origin, details
        self._pieces = pieces_of(merges)
        self._tokenizer = _tokenizer(merges, self._pieces)

    def encode(self, lines: Sequence[str]) -> np.ndarray:
        """Raw ids of the lines, each ending with END, (tokens,) uint32."""
        flat = []
        for encoding in self._tokenizer.encode_batch_fast(list(lines), add_special_tokens=False):
            flat += encoding.ids
            flat.append(END - len(SPECIAL))
        return (np.array(flat, dtype=np.int64) + len(SPECIAL)).astype(np.uint32)

    @property
    def symbols(self) -> list[str]:
        """Text of every raw id."""
        return [*SPECIAL, *map(text_of, self._pieces)]

    @property
    def described(self) -> dict:
        """The manifest entry."""
        library = f"tokenizers {version('tokenizers')}"
        described = {"name": "bpe", "merges": self._origin, "library": library, "number_of_merges": len(self._merges)}
        return described | self._details

    @property
    def saved(self) -> dict:
        """The data that `codec_of` needs besides the vocabulary."""
        return {"name": "bpe", "merges": [list(pair) for pair in self._merges]}


class Codec:
    """Conversion between text and the final ids of a prepared corpus."""

    def __init__(self, corpus: Corpus):
        saved = read_json(corpus.folder / TOKENIZER)
        self._symbols = corpus.symbols
        self._ids = {symbol: number for number, symbol in enumerate(corpus.symbols) if number >= len(SPECIAL)}
        self._tokenizer = None
        if saved["name"] == "bpe":
            merges = [tuple(pair) for pair in saved["merges"]]
            self._pieces = pieces_of(merges)
            self._tokenizer = _tokenizer(merges, self._pieces)
            self._final = [self._ids.get(text_of(piece), UNKNOWN) for piece in self._pieces]
            self._bytes = {final: bytes_of(piece) for piece, final in zip(self._pieces, self._final, strict=True)}

    def ids(self, text: str) -> list[int]:
        """Final ids of `text`, UNKNOWN for pieces outside the vocabulary; nothing is stripped, no END is added."""
        if self._tokenizer is None:
            return [self._ids.get(word, UNKNOWN) for word in text.split()]
        return [self._final[raw] for raw in self._tokenizer.encode(text, add_special_tokens=False).ids]

    def text(self, ids: Iterable[int]) -> str:
        """Text of final ids; special types as their names, invalid UTF-8 as U+FFFD."""
        if self._tokenizer is None:
            return " ".join(self._symbols[number] for number in ids)
        joined = b"".join(
            self._symbols[number].encode() if number < len(SPECIAL) else self._bytes.get(number, b"") for number in ids
        )
        return joined.decode("utf-8", "replace")


def train_merges(batches: Iterable[Sequence[str]], types: int) -> Merges:
    """Merges learnt on these lines, from 256 bytes up to `types` types, or as many as the text gives.

    The library breaks ties by the pieces' ids, so equal texts give equal merges for any number of threads.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=types, initial_alphabet=sorted(byte_characters().values()), special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator(batches, trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def read_merges(path: Path) -> Merges:
    """Merges in GPT-2's file format: one line per merge, two pieces separated by a space; a first line `#version`.

    Raises UserError if the file is missing, is not UTF-8, or has a line that is not a merge of known pieces.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; download it first (data set gpt2_bpe)") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error.reason} at byte {error.start}; get it again") from error
    merges, known = [], set(byte_characters().values())
    for number, line in enumerate(lines, start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2 or not known.issuperset(pair):
            raise UserError(f"{path}, line {number} is no merge of two known pieces: {line[:80]!r}; get the file again")
        known.add("".join(pair))
        merges.append(pair)
    return merges


@cache
def byte_characters() -> dict[int, str]:
    """GPT-2's printable character for each byte, in vocabulary order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def pieces_of(merges: Merges) -> list[str]:
    """The types of a list of merges: bytes, then each merge's piece once, as in GPT-2's vocabulary."""
    return list(dict.fromkeys([*byte_characters().values(), *map("".join, merges)]))


def bytes_of(piece: str) -> bytes:
    """The bytes of a piece written in GPT-2's characters."""
    return bytes(map(_characters_to_bytes().__getitem__, piece))


def text_of(piece: str) -> str:
    """A piece as text: its leading space is a space, bytes that are no UTF-8 are shown as `\\\\xNN`."""
    return bytes_of(piece).decode("utf-8", "backslashreplace")


@cache
def _characters_to_bytes() -> dict[str, int]:
    return {character: byte for byte, character in byte_characters().items()}


def _tokenizer(merges: Merges, pieces: list[str]):
    """The library's tokenizer for these merges; its ids are indices of `pieces`."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab={piece: place for place, piece in enumerate(pieces)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer
