"""Which pairs of a parallel text are for training, validation and test, so that no pair is in two splits."""

import hashlib
from collections.abc import Mapping

import numpy as np

from raretok.errors import UserError

SPLITS = ("train", "valid", "test")
TRAIN, VALID, TEST, DROPPED = 0, 1, 2, 255
# A digest's bytes: of 10^8 pairs two are alike by accident with probability 10^-23.
DIGEST = 16


def digest(source: str, target: str) -> bytes:
    """What stands for a pair in memory, DIGEST bytes."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=DIGEST).digest()


def assign(
    pairs: np.ndarray, held_out: Mapping | None, elsewhere: set[bytes], deduplicate: bool
) -> tuple[np.ndarray, dict[str, int]]:
    """The split of each pair, (pairs,) uint8, and how many are DROPPED for which reason.

    pairs: digests, (pairs,) of dtype `S16`-like void. elsewhere: digests of splits that have files of their own.
    held_out: `valid` and `test` by number, drawn with `seed` among different pairs, or `every: n` (every n-th pair is
    for validation, as fairseq's preparations do). Where something is held out or `deduplicate` is set, no pair of
    another split is trained on; with `deduplicate` no pair twice.

    Raises UserError if the text has fewer different pairs than are to be held out.
    """
    part = np.zeros(len(pairs), dtype=np.uint8)
    if not held_out and not deduplicate:
        return part, {}
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
    reasons = {"in another split": int((part == DROPPED).sum())}
    # A held-out pair stands once, at its first place; its repetitions are trained on no more.
    again = np.ones(len(pairs), dtype=bool)
    again[first] = False
    held = again & np.isin(part, (VALID, TEST))
    reasons["in another split"] += int(held.sum())
    part[held] = DROPPED
    if deduplicate:
        repeated = again & (part == TRAIN)
        reasons["repeated"] = int(repeated.sum())
        part[repeated] = DROPPED
    return part, {reason: number for reason, number in reasons.items() if number}
