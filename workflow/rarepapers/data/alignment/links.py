"""Word links in Pharaoh's format: a line per pair, `0-0 1-2` links source token 0 with target token 0, and 1 with 2."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path
from rarepapers.data.lines import numbered_lines

# Number of lines read at a time.
LINES = 50_000


def write_links(path: Path, links: Iterable[list[tuple[int, int]]]) -> tuple[int, int]:
    """Write the links of all pairs to `path`, atomically; returns the numbers of pairs and links."""
    pairs = number = 0
    with atomic_path(path) as temporary, open(temporary, "w", encoding="ascii", newline="\n") as file:
        for found in links:
            file.write(" ".join(f"{i}-{j}" for i, j in found) + "\n")
            pairs, number = pairs + 1, number + len(found)
    return pairs, number


def read_links(path: Path) -> Iterator[list[tuple[int, int]]]:
    """The links of each pair; raises UserError for an invalid line."""
    for _, numbers, places in _chunks(path):
        for found in np.split(places, np.cumsum(numbers)[:-1]):
            yield [tuple(link) for link in found.tolist()]


def link_arrays(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Links of many pairs at a time: each link's pair (L, counted through the file) and positions (L x 2), int64."""
    for first, numbers, places in _chunks(path):
        yield first + np.repeat(np.arange(len(numbers)), numbers), places


def count_lines(path: Path) -> int:
    """Number of pairs in the file."""
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def _chunks(path: Path) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """First pair, links per pair (n,) and their positions (L x 2) for `LINES` pairs at a time."""
    first = 0
    try:
        texts = (line for _, line in numbered_lines(path))
        while lines := list(islice(texts, LINES)):
            numbers = np.array([line.count("-") for line in lines], dtype=np.int64)
            places = np.array(" ".join(lines).replace("-", " ").split(), dtype=np.int64)
            if len(places) != 2 * numbers.sum():
                raise ValueError("a link is not two numbers")
            yield first, numbers, places.reshape(-1, 2)
            first += len(lines)
    except ValueError as error:
        raise UserError(
            f"{path}, lines {first + 1:,} to {first + LINES:,}, holds something other than links ({error}); "
            "delete it and align the corpus again"
        ) from None
