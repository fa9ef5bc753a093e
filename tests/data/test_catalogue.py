"""Catalogue of data sets and corpora: the real files are valid, and mistakes are named."""

import json
from pathlib import Path

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import (
    corpora_of_kind,
    corpus_definition,
    corpus_params,
    corpus_title,
    external_text,
    file_params,
    find_corpus,
    find_file,
    load_corpora,
    load_datasets,
    pair_files,
    shards,
    split_files,
    text_file,
    tokenizer_file,
)

ROOT = Path(__file__).parents[2]
SHA256 = "sha256:" + "0" * 64


@pytest.fixture
def write(tmp_path):
    def write(value):
        path = tmp_path / "list.yaml"
        path.write_text(value if isinstance(value, str) else yaml.safe_dump(value))
        return path

    return write


def dataset(**changes):
    file = {"urls": ["https://example.org/a"], "size": 1, "checksum": SHA256} | changes
    return {"plays": {"description": "d", "licence": "l", "files": {"a.zip": file}}}


def corpus(**changes):
    return {"c": {"kind": "characters", "dataset": "d", "file": "f", "splits": {"train": 0.9, "valid": 0.1}} | changes}


def test_the_real_catalogue_is_valid_and_consistent():
    datasets = load_datasets(ROOT / "config" / "datasets.yaml")
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
    for name, entry in corpora.items():
        files = PLACES[entry["kind"]](corpora, name)
        assert files or "reverse_of" in entry
        for file in files:
            root, dataset, path = file.split("/", 2)
            assert root == "resources"
            if dataset != "synthetic":
                find_file(datasets, dataset, path)
        corpus_definition(corpora, datasets, name)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("tiny_shakespeare_halves", "tiny Shakespeare (halves)"),
        ("wikitext-2_gpt2", "WikiText-2 (gpt2)"),
        ("wmt14_en-de_bpe37k", "WMT14 En-De (bpe37k)"),
        ("kirundi_run-en", "Kirundi Run-En"),
        ("wikitext-2_en", "WikiText-2"),
        ("synthetic_translation_reverse", "synthetic pair"),
        ("flores200", "FLORES-200"),
        ("newstest2013", "newstest2013"),
    ],
)
def test_titles_of_corpora_and_of_other_texts(name, title):
    datasets = load_datasets(ROOT / "config" / "datasets.yaml")
    assert corpus_title(load_corpora(ROOT / "config" / "corpora.yaml"), datasets, name) == title


def pair_paths(corpora, name):
    pairs = [pair for files in pair_files(corpora, name).values() for pair in files]
    return [str(path) for pair in pairs for path in (pair.source, pair.target)] + tokenizer_file(corpora, name)


PLACES = {
    "characters": lambda corpora, name: [text_file(corpora, name)],
    "language": lambda corpora, name: [*split_files(corpora, name).values(), *tokenizer_file(corpora, name)],
    "translation": pair_paths,
    "unigrams": shards,
}


def language(tokenizer=None, **changes):
    entry = {"kind": "language", "synthetic": {"name": "language", "seed": 1, "words": dict.fromkeys(SPLITS, 9)}}
    return {"c": entry | {"tokenizer": tokenizer or {"name": "words"}} | changes}


SPLITS = ("train", "valid", "test")
MERGES = {"dataset": "gpt2_bpe", "file": "vocab.bpe"}


def test_paths_of_texts_and_merges(write):
    load_corpora(write(language()))
    assert split_files(language(), "c") == {split: f"resources/synthetic/c/{split}.txt" for split in SPLITS}
    assert tokenizer_file(language(), "c") == []
    entry = {"kind": "language", "dataset": "d", "files": {split: f"{split}.tokens" for split in SPLITS}}
    corpora = {"c": entry | {"tokenizer": {"name": "bpe", "merges": MERGES}}}
    assert split_files(corpora, "c")["test"] == "resources/d/test.tokens"
    assert tokenizer_file(corpora, "c") == ["resources/gpt2_bpe/vocab.bpe"]


def test_definition_of_a_language_holds_the_checksums_of_texts_and_merges():
    definition = real_definition("wikitext-2_gpt2")
    assert definition["checksums"]["train"].startswith("sha256:9e9fa1ad")
    assert definition["tokenizer"]["merges"].startswith("sha256:1ce16647")
    assert not {"dataset", "files"} & set(definition)
    assert real_definition("wikitext-2")["tokenizer"] == {"name": "bpe", "types": 8000}
    assert real_definition("wikitext-103")["checksums"]["train"].startswith("sha1:b7497e2d")


def test_errors_for_unknown_names_list_the_known_ones(write, tmp_path):
    datasets = load_datasets(write(dataset(archive="zip", members={"b": {}})))
    with pytest.raises(UserError, match=r"no data set poems .* choose one of plays"):
        find_file(datasets, "poems", "b")
    with pytest.raises(UserError, match=r"has no file c; it has a.zip, b"):
        find_file(datasets, "plays", "c")
    with pytest.raises(UserError, match=r"no corpus x .* choose one of c"):
        find_corpus(corpus(), "x")
    with pytest.raises(UserError, match=r"nowhere.yaml does not exist"):
        load_datasets(tmp_path / "nowhere.yaml")


def test_params_change_with_the_checksum_or_without_one_with_urls():
    urls = ["https://example.com/b", "https://example.org/a"]
    one, other, changed = dataset(), dataset(urls=urls, note="moved"), dataset(checksum="sha256:" + "1" * 64)
    assert file_params(one, "plays", "a.zip") == file_params(other, "plays", "a.zip")
    assert file_params(one, "plays", "a.zip") != file_params(changed, "plays", "a.zip")
    assert json.loads(file_params(one, "plays", "a.zip"))["file"]["size"] == 1
    one, other = (dataset(checksum=None, note="none", **more) for more in ({}, {"urls": urls}))
    assert file_params(one, "plays", "a.zip") != file_params(other, "plays", "a.zip")


def test_corpus_params_keep_the_order_of_splits():
    """A text is split in that order."""
    entry = corpus()["c"]
    turned = {"c": entry | {"splits": dict(reversed(entry["splits"].items()))}}
    assert corpus_params(turned, "c") != corpus_params(corpus(), "c")


def test_synthetic_documents_depend_on_the_pairs_of_their_language():
    made = {"d": {"kind": "unigrams", "synthetic": {"of": "p"}}, "p": {"kind": "translation", "synthetic": {"seed": 1}}}
    other = made | {"p": {"kind": "translation", "synthetic": {"seed": 2}}}
    assert corpus_params(made, "d") != corpus_params(other, "d")


def real_definition(name, counts=None):
    corpora, datasets = load_corpora(ROOT / "config" / "corpora.yaml"), load_datasets(ROOT / "config" / "datasets.yaml")
    return corpus_definition(corpora, datasets, name, counts)


def test_definition_holds_the_checksum_of_the_text():
    definition = real_definition("tiny_shakespeare")
    assert definition["checksum"] == "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
    assert "dataset" not in definition
    assert real_definition("synthetic_characters")["synthetic"]["seed"] == 1


def test_definition_of_a_text_without_checksum_names_its_urls():
    one = dataset(checksum=None, note="none", urls=["https://example.com/a"])
    texts = {"c": {"kind": "characters", "dataset": "plays", "file": "a.zip", "splits": {"train": 1.0}}}
    assert corpus_definition(texts, one, "c")["checksum"] == ["https://example.com/a"]


def test_callers_cannot_change_the_catalogue():
    texts = {"c": {"kind": "characters", "synthetic": {"seed": 1}, "splits": {"train": 1.0}}}
    corpus_definition(texts, {}, "c")["synthetic"]["seed"] = 2
    assert texts["c"]["synthetic"]["seed"] == 1


def translation(**changes):
    texts = {split: [{"dataset": "d", "source": f"{split}.de", "target": f"{split}.en"}] for split in SPLITS}
    entry = {
        "kind": "translation",
        "languages": {"source": "de", "target": "en"},
        "files": texts,
        "preparation": {"normalise": "none", "tokenise": "none"},
        "tokenizer": {"name": "sentencepiece", "types": 80},
    }
    entry |= changes
    return {"c": {key: value for key, value in entry.items() if value is not None}}


TRAIN_ALONE = {"train": [{"dataset": "d", "source": "a", "target": "b"}]}


WRONG_DATA_SETS = [
    (dataset(checksum="sha256:12"), r"plays.files.a.zip.checksum"),
    (dataset(checksum=None), "note"),
    (dataset(urls=[]), "manual"),
    (dataset(urls=["ftp://example.org/a"]), r"plays.files.a.zip.urls.0"),
    (dataset(archive="zip"), "members"),
    (dataset(archive="zip", members={"../b": {}}), r"plays.files.a.zip.members"),
    (dataset(archive="zip", members={"/b": {}}), r"plays.files.a.zip.members"),
    (dataset(archive="gz", members={"b": {}, "c": {}}), r"plays.files.a.zip.members"),
    (dataset(archive="zip", members={"a.zip": {}}), "lists a.zip twice"),
    ("a: [", "not valid YAML"),
]
WRONG_CORPORA = [
    (corpus(splits={"train": 0.9, "valid": 0.2}), "c.splits add up to 1.1"),
    (corpus(splits={"train": 0.9}), "valid"),
    (corpus(synthetic={"name": "characters", "seed": 1, "length": 5}), "c: "),
    (language({"name": "bpe"}), r"c.tokenizer"),
    (language({"name": "bpe", "types": 512, "merges": MERGES}), r"c.tokenizer"),
    (language({"name": "bpe", "types": 601}), r"c.tokenizer.types"),
    (language(dataset="plays"), "dataset and synthetic exclude"),
    (translation(files=None), r"c.files or c.synthetic is missing"),
    (translation(files=TRAIN_ALONE), "c needs its valid split"),
    (translation(files=TRAIN_ALONE, held_out={"valid": 2, "seed": 1}), "c needs its test split"),
    (translation(held_out={"every": 23}), "c needs its valid split"),
    (translation(held_out={"every": 23, "seed": 1}), r"c.held_out"),
    (translation(files={**TRAIN_ALONE, "valid": [{"dataset": "d", "source": "a"}]}), r"c.files.valid.0"),
    (translation(domains={"test": [{"dataset": "d", "file": "a.csv"}]}), r"c.domains.test.0"),
    (translation(preparation={"normalise": "moses"}), "tokenise"),
    (translation(tokenizer={"name": "bpe_joint"}), "merges"),
    (translation(tokenizer={"name": "sentencepiece", "types": 80, "model": MERGES}), r"c.tokenizer"),
    (translation(external_counts={"c4": "c"}), "names c, which is no corpus of kind unigrams"),
    (translation() | {"r": {"kind": "translation", "reverse_of": "x"}}, "r.reverse_of needs a corpus"),
    (translation() | {"r": {"kind": "translation", "reverse_of": "c", "held_out": None}}, "held_out"),
]


@pytest.mark.parametrize(
    ("load", "value", "message"),
    [(load_datasets, *case) for case in WRONG_DATA_SETS] + [(load_corpora, *case) for case in WRONG_CORPORA],
)
def test_a_wrong_entry_names_file_and_key(write, load, value, message):
    path = write(value)
    with pytest.raises(UserError, match=message) as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_paths_of_pairs_of_reversed_ones_and_of_other_text(write):
    table = [{"dataset": "e", "file": "t.csv", "columns": {"source": "De", "target": "En"}}]
    corpora = translation(domains={"web": table}, external_counts={"c4": "t"})
    corpora |= {"r": {"kind": "translation", "reverse_of": "c"}}
    corpora |= {"t": {"kind": "unigrams", "dataset": "d", "files": ["en/a.json.gz"]}}
    corpora = load_corpora(write(corpora))
    files = pair_files(corpora, "c")
    assert list(files) == [*SPLITS, "domain.web"]
    assert files["valid"][0].target == Path("resources/d/valid.en")
    assert files["domain.web"][0].columns == ("De", "En")
    assert files["domain.web"][0].source == files["domain.web"][0].target == Path("resources/e/t.csv")
    assert pair_files(corpora, "r") == {}
    assert (corpora_of_kind(corpora, "translation"), corpora_of_kind(corpora, "translation", reverse=True)) == (
        ["c"],
        ["r"],
    )
    assert shards(corpora, "t") == ["resources/d/en/a.json.gz"]
    assert external_text(corpora, "c", "c4") == "t"
    with pytest.raises(UserError, match=r"corpus r .* no external_counts named c4"):
        external_text(corpora, "r", "c4")
    # Other text changes a run that starts from it, not the encoding of pairs.
    same = translation(domains={"web": table})
    assert json.loads(corpus_params(corpora, "c")) == json.loads(corpus_params(same, "c"))


def test_definition_of_a_translation_holds_checksums_and_says_if_it_is_reversed():
    definition = real_definition("multi30k_de-en")
    assert definition["files"]["train"][0]["source"].startswith("sha256:2c2b73fd")
    assert definition["domains"]["newstest2014"][0]["target"].startswith("sha256:7294bccf")
    assert "external_counts" not in definition
    counted = real_definition("multi30k_de-en", "c4")["external_counts"]
    assert counted["c4"]["checksums"][0].startswith("sha256:9e9fa1ad")
    assert "dataset" not in json.dumps(definition)
    assert real_definition("multi30k_en-de") == definition | {"reversed": True}
    assert real_definition("afromt_af-en")["tokenizer"]["model"].startswith("sha256:4ec7949b")
