"""Prepared pairs: consistent ids, counts, texts and pieces, held-out splits, domains, reversal."""

import json

import numpy as np
import pytest

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.core.special_types import END
from rarepapers.data.alignment.align_command import align
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs import encode_pairs as module
from rarepapers.data.pairs import pair_folder
from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.pairs.reverse_pairs import reverse_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.synthetic.synthetic_pairs import write_pairs
from rarepapers.data.tokenizers.bpe_joint import BpeJoint

SPLITS = ("train", "valid", "test", "domain.second")
PIECES = {"name": "sentencepiece", "types": 300}
MERGES = {"name": "bpe_joint", "merges": 150}
PLAIN = {"normalise": "none", "tokenise": "none"}
MOSES = {"normalise": "moses", "tokenise": "moses", "aggressive": True}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    write_pairs(folder, 3, {"train": 300, "valid": 20, "test": 30, "domain.second": 25})
    return {split: [PairFiles(folder / f"{split}.source.txt", folder / f"{split}.target.txt")] for split in SPLITS}


def entry(tokenizer=PIECES, preparation=PLAIN, **further):
    languages = {"source": "xa", "target": "en"}
    return {"kind": "translation", "languages": languages, "preparation": preparation, "tokenizer": tokenizer} | further


def prepared(tmp_path, texts, corpus, name="tiny", model=None):
    encode_pairs(name, corpus, texts, tmp_path / name, model)
    return load_manifest(tmp_path / name / "manifest.json")


def manifest_of(corpus):
    return json.loads((corpus.folder / "manifest.json").read_text())


def pieces_of(corpus, split, side):
    return (corpus.folder / f"{split}.{side}.tok.txt").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("corpus", [entry(), entry(MERGES, MOSES | {"measure": "pieces", "max_ratio": 2})])
def test_ids_texts_pieces_and_counts_fit_together(tmp_path, texts, corpus):
    corpus = prepared(tmp_path, texts, corpus)
    codec = codec_of(corpus)
    assert corpus.special == (0, 1, 2, 3)
    assert corpus.types % 8 == 0
    assert corpus.languages == {"source": "xa", "target": "en"}
    train = load_pairs(corpus, "train")
    for side, counts in (("target", corpus.counts), ("source", corpus.source_counts)):
        assert np.array_equal(np.bincount(getattr(train, side), minlength=corpus.types), counts)
    # Decreasing target-side counts, ties by text; then types of the source side only, then unused ones.
    order = [(-count, symbol) for count, symbol in zip(corpus.counts[4:], corpus.symbols[4:], strict=True)]
    used = [place for place, (_, symbol) in enumerate(order) if not symbol.startswith("<unused ")]
    assert used == list(range(len(used)))
    assert order[: len(used)] == sorted(order[: len(used)])
    assert ((corpus.counts + corpus.source_counts)[4:] > 0).sum() == len(used)
    for split in SPLITS:
        pairs = load_pairs(corpus, split)
        assert len(pairs) == manifest_of(corpus)["splits"][split]["pairs"]
        assert corpus.splits[split] == len(pairs.target) == len(corpus.tokens(split))
        assert isinstance(pairs.source, np.memmap)
        for side in ("source", "target"):
            lines = np.split(getattr(pairs, side), getattr(pairs, f"{side}_offsets")[1:-1])
            assert len(lines) == len(pairs)
            for ids, text, shown in zip(lines, pairs.texts(side), pieces_of(corpus, split, side), strict=True):
                assert ids[-1] == END
                assert END not in ids[:-1]
                assert shown == " ".join(corpus.symbols[number] for number in ids[:-1])
                assert codec.ids(text, side) == ids[:-1].tolist()
                if 3 not in ids:
                    assert codec.detokenised(ids, side) == text
                    assert codec.tokenised(ids, side) == codec.words(text, side)


@pytest.mark.parametrize("measure", ["tokens", "pieces"])
def test_valid_and_test_stay_whole_and_train_is_cleaned(tmp_path, texts, measure):
    (tmp_path / "short").write_text("Dor kel.\n" * 3)
    (tmp_path / "long").write_text("The wick moms the shu.\n" * 3)
    unlike = PairFiles(tmp_path / "short", tmp_path / "long")
    texts = {split: [*files, unlike] for split, files in texts.items()}
    whole = prepared(tmp_path, texts, entry())
    cleaning = {"max_length": 9, "max_ratio": 1.5, "measure": measure}
    clean = prepared(tmp_path, texts, entry(preparation=PLAIN | cleaning), "clean")
    dropped = manifest_of(clean)["dropped"]
    before, after = load_pairs(whole, "train"), load_pairs(clean, "train")
    assert len(after) + sum(dropped.values()) == len(before) == 303
    assert dropped["length"] > 0
    sides = ("source", "target")
    if measure == "tokens":
        assert dropped["ratio"] == 3
        lengths = [[len(line.replace(".", " .").split()) for line in after.texts(side)] for side in sides]
    else:
        lengths = [np.diff(getattr(after, f"{side}_offsets")) - 1 for side in sides]
    assert max(map(max, lengths)) == 9
    assert load_pairs(clean, "test").texts("target") == load_pairs(whole, "test").texts("target")
    assert len(load_pairs(clean, "domain.second")) == 28


@pytest.mark.parametrize("line", ["\u200b", "\ufeff", "\u2581", "\u200b \u2581"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_line_without_pieces_is_empty(tmp_path, texts, line, side):
    pair = ("Dor kel.", line) if side else (line, "Dor kel.")
    for name, text in zip(("s", "t"), pair, strict=True):
        (tmp_path / name).write_text(f"Dor.\n{text}\n", encoding="utf-8")
    more = [PairFiles(tmp_path / "s", tmp_path / "t")]
    files = texts | {"train": texts["train"] + more, "test": texts["test"] + more}
    corpus = prepared(tmp_path, files, entry(preparation=PLAIN | {"empty": "drop"}))
    assert manifest_of(corpus)["dropped"] == {"empty": 1, "empty in test": 1}
    assert [len(load_pairs(corpus, split)) for split in ("train", "test")] == [301, 31]
    sides = [corpus.folder / f"train.{name}.tok.txt" for name in ("source", "target")]
    align(*sides, tmp_path / "links", tmp_path / "links.json", "numpy", "intersect")
    message = r"s, line 2, or its partner, .*t, line 2, is empty after the tokenizer: .*set preparation.empty to drop"
    with pytest.raises(UserError, match=message):
        prepared(tmp_path, files, entry(preparation=PLAIN | {"empty": "error"}), "strict")


def test_a_line_that_preparation_empties_obeys_the_same_rule(tmp_path, texts):
    (tmp_path / "s").write_text("Dor.\n\u200b\n", encoding="utf-8")
    (tmp_path / "t").write_text("Dor.\nKel.\n", encoding="utf-8")
    files = texts | {"test": [PairFiles(tmp_path / "s", tmp_path / "t")]}
    with pytest.raises(UserError, match=r"s, line 2, .* is empty after preparation: .*set preparation.empty to drop"):
        prepared(tmp_path, files, entry(MERGES, MOSES))
    corpus = prepared(tmp_path, files, entry(MERGES, MOSES | {"empty": "drop"}))
    assert manifest_of(corpus)["dropped"] == {"empty in test": 1}


@pytest.mark.parametrize("tokenizer", [PIECES, MERGES])
def test_byte_order_marks_are_in_no_type_and_no_reference(tmp_path, texts, tokenizer):
    """Also where files were joined: the mark of the second one is inside."""
    files = dict(texts)
    for split in ("train", "test"):
        marked = []
        for side in ("source", "target"):
            lines = getattr(texts[split][0], side).read_text(encoding="utf-8").splitlines()
            marked.append(tmp_path / f"{split}.{side}")
            marked[-1].write_text("".join(f"\ufeff{line}\n" for line in lines), encoding="utf-8")
        files[split] = [PairFiles(*marked)]
    one, other = prepared(tmp_path, texts, entry(tokenizer)), prepared(tmp_path, files, entry(tokenizer), "marked")
    assert manifest_of(one)["splits"] == manifest_of(other)["splits"]
    assert one.symbols == other.symbols
    assert load_pairs(other, "test").texts("target") == load_pairs(one, "test").texts("target")


def test_pairs_are_held_out_and_never_in_two_splits(tmp_path, texts):
    train = {"train": [*texts["train"], *texts["train"], *texts["valid"]], "test": texts["test"] + texts["valid"]}
    held_out = {"valid": 40, "seed": 5}
    corpus = prepared(tmp_path, train, entry(preparation=PLAIN | {"deduplicate": True}, held_out=held_out))
    pairs = {split: load_pairs(corpus, split) for split in ("train", "valid", "test")}
    texts_of = {split: list(zip(of.texts("source"), of.texts("target"), strict=True)) for split, of in pairs.items()}
    different = {split: set(of) for split, of in texts_of.items()}
    assert (len(texts_of["valid"]), len(different["valid"])) == (40, 40)
    assert len(texts_of["train"]) == len(different["train"])
    assert not different["train"] & (different["valid"] | different["test"])
    assert len(texts_of["test"]) == 50
    dropped = manifest_of(corpus)["dropped"]
    assert len(texts_of["train"]) + 40 + sum(dropped.values()) == 620
    assert dropped["repeated"] >= 300
    assert dropped["in another split"] >= 1


def test_training_pairs_of_a_published_split_are_left_out(tmp_path, texts):
    both = texts | {"train": texts["train"] + texts["valid"] + texts["test"] + texts["domain.second"]}
    corpus = prepared(tmp_path, both, entry(preparation=PLAIN | {"deduplicate": True}))
    source = {split: set(load_pairs(corpus, split).texts("source")) for split in SPLITS}
    assert not source["train"] & (source["valid"] | source["test"])
    # Domains are other texts, which remove nothing.
    assert source["domain.second"] <= source["train"]
    assert [len(load_pairs(corpus, split)) for split in SPLITS[1:]] == [20, 30, 25]


def test_pieces_are_learnt_only_on_training_pairs(tmp_path, texts, monkeypatch):
    learnt, original = [], BpeJoint.learn

    def learn(name, entry, lines, **details):
        learnt.append(list(lines))
        return original(name, entry, learnt[-1], **details)

    monkeypatch.setattr(BpeJoint, "learn", learn)
    monkeypatch.setattr(module, "BATCH", 7)
    given = {split: files for split, files in texts.items() if split != "valid"}
    corpus = entry(MERGES | {"merges": 40}, held_out={"valid": 60, "seed": 2})
    train = load_pairs(prepared(tmp_path, given, corpus), "train")
    both = list(zip(train.texts("source"), train.texts("target"), strict=True))
    assert len(both) == 240
    assert learnt[0] == [line for pair in both for line in pair]
    # Of a longer text, every k-th pair, with both sides.
    monkeypatch.setattr(module, "LEARNT_BYTES", sum(len(f"{line}\n".encode()) for line in learnt[0]) // 2)
    parts = prepared(tmp_path, given, corpus, "parts")
    every = manifest_of(parts)["tokenizer"]["learnt_on_every"]
    assert every == 3
    assert learnt[1] == [line for pair in both[::every] for line in pair]


def test_results_do_not_depend_on_batches_or_chunks(tmp_path, texts, monkeypatch):
    corpus = entry(MERGES, MOSES)
    whole = prepared(tmp_path, texts, corpus)
    monkeypatch.setattr(module, "BATCH", 7)
    monkeypatch.setattr(pair_folder, "CHUNK", 5)
    parts = prepared(tmp_path, texts, corpus, "parts")
    assert parts.sha256 == whole.sha256
    for path in whole.folder.iterdir():
        if path.name != "manifest.json":
            assert (parts.folder / path.name).read_bytes() == path.read_bytes()


def test_the_checksum_of_the_data_covers_references(tmp_path, texts):
    corpus = entry(preparation=PLAIN | {"lower": True})
    one = prepared(tmp_path, texts, corpus)
    folder = tmp_path / "changed"
    folder.mkdir()
    for side, path in (("source", texts["test"][0].source), ("target", texts["test"][0].target)):
        (folder / side).write_text(path.read_text().replace("The", "the", side == "target"))
    changed = texts | {"test": [PairFiles(folder / "source", folder / "target")]}
    other = prepared(tmp_path, changed, corpus, "other")
    assert np.array_equal(load_pairs(other, "test").target, load_pairs(one, "test").target)
    assert other.sha256 != one.sha256
    assert prepared(tmp_path, texts, corpus, "again").sha256 == one.sha256


def test_reversing_equals_encoding_the_other_direction(tmp_path, texts):
    forward = prepared(tmp_path, texts, entry())
    reverse_pairs("back", forward, tmp_path / "back")
    back = load_manifest(tmp_path / "back" / "manifest.json")
    turned = {split: [PairFiles(files.target, files.source) for files in of] for split, of in texts.items()}
    corpus = entry({"name": "sentencepiece", "model": {}}) | {"languages": {"source": "en", "target": "xa"}}
    expected = prepared(tmp_path, turned, corpus, "expected", forward.folder / "tokenizer.model")
    assert back.sha256 == expected.sha256
    assert back.languages == expected.languages
    names = {path.name for path in expected.folder.iterdir()} - {"manifest.json"}
    assert {path.name for path in back.folder.iterdir()} - {"manifest.json"} == names
    assert all((back.folder / name).read_bytes() == (expected.folder / name).read_bytes() for name in names)
    assert codec_of(back).detokenised(load_pairs(back, "test").target[:5], "target")


def test_pairs_dropped_from_test_sets_are_counted_separately(tmp_path, texts):
    (tmp_path / "a").write_text("a\n\nb\n \n")
    (tmp_path / "b").write_text("x\ny\nz\nw\n")
    some = [PairFiles(tmp_path / "a", tmp_path / "b")]
    texts = texts | {"train": texts["train"] + some, "test": some, "domain.second": some}
    corpus = prepared(tmp_path, texts, entry(preparation=PLAIN | {"empty": "drop"}))
    assert manifest_of(corpus)["dropped"] == {"empty": 2, "empty in test": 2, "empty in domain.second": 2}
    with pytest.raises(UserError, match=r"a, line 2 is empty"):
        prepared(tmp_path, texts, entry(), "strict")


@pytest.mark.parametrize("tokenizer", [PIECES, MERGES])
def test_types_that_never_occur_print_nothing(tmp_path, texts, tokenizer):
    corpus = prepared(tmp_path, texts, entry(tokenizer))
    codec, line = codec_of(corpus), load_pairs(corpus, "test").target[:4].tolist()
    unused = [number for number, symbol in enumerate(corpus.symbols) if symbol.startswith("<unused ")]
    if not unused:
        pytest.skip("the vocabulary is a multiple of 8 as it is")
    assert codec.detokenised([0, *unused, *line, unused[0], 2, 1]) == codec.detokenised(line)


def test_types_of_other_splits_alone_are_unknown(tmp_path, texts):
    (tmp_path / "a").write_text("☃ ☃☃\n")
    corpus = prepared(tmp_path, texts | {"test": [PairFiles(tmp_path / "a", tmp_path / "a")]}, entry(MERGES))
    assert set(load_pairs(corpus, "test").target[:-1].tolist()) == {3}
    assert load_pairs(corpus, "test").texts("target") == ["☃ ☃☃"]
    assert codec_of(corpus).detokenised([3, 2]) == ""


def test_an_empty_training_split_and_a_missing_tokenizer_are_refused(tmp_path, texts):
    with pytest.raises(UserError, match="has no pair left in its train split"):
        prepared(tmp_path, texts, entry(preparation=PLAIN | {"max_length": 1}))
    with pytest.raises(UserError, match="takes a published tokenizer"):
        prepared(tmp_path, texts, entry({"name": "sentencepiece", "model": {}}))
    assert not (tmp_path / "tiny" / "manifest.json").exists()


def test_a_changed_folder_is_refused(tmp_path, texts):
    corpus = prepared(tmp_path, texts, entry())
    with pytest.raises(UserError, match=r"has no split domain.web; it has train, valid, test, domain.second"):
        load_pairs(corpus, "domain.web")
    (corpus.folder / "test.target.txt").write_text("one\n")
    with pytest.raises(UserError, match=r"test beside .* is damaged: its checksum does not match"):
        load_manifest(corpus.folder / "manifest.json")
    (corpus.folder / "test.target.txt").unlink()
    with pytest.raises(UserError, match=r"test.target.txt is missing beside"):
        load_manifest(corpus.folder / "manifest.json")
    for name, content in (("tokenizer.model", "x"), ("tokenizer.json", "{")):
        (corpus.folder / name).write_text(content)
        with pytest.raises(UserError, match=r"tokenizer.json is missing or damaged"):
            codec_of(corpus)


def test_commands(tmp_path, capsys):
    sizes = {"train": 200, "valid": 9, "test": 9, "domain.second": 9}
    synthetic = {"name": "pairs", "seed": 2, "pairs": sizes}
    described = json.dumps(entry({"name": "sentencepiece", "types": 200}, synthetic=synthetic))
    made = tmp_path / "made"
    texts = {split: [[f"{made}/{split}.{side}.txt" for side in ("source", "target")] + [None]] for split in sizes}
    files = [file for ((*pair, _),) in texts.values() for file in pair]
    assert main(["synthesise", "--entry", described, "--output", *files]) == 0
    encode = ["encode-pairs", "--corpus", "tiny", "--texts", json.dumps(texts), "--output", str(tmp_path / "tiny")]
    assert main([*encode, "--entry", described]) == 0
    manifest = str(tmp_path / "tiny/manifest.json")
    assert main(["reverse-pairs", "--corpus", "back", "--manifest", manifest, "--output", str(tmp_path / "back")]) == 0
    back = load_manifest(tmp_path / "back/manifest.json")
    assert load_pairs(back, "test").texts("source") == (made / "test.target.txt").read_text().splitlines()
    assert main([*encode, "--entry", '{"kind": "translation", "reverse_of": "tiny"}']) == 2
    assert "use reverse-pairs" in capsys.readouterr().err


def test_each_side_is_tokenised_in_its_language(tmp_path, texts):
    codec = codec_of(prepared(tmp_path, texts, entry(MERGES, MOSES)))
    assert codec.words("It isn't.", "target") == "It isn &apos;t ."
    assert codec.words("It isn't.", "source") == "It isn &apos; t ."
