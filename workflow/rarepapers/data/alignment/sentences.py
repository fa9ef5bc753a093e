"""Parallel reading of tokenised lines in two languages for word alignment."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.data.lines import numbered_lines


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
                raise UserError(
                    f"{path}, line {pairs + 1:,}, begins with no token; take the pair out of both texts, or prepare "
                    "the corpus again"
                )
        yield ours.split(" "), theirs.split(" ")
