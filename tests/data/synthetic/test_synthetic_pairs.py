"""Synthetic sentence pairs: equal bytes everywhere, word order and inflection, rare words, a second domain."""

import gzip
import hashlib
import json
from collections import Counter

import pytest

from rarepapers.data.synthetic.synthetic_pairs import write_documents, write_pairs

SIZES = {"train": 600, "valid": 60, "test": 60, "domain.second": 60}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder, 1, SIZES)
    return folder


def lines(folder, split, side):
    return (folder / f"{split}.{side}.txt").read_text().splitlines()


def test_bytes_are_pinned(folder, tmp_path):
    write_pairs(tmp_path, 1, SIZES)
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in folder.iterdir())
    write_pairs(tmp_path, 2, SIZES)
    assert (tmp_path / "test.source.txt").read_bytes() != (folder / "test.source.txt").read_bytes()
    # From PCG64's raw stream. A change of this text changes every result of scale smoke.
    digest = hashlib.sha256((folder / "train.source.txt").read_bytes()).hexdigest()
    assert digest[:16] == "11865223805d5f8f"


def test_sizes_lengths_and_disjoint_splits(folder):
    for split, number in SIZES.items():
        for side in ("source", "target"):
            assert len(lines(folder, split, side)) == number
            assert all(3 <= len(line.split()) <= 14 for line in lines(folder, split, side))
    trained = set(lines(folder, "train", "source"))
    for split in ("valid", "test", "domain.second"):
        assert not trained & set(lines(folder, split, "source"))


def test_a_translation_has_other_words_in_another_order(folder):
    source, target = lines(folder, "train", "source"), lines(folder, "train", "target")
    words = [{word.strip(".").lower() for line in of for word in line.split()} for of in (source, target)]
    assert not words[0] & words[1]
    # Each sentence has one translation.
    assert len(set(zip(source, target, strict=True))) == len(set(source))
    # The verb is last in the source and agrees with its subject; in the target it is inside.
    assert all(line.rstrip(".").endswith(("et", "ont")) for line in source)
    assert len({line.split()[-1] for line in source}) > 20
    # A noun's article and ending agree.
    assert {line.split()[0] for line in target} >= {"The", "Some"}


def words_of(folder, split):
    return [word for line in lines(folder, split, "target") for word in line.strip(".").lower().split()]


def test_words_have_a_rare_tail_and_domains_their_own_words(folder):
    counts = Counter(words_of(folder, "train"))
    ranked = [count for _, count in counts.most_common()]
    assert ranked[0] > 50 * ranked[len(ranked) // 2]
    assert ranked[-1] == 1
    rare = {split: sum(counts[word] < 3 for word in words_of(folder, split)) for split in ("test", "domain.second")}
    assert rare["domain.second"] > 1.5 * rare["test"] > 0


def test_documents_are_lines_of_json_in_the_target_language(folder, tmp_path):
    of = {"seed": 1}
    write_documents(tmp_path / "a.json.gz", 7, of, 50)
    write_documents(tmp_path / "b.json.gz", 7, of, 50)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    text = gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode()
    documents = [json.loads(line) for line in text.splitlines()]
    assert len(documents) == 50
    words = {word.strip(".").lower() for document in documents for word in document["text"].split()}
    known = {word.strip(".").lower() for line in lines(folder, "train", "target") for word in line.split()}
    assert len(words & known) > len(words) / 2
