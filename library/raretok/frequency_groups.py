"""Frequency groups of types: their bounds, and their shares of the tokens.

Ids of a language corpus are sorted by decreasing training frequency, so three groups are given by two bounds: ids below
the first are frequent, ids from the second on are rare.
"""

from collections.abc import Mapping

import numpy as np

KEYS = ("shares", "bounds", "frequency", "index", "masses")


def bounds(rule: Mapping, counts: np.ndarray) -> tuple[int, int]:
    """First id of the second and of the third group.

    counts: training counts of all types in the order of ids, (types,). rule has one of
        shares: the groups' shares of types, such as [0.3, 0.5, 0.2] (agg, section 3; bounds are rounded);
        bounds: the two ids themselves (the evaluation code of agg: [13000, 36000]);
        frequency and index: the first group has the types of at least this relative training frequency, the third one
          the ids from `index` on (agps, section 2 and Algorithm 1);
        masses: the groups' shares of training tokens; the smallest bounds at which the first group, and the first two
          groups together, reach theirs.

    Raises ValueError if a group would be empty or begin beyond the vocabulary.
    """
    counts = np.asarray(counts)
    types, total = len(counts), int(counts.sum())
    if "shares" in rule:
        first, second, _ = rule["shares"]
        second_begins, third_begins = round(first * types), round((first + second) * types)
    elif "bounds" in rule:
        second_begins, third_begins = rule["bounds"]
    elif "frequency" in rule:
        often = np.flatnonzero(counts >= rule["frequency"] * total)
        second_begins, third_begins = int(often[-1]) + 1 if len(often) else 0, rule["index"]
    else:
        reached = np.cumsum(counts, dtype=np.int64)
        # The factor allows for rounding in sums of shares such as 0.858 + 0.094.
        wanted = np.cumsum(rule["masses"])[:2] * total * (1 - 1e-9)
        second_begins, third_begins = (int(place) + 1 for place in np.searchsorted(reached, wanted))
    if not 0 < second_begins < third_begins < types:
        shown = ", ".join(f"{key} {value}" for key, value in rule.items() if key in KEYS)
        raise ValueError(
            f"the groups {shown} begin at ids 0, {second_begins:,} and {third_begins:,} of {types:,} types, "
            "so that one of them is empty; choose other bounds in the evaluation's `groups` or a larger vocabulary"
        )
    return second_begins, third_begins


def masses(limits: tuple[int, int], counts: np.ndarray) -> np.ndarray:
    """The groups' shares of the counted tokens, (3,) float64. counts: (types,), of any split."""
    sums = np.add.reduceat(np.asarray(counts, dtype=np.int64), [0, *limits])
    return sums / sums.sum()
