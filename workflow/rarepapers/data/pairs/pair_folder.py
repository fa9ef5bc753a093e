"""The files of a split of a prepared corpus of kind `translation`: ids, texts and pieces."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from rarepapers.core.files import atomic_path
from rarepapers.core.special_types import END
from rarepapers.data.pairs.preparation import reason_to_drop
from rarepapers.data.prepared_corpus import SIDES, checksum_of
from rarepapers.data.text.encode_text import add_counts, write_ids

# Ids per chunk of a file.
CHUNK = 2**20


@dataclass
class Raw:
    """A split whose final ids are not known yet.

    streams: raw ids, uint32, one temporary file per side. counts: of raw ids by side, including END, up to the largest
    id. dropped: numbers of pairs left out, by reason. emptied: both lines of the first pair with a side without pieces.
    """

    streams: Mapping[str, object]
    pairs: int = 0
    counts: dict[str, np.ndarray] = field(default_factory=lambda: {side: np.zeros(0, np.int64) for side in SIDES})
    dropped: Counter = field(default_factory=Counter)
    emptied: tuple[str, str] | None = None


def write_raw(
    base: Path,
    batches: Iterable[list[list[str]]],
    tokenizer,
    numbers: dict[str, int],
    streams: Mapping[str, object],
    cleaning: Mapping,
) -> Raw:
    """Raw ids of a split into `streams`, its plain text into `<base>.source.txt` and `<base>.target.txt`.

    batches: prepared source and target, plain source and target, four lists of lines at a time. numbers: raw id of
    each piece, which grows with new ones. cleaning: max_length and max_ratio in pieces, if any. Pairs with a side of
    which the tokenizer leaves nothing are dropped as empty.
    """
    raw = Raw(streams)
    with _new_text(side_file(base, "source", "txt")) as one, _new_text(side_file(base, "target", "txt")) as other:
        texts = one, other
        for *prepared, source, target in batches:
            both = [tokenizer.split(lines) for lines in prepared]
            kept = []
            for place, pieces in enumerate(zip(*both, strict=True)):
                reason = reason_to_drop(*map(len, pieces), cleaning) if all(pieces) else "empty"
                if reason == "empty":
                    raw.emptied = raw.emptied or (source[place], target[place])
                if reason:
                    raw.dropped[reason] += 1
                else:
                    kept.append(place)
            raw.pairs += len(kept)
            for side, lines, split, text in zip(SIDES, (source, target), both, texts, strict=True):
                ids = _number([split[place] for place in kept], numbers)
                raw.streams[side].write(ids.tobytes())
                raw.counts[side] = add_counts(raw.counts[side], np.bincount(ids))
                text.writelines(f"{lines[place]}\n" for place in kept)
    return raw


def write_split(
    base: Path, raw: Mapping[str, np.ndarray], final_ids: np.ndarray, symbols: list[str], pairs: int
) -> dict:
    """Write ids, `<base>.<side>.npy`, and pieces, `<base>.<side>.tok.txt`, of a split whose plain text is written.

    raw: raw ids by side, (tokens,). final_ids: of every raw id. symbols: the vocabulary. Returns the manifest entry,
    whose checksum covers ids and texts of both sides.
    """
    contents = []
    for side in SIDES:
        path = side_file(base, side, "npy")
        write_ids(path, raw[side], final_ids)
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
        _write_pieces(side_file(base, side, "tok.txt"), ids, symbols)
        contents += ids, side_file(base, side, "txt")
    counts = {"tokens": len(raw["target"]), "source_tokens": len(raw["source"])}
    return {"pairs": pairs, **counts, "sha256": checksum_of(contents)}


def _write_pieces(path: Path, ids: np.ndarray, symbols: list[str]) -> None:
    """Write the pieces of each line of ids, separated by blanks, without END."""
    shown = np.array([f" {symbol}" for symbol in symbols], dtype=object)
    shown[END] = "\n"
    with _new_text(path) as stream:
        begins = True
        for at in range(0, len(ids), CHUNK):
            text = "".join(shown[ids[at : at + CHUNK]])
            stream.write((text.removeprefix(" ") if begins else text).replace("\n ", "\n"))
            begins = text.endswith("\n")


def side_file(base: Path, side: str, form: str) -> Path:
    """The file of a side's ids (`npy`), plain lines (`txt`) or pieces (`tok.txt`); base: folder and split."""
    return base.with_name(f"{base.name}.{side}.{form}")


@contextlib.contextmanager
def _new_text(path: Path) -> Iterator[TextIO]:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


def _number(lines: list[list[str]], numbers: dict[str, int]) -> np.ndarray:
    """Raw ids of lines of pieces, each ending with END, (tokens,) uint32; a new piece gets the next id."""
    flat = []
    for line in lines:
        for piece in line:
            if piece not in numbers:
                numbers[piece] = len(numbers)
        flat += map(numbers.__getitem__, line)
        flat.append(END)
    return np.array(flat, dtype=np.uint32)
