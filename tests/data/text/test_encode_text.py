"""Language corpora: ids, counts, vocabulary and manifest, and invalid texts."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.text import encode_text as module
from rarepapers.data.text.encode_text import count_final, encode, order_by_frequency, read_lines

ROOT = Path(__file__).parents[3]
WORDS = {"kind": "language", "tokenizer": {"name": "words"}}
BPE = {"kind": "language", "tokenizer": {"name": "bpe", "types": 280}}
TRAIN = "\n = Cats = \n\n the cat sat on the mat , the <unk> cat . \n a hat ! \n" * 3
OTHER = " the dog sat , \n\n on the mat \n"


@pytest.fixture
def texts(tmp_path):
    for split, text in (("train", TRAIN), ("valid", OTHER), ("test", OTHER + "cat\n")):
        (tmp_path / split).write_text(text, encoding="utf-8")
    return {split: tmp_path / split for split in ("train", "valid", "test")}


def prepared(tmp_path, texts, entry=WORDS, name="tiny", **options):
    encode(name, entry, texts, tmp_path / name, **options)
    return load_manifest(tmp_path / name / "manifest.json")


def test_words_by_frequency_and_counts_of_a_plain_counter(tmp_path, texts):
    corpus = prepared(tmp_path, texts)
    lines = [line.split() for line in TRAIN.split("\n")[:-1]]
    expected = Counter(word for line in lines for word in [*line, "</s>"])
    counted = dict(zip(corpus.symbols, corpus.counts.tolist(), strict=True))
    assert {symbol: count for symbol, count in counted.items() if count} == dict(expected)
    assert corpus.symbols[:4] == ("<s>", "<pad>", "</s>", "<unk>")
    assert corpus.special == (0, 1, 2, 3)
    # Equal counts stand in the order of the words; the rest is filled up to a multiple of 8.
    ordered = sorted(set(expected) - {"</s>", "<unk>"}, key=lambda word: (-expected[word], word))
    assert list(corpus.symbols[4:]) == ordered + [f"<unused {k}>" for k in range(-(4 + len(ordered)) % 8)]
    assert corpus.types % 8 == 0
    words = [corpus.symbols[i] for i in corpus.tokens("train")]
    assert words == [word for line in lines for word in [*line, "</s>"]]
    assert np.array_equal(np.bincount(corpus.tokens("train"), minlength=corpus.types), corpus.counts)
    assert corpus.splits == {"train": len(words), "valid": 10, "test": 12}
    # Words that training lacks are unknown.
    words = [corpus.symbols[i] for i in corpus.tokens("valid")]
    assert words == ["the", "<unk>", "sat", ",", "</s>", "</s>", "on", "the", "mat", "</s>"]


@pytest.mark.parametrize("entry", [WORDS, BPE])
def test_byte_order_marks_are_in_no_type(tmp_path, texts, entry):
    plain = prepared(tmp_path, texts, entry)
    for path in texts.values():
        path.write_text("\ufeff" + path.read_text().replace("\n the", "\n\ufeffthe"), encoding="utf-8")
    assert prepared(tmp_path, texts, entry, "marked").symbols == plain.symbols


def test_words_beyond_the_vocabulary_are_unknown(tmp_path, texts):
    everything = prepared(tmp_path, texts)
    corpus = prepared(tmp_path, texts, {**WORDS, "tokenizer": {"name": "words", "types": 8}}, "few")
    assert corpus.symbols == everything.symbols[:8]
    kept = np.where(everything.tokens("train") < 8, everything.tokens("train"), corpus.symbols.index("<unk>"))
    assert np.array_equal(corpus.tokens("train"), kept)
    assert np.array_equal(np.bincount(kept, minlength=8), corpus.counts)


def test_trained_bpe_keeps_what_occurs_in_training(tmp_path, texts):
    corpus = prepared(tmp_path, texts, BPE)
    assert corpus.tokenizer["merges"] == "trained"
    assert corpus.tokenizer["number_of_merges"] == 280 - 4 - 256
    used = corpus.counts > 0
    unused = np.array([symbol.startswith("<unused ") for symbol in corpus.symbols])
    assert (used | unused)[4:].all()
    assert not (used & unused).any()
    assert (np.diff(corpus.counts[4:]) <= 0).all()
    # Lines are stripped, their blanks otherwise kept.
    text = "".join("\n" if i == 2 else corpus.symbols[i] for i in corpus.tokens("train"))
    assert text == "\n".join(line.strip() for line in TRAIN.split("\n"))
    # "dog" has letters that training lacks.
    assert 3 in corpus.tokens("valid").tolist()


def test_published_merges_need_their_file(tmp_path, texts):
    entry = {"kind": "language", "tokenizer": {"name": "bpe", "merges": {"dataset": "d", "file": "f"}}}
    with pytest.raises(UserError, match=r"tiny of config/corpora.yaml takes a published tokenizer"):
        prepared(tmp_path, texts, entry)
    (tmp_path / "merges").write_text("Ġ t\nh e\nĠt he\n", encoding="utf-8")
    corpus = prepared(tmp_path, texts, entry, published=tmp_path / "merges")
    assert corpus.tokenizer["merges"] == "published"
    assert " the" in corpus.symbols
    assert " t" not in corpus.symbols  # a piece that never stands alone in training


def test_manifest_names_the_data(tmp_path, texts):
    corpus = prepared(tmp_path, texts)
    assert corpus.tokenizer == {"name": "words", "merges": None, "library": None}
    assert isinstance(corpus.tokens("train"), np.memmap)
    assert corpus.tokens("train").dtype == np.uint16
    assert prepared(tmp_path, texts, name="again").sha256 == corpus.sha256
    texts["test"].write_text("the\n")
    assert prepared(tmp_path, texts, name="other").sha256 != corpus.sha256


def test_batches_of_any_size_give_the_same(tmp_path, texts, monkeypatch):
    for entry, name in ((WORDS, "w"), (BPE, "b")):
        whole = prepared(tmp_path, texts, entry, name)
        monkeypatch.setattr(module, "BATCH", 7)
        monkeypatch.setattr(module, "CHUNK", 3)
        parts = prepared(tmp_path, texts, entry, name + "2")
        monkeypatch.undo()
        assert parts.sha256 == whole.sha256
        assert np.array_equal(parts.tokens("train"), whole.tokens("train"))


def test_large_vocabularies_have_wider_ids(tmp_path, texts):
    texts["train"].write_text(" ".join(f"w{n}" for n in range(2**16)))
    corpus = prepared(tmp_path, texts)
    assert corpus.types == 2**16 + 8
    assert corpus.tokens("train").dtype == np.uint32
    assert corpus.symbols[corpus.tokens("train")[2**16 - 1]] == "w65535"


def test_merges_are_learnt_on_every_kth_line_of_a_large_text(tmp_path, texts, monkeypatch):
    texts["train"].write_text("ab ab ab\ncd cd cd\n" * 50)
    entry = {"kind": "language", "tokenizer": {"name": "bpe", "types": 264}}
    monkeypatch.setattr(module, "BATCH", 20)
    assert prepared(tmp_path, texts, entry).tokenizer["learnt_on_every"] == 1
    monkeypatch.setattr(module, "LEARNT_BYTES", 500)
    entry = {"kind": "language", "tokenizer": {"name": "bpe", "types": 262}}
    corpus = prepared(tmp_path, texts, entry, "sampled")
    assert corpus.tokenizer["learnt_on_every"] == 2
    # The first, third, fifth... line alone: what cd's merges would be, nothing of ab's second.
    assert "ab" in corpus.symbols
    assert "cd" not in corpus.symbols


def test_order_by_frequency():
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "rare", "never", "b", "a"]
    counts = np.array([0, 0, 9, 0, 1, 0, 5, 5])
    final_ids, vocabulary = order_by_frequency(symbols, counts)
    assert vocabulary == ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "rare", "<unused 0>"]
    assert final_ids.tolist() == [0, 1, 2, 3, 6, 3, 5, 4]
    assert count_final(final_ids, counts, 8).tolist() == [0, 0, 9, 0, 5, 5, 1, 0]


def test_lines_end_at_newlines_alone(tmp_path):
    (tmp_path / "text").write_bytes("a\r\n\nb\u2028c\x0bd \n last".encode())
    assert list(read_lines(tmp_path / "text")) == ["a", "", "b\u2028c\x0bd", "last"]


@pytest.mark.parametrize("entry", [WORDS, BPE])
@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("train", b"", "train is empty"),
        ("test", b"", "test is empty"),
        ("train", None, "train does not exist; download or synthesise it first"),
        ("valid", None, "valid does not exist"),
        ("valid", b"good\ngood\nb\xe9d\n", "valid is not UTF-8: .* in line 3"),
        ("train", TRAIN.encode() * 2000 + b"\xff", "train is not UTF-8: .* in line 30001"),
        ("train", b"good\n" + b"a" * 5_300_000, "train, line 2 is longer than 4 MB"),
    ],
)
def test_a_wrong_text_is_one_sentence(tmp_path, texts, entry, split, content, message):
    texts[split].unlink()
    if content is not None:
        texts[split].write_bytes(content)
    with pytest.raises(UserError, match=message):
        prepared(tmp_path, texts, entry)
    assert not list((tmp_path / "tiny").glob("*"))


def test_a_vocabulary_that_the_text_does_not_give(tmp_path, texts):
    entry = {"kind": "language", "tokenizer": {"name": "bpe", "types": 800}}
    with pytest.raises(UserError, match=r"corpus tiny gives only \d+ BPE types, but .* asks for 800; lower"):
        prepared(tmp_path, texts, entry)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("counts.npy", None, "counts.npy is missing"),
        ("counts.npy", lambda path: np.save(path, np.load(path)[::-1]), "counts.npy .* checksum does not match"),
        ("counts.npy", lambda path: np.save(path, np.load(path)[1:]), "itself"),
        ("counts.npy", lambda path: path.write_bytes(b"x"), "counts.npy is missing or damaged"),
        ("test.npy", None, "test.npy is missing"),
        ("test.npy", lambda path: path.write_bytes(path.read_bytes()[:-2]), "test.npy is missing or damaged"),
        ("vocabulary.json", None, "vocabulary.json is missing"),
        ("vocabulary.json", lambda path: path.write_text("[]"), "vocabulary.json .* checksum does not match"),
        (
            "manifest.json",
            lambda path: path.write_text(path.read_text().replace('"tokens": 10', '"tokens": 9')),
            "itself",
        ),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, texts, name, damage, message):
    folder = prepared(tmp_path, texts).folder
    if damage is None:
        (folder / name).unlink()
    else:
        damage(folder / name)
    with pytest.raises(UserError, match=message):
        load_manifest(folder / "manifest.json")


def test_the_command(tmp_path, texts, capsys):
    plays = ["--corpus", "plays", "--entry", '{"kind": "characters"}']
    news = ["--corpus", "news", "--entry", '{"kind": "language", "tokenizer": {"name": "words"}}']
    splits = [argument for split, path in texts.items() for argument in (f"--{split}", str(path))]
    rest = [*splits, "--published", "--output", str(tmp_path / "out")]
    assert main(["encode", *news, *rest]) == 0
    assert load_manifest(tmp_path / "out" / "manifest.json").name == "news"
    assert main(["encode", *plays, *rest]) == 2
    assert "has kind characters; use prepare" in capsys.readouterr().err
    text = ["--text", str(texts["train"]), "--output", str(tmp_path / "out2")]
    assert main(["prepare", *news, *text]) == 2
    assert "has kind language; use encode" in capsys.readouterr().err


def test_real_wikitext_2(tmp_path):
    """Word level: the counts that everybody reports; needs the real files."""
    if "RARETOK_MIRROR" not in os.environ:
        pytest.skip("RARETOK_MIRROR names no data mirror")
    mirror = Path(os.environ["RARETOK_MIRROR"]) / "wikitext-2" / "wikitext-2"
    corpus = prepared(tmp_path, {split: mirror / f"wiki.{split}.tokens" for split in ("train", "valid", "test")})
    assert corpus.splits == {"train": 2_088_628, "valid": 217_646, "test": 245_569}
    assert corpus.counts[2] == 36_718
    assert corpus.counts.sum() - corpus.counts[2] == 2_051_910
    # Types of the training split: words, </s> and the <unk> that stands in the text.
    assert (corpus.counts > 0).sum() == 33_278
    assert [(np.asarray(corpus.tokens(split)) == 3).sum() for split in corpus.splits] == [54_625, 11_718, 15_218]
