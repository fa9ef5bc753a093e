"""Prepared character corpora: ids, counts, manifest, and invalid texts."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import corpus_params, file_params, file_sources, load_corpora, load_datasets
from rarepapers.data.characters.prepare import prepare
from rarepapers.data.prepared_corpus import load_manifest

SPLITS = {"train": 0.9, "valid": 0.1}
ENTRY = {"kind": "characters", "splits": SPLITS}
TEXT = "Büffel & Vögel\r\nsaßen, 𝔞ch!\n" * 20


@pytest.fixture
def prepared(tmp_path):
    (tmp_path / "text").write_bytes(TEXT.encode())
    prepare("tiny", ENTRY, tmp_path / "text", tmp_path / "out")
    return tmp_path / "out"


def test_tokens_decode_to_the_text(prepared):
    corpus = load_manifest(prepared / "manifest.json")
    ids = np.concatenate([corpus.tokens("train"), corpus.tokens("valid")])
    assert "".join(corpus.symbols[i] for i in ids) == TEXT
    assert list(corpus.symbols) == sorted(set(TEXT))
    assert corpus.types == len(set(TEXT))
    assert corpus.splits == {"train": int(0.9 * len(TEXT)), "valid": len(TEXT) - int(0.9 * len(TEXT))}
    assert isinstance(corpus.tokens("train"), np.memmap)
    train = TEXT[: int(0.9 * len(TEXT))]
    assert corpus.counts.tolist() == [train.count(symbol) for symbol in corpus.symbols]


def test_byte_order_marks_are_no_symbols(prepared, tmp_path):
    (tmp_path / "marked").write_bytes(("\ufeff" + TEXT.replace("\n", "\n\ufeff")).encode())
    prepare("tiny", ENTRY, tmp_path / "marked", tmp_path / "again")
    corpora = [load_manifest(folder / "manifest.json") for folder in (prepared, tmp_path / "again")]
    assert corpora[0].sha256 == corpora[1].sha256


@pytest.mark.parametrize(("types", "dtype"), [(65, "u1"), (128, "u1"), (129, "u2")])
def test_ids_of_both_languages_fit_the_stored_type(tmp_path, types, dtype):
    (tmp_path / "text").write_text("".join(map(chr, range(0x100, 0x100 + types))) * 3)
    prepare("tiny", ENTRY, tmp_path / "text", tmp_path)
    tokens = load_manifest(tmp_path / "manifest.json").tokens("train")
    assert tokens.dtype == np.dtype(dtype)
    assert int(tokens.max()) + types <= np.iinfo(tokens.dtype).max


def test_sha256_depends_only_on_tokens(tmp_path):
    digests = []
    for name, text in [("a", TEXT), ("b", TEXT), ("c", TEXT[:-1] + "!")]:
        (tmp_path / name).write_bytes(text.encode())
        prepare(name, ENTRY, tmp_path / name, tmp_path / f"{name}.out")
        digests.append(load_manifest(tmp_path / f"{name}.out" / "manifest.json").sha256)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        (None, ENTRY, "text does not exist; download or synthesise it first"),
        (b"", ENTRY, "text is empty"),
        (b"good so far \xff\xfe", ENTRY, r"text is not UTF-8: .* at byte 12"),
        (b"abcabcabc" * 10, ENTRY | {"symbols": 65}, "3 different characters, .* symbols: 65"),
        (b"abcabcabca", ENTRY, "only 10 characters, too few for the valid split"),
        (b"a", ENTRY, "only 1 characters, too few for the train split"),
    ],
)
def test_a_wrong_text_is_refused(tmp_path, text, entry, message):
    if text is not None:
        (tmp_path / "text").write_bytes(text)
    with pytest.raises(UserError, match=message) as raised:
        prepare("tiny", entry, tmp_path / "text", tmp_path / "out")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_corpus_that_is_too_short_is_refused(prepared):
    corpus = load_manifest(prepared / "manifest.json")
    with pytest.raises(UserError, match=r"valid split of corpus tiny has 56 tokens, but 65 are needed"):
        corpus.tokens("valid", at_least=65)


def test_files_that_do_not_match_the_manifest_are_refused(prepared):
    manifest = prepared / "manifest.json"
    whole = (prepared / "valid.npy").read_bytes()
    (prepared / "valid.npy").write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"valid.npy is missing or damaged; delete"):
        load_manifest(manifest)
    (prepared / "valid.npy").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserError, match=r"valid beside .* is damaged: its checksum does not match; delete"):
        load_manifest(manifest)
    (prepared / "valid.npy").unlink()
    with pytest.raises(UserError, match=r"valid.npy is missing"):
        load_manifest(manifest)


def test_an_invalid_manifest_is_refused(prepared, tmp_path):
    with pytest.raises(UserError, match=r"manifest.json does not exist; prepare the corpus first"):
        load_manifest(tmp_path / "nowhere" / "manifest.json")
    manifest = prepared / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"counts": content["counts"][1:]}))
    with pytest.raises(UserError, match=r"contradicts itself"):
        load_manifest(manifest)
    manifest.write_text("{}")
    with pytest.raises(UserError, match=r"is not the manifest of a prepared corpus"):
        load_manifest(manifest)


def test_commands_from_mirror_to_manifest(tmp_path):
    """Tiny Shakespeare as the paper splits and counts it; needs the real file."""
    if "RARETOK_MIRROR" not in os.environ:
        pytest.skip("RARETOK_MIRROR names no data mirror")
    root = Path(__file__).parents[3]
    text, folder = tmp_path / "input.txt", tmp_path / "out"
    file = (load_datasets(root / "config" / "datasets.yaml"), "tiny_shakespeare", "input.txt")
    wanted = ["--dataset", file[1], "--entry", file_params(*file), "--sources", file_sources(*file)]
    arguments = ["download", *wanted, "--output", text, "--data-mirror", os.environ["RARETOK_MIRROR"]]
    assert main([str(argument) for argument in arguments]) == 0
    entry = corpus_params(load_corpora(root / "config" / "corpora.yaml"), "tiny_shakespeare")
    arguments = ["prepare", "--corpus", "tiny_shakespeare", "--entry", entry, "--text", text, "--output", folder]
    assert main([str(argument) for argument in arguments]) == 0
    corpus = load_manifest(folder / "manifest.json")
    assert corpus.types == 65
    assert corpus.splits == {"train": 1_003_854, "valid": 111_540}
    assert corpus.counts[corpus.symbols.index(" ")] == 153_275
