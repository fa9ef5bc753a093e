"""Synthetic language: equal bytes everywhere, topical, with rare words and meaningful word pairs."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rarepapers.data.catalogue import load_corpora
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.synthetic.synthetic_language import SCORES, write_language
from rarepapers.data.text.encode_text import encode
from rarepapers.data.text.similarity_pairs import read_pairs
from raretok.frequency_groups import bounds, masses

ROOT = Path(__file__).parents[3]
CORPORA = load_corpora(ROOT / "config" / "corpora.yaml")
SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The text of scale smoke."""
    folder = tmp_path_factory.mktemp("language")
    entry = CORPORA["synthetic_language"]["synthetic"]
    write_language(folder, entry["seed"], entry["words"])
    return folder


def articles(folder, split="train"):
    """Words of each article, including its title."""
    found = []
    for line in (folder / f"{split}.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith(" = "):
            found.append([])
        if line:
            found[-1] += line.split()
    return found


def test_bytes_are_pinned(folder):
    files = [*(f"{split}.txt" for split in SPLITS), "similarity.tsv"]
    digest = hashlib.sha256(b"".join((folder / file).read_bytes() for file in files)).hexdigest()
    assert digest == "7006fb528ad7ac82924af29e2e1bd3c3f0887fca6fd3140547415248efcd0f30"


def test_seed_and_sizes_determine_the_text(tmp_path):
    sizes = {"train": 500, "valid": 100, "test": 100}
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_language(tmp_path / name, seed, sizes)
    texts = [(tmp_path / name / "train.txt").read_text() for name in "abc"]
    assert texts[0] == texts[1] != texts[2]
    assert 500 <= len(texts[0].split()) < 1000


def test_splits_share_no_article(folder):
    texts = {split: set(map(" ".join, articles(folder, split))) for split in SPLITS}
    assert len(set.union(*texts.values())) == sum(map(len, texts.values()))


def test_words_are_zipfian_with_many_that_occur_once(folder):
    counts = np.array(sorted(Counter((folder / "train.txt").read_text().split()).values(), reverse=True))
    slope = np.polyfit(np.log(np.arange(10, 800)), np.log(counts[10 - 1 : 800 - 1]), 1)[0]
    assert -1.5 < slope < -0.7
    assert (counts == 1).mean() > 0.2


def test_a_rare_name_is_repeated_in_its_article(folder):
    """Rare words are predictable, because they occur in few articles."""
    counts = Counter(word for article in articles(folder) for word in article if not word.isascii())
    rare = {word for word, count in counts.items() if 2 <= count <= 5}
    places = Counter(word for article in articles(folder) for word in set(article) & rare)
    assert len(counts) > 250
    assert len(rare) > 100
    assert np.mean([places[word] / counts[word] for word in rare]) < 0.5


def test_words_with_high_scores_occur_together(folder):
    pairs = read_pairs(folder / "similarity.tsv")
    words = {word: number for number, word in enumerate(sorted({word for pair in pairs for word in pair[:2]}))}
    present = np.zeros((len(words), len(articles(folder))))
    for place, article in enumerate(articles(folder)):
        for word in {word.lower() for word in article} & set(words):
            present[words[word], place] = 1
    present -= present.mean(1, keepdims=True)
    present /= np.linalg.norm(present, axis=1, keepdims=True)
    together = {score: [] for score in SCORES.values()}
    for one, other, score in pairs:
        together[score].append(present[words[one]] @ present[words[other]])
    assert [len(found) for found in together.values()] == [80, 80, 80]
    field, topic, nothing = (np.mean(found) for found in together.values())
    assert field > topic + 0.05 > nothing + 0.1


@pytest.mark.parametrize(
    ("name", "types", "rare_mass"),
    [("synthetic_language", (560, 620), 0.03), ("synthetic_language_words", (1500, 2500), 0.02)],
)
def test_the_corpus_of_scale_smoke(folder, tmp_path, name, types, rare_mass):
    encode(name, CORPORA[name], {split: folder / f"{split}.txt" for split in SPLITS}, tmp_path)
    corpus = load_manifest(tmp_path / "manifest.json")
    assert types[0] <= corpus.types <= types[1]
    groups = bounds({"shares": [0.3, 0.5, 0.2]}, corpus.counts)
    assert 0.005 < masses(groups, corpus.counts)[2] < rare_mass
    if name == "synthetic_language":
        assert 55_000 < corpus.splits["train"] < 65_000
        assert all(7_000 < corpus.splits[split] < 9_000 for split in ("valid", "test"))
