"""Rules of parallel texts: paths of texts, of reversed corpora, of shards and their sums."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs import tokenize

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table():
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    return load(config | {"scale": "smoke"}, ROOT)


def wildcards(**names):
    return SimpleNamespace(**names)


def test_texts_of_pairs_with_their_domains_and_tokenizer(table):
    texts = tokenize.pair_texts(table, wildcards(corpus="afromt_af-en"))
    assert texts[:2] == ["resources/afromt/afromt/en-af/train.af", "resources/afromt/afromt/en-af/train.en"]
    assert tokenize.published_tokenizer(table, wildcards(corpus="afromt_af-en")) == ["resources/afromt/spm_model.model"]
    assert "resources/flores200/devtest/afr_Latn.devtest" in texts
    # A table is one file for both sides.
    assert tokenize.pair_texts(table, wildcards(corpus="kirundi_run-en"))[0] == "resources/kirundi-dataset/metadata.csv"
    assert tokenize.pair_texts(table, wildcards(corpus="synthetic_translation"))[0] == (
        "resources/synthetic/synthetic_translation/train.source.txt"
    )


def test_every_corpus_has_one_rule(table):
    forward, back = (tokenize.translations(table, reverse) for reverse in (False, True))
    assert not set(forward) & set(back)
    manifests = [tokenize.forward_manifest(table, wildcards(corpus=corpus)) for corpus in back]
    assert set(manifests) <= {f"results/smoke/data/{corpus}/manifest.json" for corpus in forward}


def test_shards_are_counted_one_by_one_and_merged(table):
    names = {"corpus": "iwslt14_de-en", "text": "c4_en"}
    counts = tokenize.shard_counts(table, wildcards(**names))
    assert len(counts) == 2
    shard = Path(counts[1]).name.removesuffix(".npy")
    assert tokenize.shard(table, wildcards(**names, shard=shard)) == f"resources/c4/en/{shard}"
