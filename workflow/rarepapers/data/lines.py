"""Lines of text files, one at a time or in batches; errors name file and line."""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rarepapers.core.errors import UserError

DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
# A line is in memory as a whole.
LONGEST_LINE = 2**24
# At the start of a file, and of a line where files were joined. Inside a line, as in WikiText-2, U+FEFF is a blank
# without width.
BYTE_ORDER_MARKS = re.compile("^\ufeff+", re.MULTILINE)


def without_marks(text: str) -> str:
    """The text without byte order marks."""
    return BYTE_ORDER_MARKS.sub("", text)


def numbered_lines(path: Path, longest: int = LONGEST_LINE, joined_marks: bool = False) -> Iterator[tuple[int, str]]:
    """Lines of a file (`.gz`: compressed), numbered from 1, without line ends; only line feeds end a line.

    Byte order marks are removed; with joined_marks only that of the first line.

    Raises UserError if it is missing, empty, damaged or not UTF-8, or has a line longer than `longest` bytes.
    """
    number = 0
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as stream:
            while line := stream.readline(longest):
                number += 1
                if len(line) == longest and not line.endswith(b"\n"):
                    raise UserError(f"{path}, line {number} is longer than {longest // 2**20} MB; break it into lines")
                text = line.decode("utf-8").rstrip("\r\n")
                yield number, text if joined_marks and number > 1 else without_marks(text)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; download or synthesise it first") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error.reason} in line {number}; convert or replace it") from error
    except DAMAGED as error:
        raise UserError(f"{path} is damaged or cut short after line {number}; get it again") from error
    if not number:
        raise UserError(f"{path} is empty; get it again")


def batches_of(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Successive lines in lists of at least `size` characters; the last list may have fewer."""
    batch, characters = [], 0
    for line in lines:
        batch.append(line)
        characters += len(line) + 1
        if characters >= size:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
