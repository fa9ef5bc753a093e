"""Parallel reading of tokenised lines in two languages for word alignment."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from raretok.core.errors import UserError

# Separator of the two sides in fast_align's input, and its replacement if it occurs as a token.
SEPARATOR, REPLACED = "|||", "¦¦¦"


def read_sentences(source: Path, target: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Tokens of both sides of each pair, in order; tokens are separated by single spaces.

    Raises UserError for a file that is missing, not UTF-8 or shorter than the other, and for a line without tokens,
    which aligners cannot process.
    """
    for path in (source, target):
        if not path.is_file():
            raise UserError(f"{path} does not exist; prepare the corpus first")
    lines = zip_longest(_lines(source), _lines(target))
    for number, sides in enumerate(lines, 1):
        for path, other, line in ((source, target, sides[0]), (target, source, sides[1])):
            if line is None:
                raise UserError(f"{path} has {number - 1:,} lines, fewer than {other}; prepare the corpus again")
            if not line.split(" ")[0]:
                raise UserError(f"{path}, line {number:,}, begins with no token; take the pair out of the corpus")
        yield sides[0].split(" "), sides[1].split(" ")


def write_joined(source: Path, target: Path, joined: Path) -> int:
    """Write pairs in fast_align's format, `a b ||| c d` per line; returns their number.

    A token equal to the separator is replaced, so that the number of tokens stays the same.
    """
    pairs = 0
    with open(joined, "w", encoding="utf-8", newline="\n") as file:
        for sides in read_sentences(source, target):
            parts = (" ".join(REPLACED if token == SEPARATOR else token for token in tokens) for tokens in sides)
            file.write(f" {SEPARATOR} ".join(parts) + "\n")
            pairs += 1
    if not pairs:
        raise UserError(f"{source} is empty; there is nothing to align")
    return pairs


def _lines(path: Path) -> Iterator[str]:
    """Lines without their ends; only a line feed ends a line. Raises UserError with the line that is not UTF-8."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8").rstrip("\n")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}, line {number:,}, is not UTF-8: {error.reason}; prepare it again") from None
