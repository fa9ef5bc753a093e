"""Parallel reading of tokenised lines in two languages for word alignment."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from raretok.core.errors import UserError
from raretok.data.lines import numbered_lines

# Separator of the two sides in fast_align's input, and its replacement if it occurs as a token.
SEPARATOR, REPLACED = "|||", "¦¦¦"


def read_sentences(source: Path, target: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Tokens of both sides of each pair, in order; tokens are separated by single spaces.

    Raises UserError from `numbered_lines`, for a file that is shorter than the other, and for a line without tokens,
    which aligners cannot process.
    """
    lines = zip_longest(*(numbered_lines(path) for path in (source, target)), fillvalue=(0, None))
    for pairs, ((_, ours), (_, theirs)) in enumerate(lines):
        for path, other, line in ((source, target, ours), (target, source, theirs)):
            if line is None:
                raise UserError(f"{path} has {pairs:,} lines, fewer than {other}; prepare the corpus again")
            if not line.split(" ")[0]:
                raise UserError(f"{path}, line {pairs + 1:,}, begins with no token; take the pair out of the corpus")
        yield ours.split(" "), theirs.split(" ")


def write_joined(source: Path, target: Path, joined: Path) -> None:
    """Write pairs in fast_align's format, `a b ||| c d` per line.

    A token equal to the separator is replaced, so that the number of tokens stays the same.
    """
    with open(joined, "w", encoding="utf-8", newline="\n") as file:
        for sides in read_sentences(source, target):
            parts = (" ".join(REPLACED if token == SEPARATOR else token for token in tokens) for tokens in sides)
            file.write(f" {SEPARATOR} ".join(parts) + "\n")
