"""Link counts of pairs of types from word alignment: the sparse pseudo-gold vectors of agps, section 4.1.2.

a(i) counts the links of type i with every type of the joint vocabulary. Links from source to target and from target to
source are added (deviations, G10), so the matrix is symmetric.
"""

from collections.abc import Iterable

import numpy as np

from rarepapers.core.errors import UserError
from raretok.metrics.co_occurrences import CoOccurrences

# Number of pairs that are buffered before they are merged into the counts.
PENDING = 2**23


def count(links: Iterable[tuple[np.ndarray, np.ndarray]], pairs, types: int) -> CoOccurrences:
    """Count the links of a corpus.

    links: from `alignment.links.link_arrays`. pairs: ids and offsets of the same lines (`prepared_pairs.Pairs`), whose
    lines end in a token that is never linked. types: N. Raises UserError if a link points outside its line: the links
    then belong to another text.
    """
    known, waiting = (np.empty(0, np.int64), np.empty(0, np.int64)), []
    for lines, places in links:
        if len(lines) and lines.max() >= len(pairs):
            raise UserError(f"the links are of more lines than the corpus has, {len(pairs):,}; align the corpus again")
        sides = []
        for side, column in ((pairs.source, 0), (pairs.target, 1)):
            offsets = np.asarray(pairs.source_offsets if column == 0 else pairs.target_offsets)
            here = offsets[lines] + places[:, column]
            if (here >= offsets[lines + 1] - 1).any():
                line = lines[np.flatnonzero(here >= offsets[lines + 1] - 1)[0]] + 1
                raise UserError(
                    f"line {line:,} of the links points beyond its sentence: they are links of another text; "
                    "align the corpus again"
                )
            sides.append(np.asarray(side[here], dtype=np.int64))
        # A link of a type with itself also counts in both directions.
        waiting.append(np.unique(np.minimum(*sides) * types + np.maximum(*sides), return_counts=True))
        # Memory grows with the number of distinct pairs.
        if sum(len(keys) for keys, _ in waiting) > max(PENDING, len(known[0])):
            known, waiting = _merged([known, *waiting]), []
    keys, counts = _merged([known, *waiting])
    first, second = keys // types, keys % types
    return CoOccurrences(types, first, second, counts * np.where(first == second, 2, 1))


def _merged(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys and their counts, of several parts that are each so."""
    keys, places = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    # Counts below 2^53 are exact in float64.
    counts = np.bincount(places, weights=np.concatenate([counts for _, counts in parts]), minlength=len(keys))
    return keys, counts.astype(np.int64)
