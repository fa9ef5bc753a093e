"""Which pairs of a parallel text are for training, validation and test, so that no pair is in two splits."""

import hashlib
from collections.abc import Mapping

import numpy as np

from raretok.core.errors import UserError

# Places in catalogue.SPLITS.
TRAIN, VALID, TEST, DROPPED = 0, 1, 2, 255
# A digest's bytes: of 10^8 pairs two are alike by accident with probability 10^-23.
DIGEST = 16


def digest(source: str, target: str) -> bytes:
    """What stands for a pair in memory, DIGEST bytes."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=DIGEST).digest()


def assign(pairs: np.ndarray, held_out: Mapping | None, elsewhere: set[bytes]) -> np.ndarray:
    """The split of each pair of a training text, (pairs,) uint8; DROPPED where it stands in another split.

    pairs: digests, (pairs,) void. elsewhere: digests of the splits that have files of their own. held_out: `valid` and
    `test` by number, drawn with `seed` among different pairs, or `every: n` (every n-th pair is for validation, as
    fairseq's preparations do). A held-out pair stands in its split once; repetitions are dropped.

    Raises UserError if the text has fewer different pairs than are to be held out.
    """
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    known = np.array([digest.tobytes() in elsewhere for digest in pairs[first]])
    # What different pairs become; what stands elsewhere is not held out either.
    split = np.where(known, DROPPED, TRAIN).astype(np.uint8)
    if held_out and "every" in held_out:
        chosen = np.arange(held_out["every"] - 1, len(pairs), held_out["every"])
        split[np.setdiff1d(place[chosen], np.flatnonzero(known))] = VALID
    elif held_out:
        wanted = [held_out.get("valid", 0), held_out.get("test", 0)]
        free = np.flatnonzero(~known)
        # In the order of the text: np.unique's own is that of digests, which nobody can follow.
        free = free[np.argsort(first[free], kind="stable")]
        if sum(wanted) >= len(free):
            raise UserError(
                f"held_out takes {sum(wanted):,} pairs, but the training text has only {len(free):,} different ones; "
                "hold fewer out in config/corpora.yaml"
            )
        drawn = free[np.random.default_rng(held_out["seed"]).permutation(len(free))[: sum(wanted)]]
        split[drawn[: wanted[0]]], split[drawn[wanted[0] :]] = VALID, TEST
    part = split[place]
    again = np.ones(len(pairs), dtype=bool)
    again[first] = False
    part[again & np.isin(part, (VALID, TEST))] = DROPPED
    return part
