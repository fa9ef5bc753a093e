"""Word pairs with scores, in every published format."""

import os
from pathlib import Path

import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.text.similarity_pairs import read_pairs

PAIRS = [("sun", "sunlight", 50.0), ("new york", "tiger", 6.77)]
REAL = {
    "MEN/MEN_dataset_natural_form_full": 3000,
    "wordsim353/combined.tab": 353,
    "eval-word-vectors/EN-RG-65.txt": 65,
    "rw/rw.txt": 2034,
}


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        ("sun sunlight 50.000000\n", PAIRS[:1]),  # MEN
        ("Word 1\tWord 2\tHuman (mean)\r\nsun\tsunlight\t50\r\nnew york\ttiger\t6.77\r\n", PAIRS),  # WS353
        ("sun \t sunlight\t50\n", PAIRS[:1]),  # RG65
        ("\ufeffsun sunlight 50\n", PAIRS[:1]),  # a byte order mark
        ("sun\tsunlight\t50\t1\t2\t3\nnew york\ttiger\t6.77\t9", PAIRS),  # RW
    ],
)
def test_every_form_is_read_alike(tmp_path, content, pairs):
    (tmp_path / "pairs").write_bytes(content.encode())
    assert read_pairs(tmp_path / "pairs") == pairs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "pairs does not exist; download"),
        (b"", "pairs is empty"),
        (b"one\ttwo\tscore\n", "pairs has no pairs"),
        (b"a b 1\na b\n", "line 2 is no pair of words with a score: 'a b'"),
        (b"a b 1\na b c\n", "line 2 is no pair"),
        # A first line that is no header either.
        (b"a b\na b 1\n", "pairs, line 1 is no pair of words with a score: 'a b'"),
        (b"a b 7,5\nc d 1\n", "line 1 is no pair of words with a score: 'a b 7,5'"),
        (b"a b 1\n\xff b 2\n", "pairs is not UTF-8"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, content, message):
    if content is not None:
        (tmp_path / "pairs").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_pairs(tmp_path / "pairs")


@pytest.mark.parametrize("name", REAL)
def test_the_real_sets(name):
    if "RARETOK_MIRROR" not in os.environ:
        pytest.skip("RARETOK_MIRROR names no data mirror")
    pairs = read_pairs(Path(os.environ["RARETOK_MIRROR"]) / "wordsim" / name)
    assert len(pairs) == REAL[name]
    assert all(one and other for one, other, _ in pairs)
