"""Unigrams of other text: sums over shards and batches equal a plain counter."""

import gzip
import json
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs import count_unigrams as module
from rarepapers.data.pairs.count_unigrams import count_shard
from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.synthetic.synthetic_pairs import write_documents, write_pairs


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_pairs(folder, 1, {"train": 300, "valid": 9, "test": 9})
    files = {s: [PairFiles(folder / f"{s}.source.txt", folder / f"{s}.target.txt")] for s in ("train", "valid", "test")}
    entry = {
        "kind": "translation",
        "languages": {"source": "xa", "target": "xb"},
        "preparation": {"normalise": "none", "tokenise": "none"},
        "tokenizer": {"name": "sentencepiece", "types": 250},
    }
    encode_pairs("tiny", entry, files, folder / "tiny")
    return load_manifest(folder / "tiny/manifest.json")


def test_the_commands_equal_a_plain_counter(corpus, tmp_path):
    outputs, expected = [], Counter()
    for number, documents in enumerate((30, 50)):
        shard, output = tmp_path / f"{number}.json.gz", tmp_path / f"{number}.npy"
        write_documents(shard, number, {"seed": 1}, documents)
        manifest = str(corpus.folder / "manifest.json")
        assert main(["count-unigrams", "--tokenizer-of", manifest, "--shard", str(shard), "--output", str(output)]) == 0
        outputs.append(str(output))
        for line in gzip.decompress(shard.read_bytes()).decode().splitlines():
            for part in json.loads(line)["text"].split("\n"):
                expected.update([*codec_of(corpus).ids(part), 2])
    assert main(["merge-counts", "--counts", *outputs, "--output", str(tmp_path / "sum.npy")]) == 0
    counts = np.load(tmp_path / "sum.npy")
    assert counts.dtype == np.int64
    assert counts.tolist() == [expected[number] for number in range(corpus.types)]


def test_counts_do_not_depend_on_batches_or_format(corpus, tmp_path, monkeypatch):
    codec = codec_of(corpus)
    (tmp_path / "a.json").write_text('{"text": "The dog.\\n \\nSome cats."}\n{"text": ""}\n{"text": "The dog."}\n')
    (tmp_path / "a.txt").write_text("The dog.\n\nSome cats.\nThe dog.\n")
    whole = count_shard(codec, corpus.types, tmp_path / "a.json")
    assert whole[2] == 3
    # A byte order mark and a line without pieces count nothing.
    marked = '\ufeff{"text": "\\ufeffThe dog.\\n\\u200b\\nSome cats."}\n{"text": "The dog."}\n'
    (tmp_path / "marked.json").write_text(marked, encoding="utf-8")
    assert np.array_equal(whole, count_shard(codec, corpus.types, tmp_path / "marked.json"))
    assert np.array_equal(whole, count_shard(codec, corpus.types, tmp_path / "a.txt"))
    monkeypatch.setattr(module, "BATCH", 1)
    assert np.array_equal(whole, count_shard(codec, corpus.types, tmp_path / "a.json"))


def test_every_line_counts_as_a_target_sentence_with_its_end(tmp_path):
    class Codec:
        def encode(self, lines, side):
            assert side == "target"
            return [[4 + len(word) for word in line.split()] for line in lines]

    (tmp_path / "a.json").write_text('{"text": "a bb\\n\\ncc\u2028d\\r\\ne"}\n')
    # Four lines, one of them blank: only line feeds end the lines of a document.
    assert count_shard(Codec(), 8, tmp_path / "a.json").tolist() == [0, 0, 3, 0, 0, 3, 2, 0]


def test_memory_does_not_grow_with_the_shard(corpus, tmp_path, monkeypatch):
    codec = codec_of(corpus)
    monkeypatch.setattr(module, "BATCH", 2**12)
    peaks = []
    # Since 3.12 gzip reads 128 KiB at a time, which shorter shards do not fill.
    for number in (4000, 8000):
        write_documents(tmp_path / "a.json.gz", 1, {"seed": 1}, number)
        tracemalloc.start()
        count_shard(codec, corpus.types, tmp_path / "a.json.gz")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_invalid_shards_are_refused(corpus, tmp_path):
    for name, content, message in [
        ("a.json", '{"text": "x"}\n[1]\n', r"a.json, line 2 is no JSON object with `text`"),
        ("b.json", '{"texts": "x"}\n', r"b.json, line 1 is no JSON"),
        ("c.json", "\n", r"c.json, line 1 is no JSON"),
        ("d.txt", " \n", r"d.txt has no text"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(UserError, match=message):
            count_shard(codec_of(corpus), corpus.types, tmp_path / name)
