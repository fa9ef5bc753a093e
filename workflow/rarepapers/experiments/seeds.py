"""Seeds as numbers and as text."""

from collections.abc import Iterable
from itertools import groupby


def seed_list(seeds: int | list[int]) -> list[int]:
    """[1, ..., n] for a number n; a list unchanged."""
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)


def seed_ranges(seeds: Iterable[int]) -> str:
    """Seeds as text, three or more neighbours as a range: 1, 2, 4-6."""
    # Neighbours differ by the same number from their places.
    placed = groupby(enumerate(sorted(seeds)), key=lambda one: one[1] - one[0])
    rows = ([seed for _, seed in row] for _, row in placed)
    return ", ".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)
