"""Byte-level BPE and words: published and learnt merges, and decoding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import END, UNKNOWN
from rarepapers.data.codec import codec_of
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.text.encode_text import encode
from rarepapers.data.tokenizers.bpe import Bpe, byte_characters, text_of, train_merges
from rarepapers.data.tokenizers.words import Words

LINES = ["the cat sat on the mat .", "", "Größe of the cats — 12 @-@ 13 , 𝔞 !", "the hats  that fit", "cat's 日本"] * 5


def test_byte_characters_equal_gpt2s():
    characters = byte_characters()
    assert sorted(characters.values()) == list(range(256))
    # GPT-2's vocabulary begins with "!" as id 0, and a blank is Ġ.
    assert list(characters)[:2] == ["!", '"']
    assert (characters["Ġ"], characters["Ċ"], characters["¡"]) == (ord(" "), ord("\n"), 0xA1)


def test_merges_are_applied_in_the_order_of_their_file(tmp_path):
    (tmp_path / "vocab.bpe").write_text("#version: 0.2\nt h\nth e\nĠ the\na t\nh at\n", encoding="utf-8")
    bpe = Bpe.read(tmp_path / "vocab.bpe")
    assert bpe.described["merges"] == "published"
    assert bpe.described["library"].startswith("tokenizers ")
    symbols = bpe.symbols
    assert len(symbols) == 4 + 256 + 5
    ids = bpe.encode(["the the hat that", ""])
    # "hat": a t is merged before h at; "that": t h comes first, then a t, and th at is no merge.
    assert [symbols[raw] for raw in ids] == ["the", " the", " ", "hat", " ", "th", "at", "</s>", "</s>"]
    # Raw ids except the special ones are GPT-2's: bytes first, then merges.
    assert ids[0] - 4 == 256 + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#version: 0.2\nt h\nth e x\n", "line 3 is no merge of two known pieces: 'th e x'"),
        (b"t h\nthe n\n", "line 2 is no merge"),
        (b"\xff\xfe", "not UTF-8"),
        (None, "does not exist; download"),
    ],
)
def test_a_wrong_merges_file_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "merges").write_bytes(content)
    with pytest.raises(UserError, match=message):
        Bpe.read(tmp_path / "merges")


def test_learnt_merges_are_the_most_frequent_pairs():
    assert train_merges([["aab aab", "aab"]], 257) == [("a", "a")]
    assert train_merges([["aab aab", "aab"]], 258) == [("a", "a"), ("aa", "b")]
    # Never across words, and no more than the text has: aab once with and once without a blank before it.
    assert train_merges([["aab aab", "aab"]], 1000) == [("a", "a"), ("aa", "b"), ("Ġ", "aab")]


def test_learning_does_not_depend_on_threads_or_hash_seeds(tmp_path):
    script = (
        "import hashlib, sys; from rarepapers.data.tokenizers.bpe import train_merges\n"
        "words = [f'{(n * n) % 701:x}{n % 17:x}q{n % 5}' for n in range(3000)]\n"
        "print(hashlib.sha256(repr(train_merges([[' '.join(words[n:n + 9]) for n in range(0, 3000, 9)]], 500))"
        ".encode()).hexdigest())"
    )
    package = str(Path(__file__).parents[3] / "workflow")
    found = set()
    for threads, seed in (("1", "1"), ("2", "2")):
        environment = os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed, "PYTHONPATH": package}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_an_error_of_the_text_reader_is_raised():
    def lines():
        yield ["good"]
        raise UserError("the text is bad")

    with pytest.raises(UserError, match="the text is bad"):
        train_merges(lines(), 300)


def test_words_get_ids_in_order_of_occurrence_and_specials_are_unknown():
    words = Words()
    assert words.encode(["b a  b", "", "<unk> </s> c"]) == [4, 5, 4, END, END, 3, 3, 6, END]
    assert words.encode(["a d"]) == [5, 7, END]
    assert words.symbols == ["<s>", "<pad>", "</s>", "<unk>", "b", "a", "c", "d"]


def test_bytes_that_are_no_utf8_are_shown_as_bytes():
    assert text_of("Ġcat") == " cat"
    assert text_of("â") == "\\xe2"
    assert len(set(map(text_of, byte_characters()))) == 256


@pytest.mark.parametrize("tokenizer", [{"name": "bpe", "types": 296}, {"name": "words"}])
def test_codec_gives_the_stored_ids_and_the_text_back(tmp_path, tokenizer):
    (tmp_path / "text").write_text("\n".join(LINES), encoding="utf-8")
    texts = dict.fromkeys(("train", "valid", "test"), tmp_path / "text")
    encode("tiny", {"kind": "language", "tokenizer": tokenizer}, texts, tmp_path / "out")
    corpus = load_manifest(tmp_path / "out" / "manifest.json")
    codec = codec_of(corpus)
    stored = []
    for line in LINES:
        ids = codec.ids(line)
        assert codec.text(ids) == (line if tokenizer["name"] == "bpe" else " ".join(line.split()))
        stored += [*ids, END]
    assert corpus.tokens("train").tolist() == stored
    assert codec.ids("Ж") == [UNKNOWN] * (2 if tokenizer["name"] == "bpe" else 1)
    assert "<unk>" in codec.text([UNKNOWN])
