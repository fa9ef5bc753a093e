"""Held-out pairs: requested numbers, disjoint splits, determinism."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarepapers.core.errors import UserError
from rarepapers.data.pairs.held_out import DIGEST, DROPPED, TEST, TRAIN, VALID, assign, digest


def keys(numbers):
    return np.frombuffer(b"".join(digest(str(number), "x") for number in numbers), dtype=f"V{DIGEST}")


@given(st.lists(st.integers(0, 30), min_size=12, max_size=80), st.integers(0, 5))
def test_no_pair_is_in_two_splits(numbers, seed):
    numbers += range(100, 110)  # enough distinct pairs
    elsewhere = {digest("0", "x"), digest("1", "x")}
    part = assign(keys(numbers), {"valid": 3, "test": 4, "seed": seed}, elsewhere)
    of = {
        split: [number for number, own in zip(numbers, part, strict=True) if own == split]
        for split in (TRAIN, VALID, TEST)
    }
    assert (len(of[VALID]), len(of[TEST])) == (3, 4)
    assert len({*of[VALID], *of[TEST]}) == 7
    assert not {0, 1} & {number for split in of.values() for number in split}
    assert not {*of[VALID], *of[TEST]} & {*of[TRAIN]}
    # Pairs in no other split stay in training, as often as they occur.
    assert sorted(of[TRAIN]) == sorted(n for n in numbers if n not in {0, 1, *of[VALID], *of[TEST]})


def test_the_draw_depends_only_on_the_seed():
    numbers = keys(range(50))
    one = assign(numbers, {"valid": 5, "seed": 1}, set())
    assert np.array_equal(one, assign(numbers, {"valid": 5, "seed": 1}, set()))
    assert not np.array_equal(one, assign(numbers, {"valid": 5, "seed": 2}, set()))
    # Pairs are drawn by position, not by digest.
    assert np.array_equal(one, assign(keys(range(100, 150)), {"valid": 5, "seed": 1}, set()))


def test_every_nth_pair_is_held_out():
    part = assign(keys([0, 1, 2, 3, 4, 2, 6]), {"every": 3}, set())
    assert part.tolist() == [TRAIN, TRAIN, VALID, TRAIN, TRAIN, DROPPED, TRAIN]


def test_without_held_out_only_pairs_of_other_splits_are_removed():
    assert assign(keys([0, 1, 1]), None, {digest("0", "x")}).tolist() == [DROPPED, TRAIN, TRAIN]


def test_too_few_distinct_pairs_are_refused():
    with pytest.raises(UserError, match=r"held_out takes 3 pairs, but .* only 3 different ones"):
        assign(keys([0, 1, 2, 2, 2]), {"valid": 2, "test": 1, "seed": 1}, set())
