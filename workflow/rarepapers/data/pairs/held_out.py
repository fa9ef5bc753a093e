"""Assignment of the pairs of a parallel text to disjoint training, validation and test splits."""

import hashlib
from collections.abc import Mapping

import numpy as np

from rarepapers.core.errors import UserError

# Indices in catalogue.SPLITS.
TRAIN, VALID, TEST, DROPPED = 0, 1, 2, 255
# Bytes of a digest: among 10^8 pairs a collision has probability 10^-23.
DIGEST = 16


def digest(source: str, target: str) -> bytes:
    """The digest of a pair, DIGEST bytes."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=DIGEST).digest()


def assign(pairs: np.ndarray, held_out: Mapping | None, elsewhere: set[bytes]) -> np.ndarray:
    """The split of each pair of a training text, (pairs,) uint8; DROPPED for pairs that another split has.

    pairs: digests, (pairs,) void. elsewhere: digests of the splits with their own files. held_out: numbers `valid` and
    `test` of distinct pairs, drawn with `seed`, or `every: n` (every n-th pair is for validation, as in fairseq's
    preparations). A held-out pair occurs in its split once; repetitions are dropped.

    Raises UserError if the text has fewer distinct pairs than should be held out.
    """
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    known = np.array([digest.tobytes() in elsewhere for digest in pairs[first]])
    # Split of each distinct pair; pairs of other splits are not held out either.
    split = np.where(known, DROPPED, TRAIN).astype(np.uint8)
    if held_out and "every" in held_out:
        chosen = np.arange(held_out["every"] - 1, len(pairs), held_out["every"])
        split[np.setdiff1d(place[chosen], np.flatnonzero(known))] = VALID
    elif held_out:
        wanted = [held_out.get("valid", 0), held_out.get("test", 0)]
        free = np.flatnonzero(~known)
        # In text order; np.unique sorts by digest, which is arbitrary.
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
