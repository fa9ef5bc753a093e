"""Synthetic character text: equal bytes everywhere, Zipfian, all symbols, predictable from context."""

import hashlib
import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.data.synthetic.synthetic_characters import SYMBOLS, characters

LENGTH = 60_000


@pytest.fixture(scope="module")
def text():
    return characters(1, LENGTH)


def test_bytes_are_pinned(text):
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == "54a6b830a005406b8d58c8827c7594729bbaf12d1a8433c1339b71547dfb51ab"


def test_the_seed_determines_the_text():
    assert characters(1, 20_000) == characters(1, LENGTH)[:20_000]
    assert characters(1, 20_000) != characters(2, 20_000)


@pytest.mark.parametrize("seed", range(1, 21))
def test_all_65_symbols_are_in_the_training_split(seed):
    assert len(SYMBOLS) == 65
    text = characters(seed, 20_000)
    assert len(text) == 20_000
    assert set(text[: int(0.9 * len(text))]) == set(text) == set(SYMBOLS)


def test_characters_are_zipfian(text):
    counts = np.array(sorted(Counter(text).values(), reverse=True))
    slope = np.polyfit(np.log(np.arange(1, 66)), np.log(counts), 1)[0]
    # Steeper than 1/rank at the end, like letters, and far from a uniform distribution's 0.
    assert -2.5 < slope < -0.9
    assert counts[0] > 0.1 * LENGTH
    assert counts[-3:].max() < 0.0005 * LENGTH


def test_context_predicts_the_next_character(text):
    """Held-out cross-entropy (nats) of a smoothed trigram table is at least one nat below the unigram's."""
    train, valid = text[:54_000], text[54_000:]
    unigram, context, triple = Counter(train), Counter(pairwise(train)), Counter()
    triple.update(zip(train, train[1:], train[2:], strict=False))
    losses = {"unigram": 0.0, "trigram": 0.0}
    for first, second, third in zip(valid, valid[1:], valid[2:], strict=False):
        share = unigram[third] / len(train)
        losses["unigram"] -= np.log(share)
        losses["trigram"] -= np.log((triple[first, second, third] + share) / (context[first, second] + 1))
    assert losses["trigram"] < losses["unigram"] - 1.0 * (len(valid) - 2)


def test_too_short_a_text_is_refused():
    with pytest.raises(UserError, match=r"2000 characters is too short .* raise synthetic.length"):
        characters(1, 2000)


def test_the_command_writes_the_text(tmp_path, text):
    made = {"kind": "characters", "synthetic": {"name": "characters", "seed": 1, "length": 60000}}
    options = ["synthesise", "--output", str(tmp_path / "a.txt"), "--entry"]
    assert main([*options, json.dumps(made)]) == 0
    assert (tmp_path / "a.txt").read_bytes() == text.encode()
    assert main([*options, json.dumps({"kind": "characters", "dataset": "d", "file": "f"})]) == 2
