"""What the rules of parallel texts ask for: paths of texts, of what a corpus reverses, of shards and their sums."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from raretok.core.errors import UserError
from raretok.rule_inputs import job_inputs

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table():
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    return job_inputs.load(config | {"scale": "smoke"}, ROOT)


def wildcards(**names):
    return SimpleNamespace(**names)


def test_texts_of_pairs_with_their_domains_and_tokenizer(table):
    texts = table.pair_texts_of(wildcards(corpus="afromt_af-en"))
    assert texts[:2] == ["resources/afromt/afromt/en-af/train.af", "resources/afromt/afromt/en-af/train.en"]
    assert texts[-1] == "resources/afromt/spm_model.model"
    assert "resources/flores200/devtest/afr_Latn.devtest" in texts
    # A table is one file.
    assert table.pair_texts_of(wildcards(corpus="kirundi_run-en"))[0] == "resources/kirundi-dataset/metadata.csv"
    assert table.pair_texts_of(wildcards(corpus="synthetic_translation"))[0] == (
        "resources/synthetic/synthetic_translation/train.source.txt"
    )


def test_every_corpus_has_one_rule(table):
    forward, back = (table.corpora_of_kind("translation", reverse).split("|") for reverse in (False, True))
    assert not set(forward) & set(back)
    for corpus in back:
        manifest = table.forward_of(wildcards(corpus=corpus.replace("\\", "")))
        assert manifest.removeprefix("results/smoke/data/").removesuffix("/manifest.json") in {
            name.replace("\\", "") for name in forward
        }


def test_shards_and_their_sum(table):
    names = {"corpus": "iwslt14_de-en", "text": "c4_en"}
    counts = table.shard_counts_of(wildcards(**names))
    assert len(counts) == 2
    shard = Path(counts[1]).name.removesuffix(".npy")
    assert table.shard_of(wildcards(**names, shard=shard)) == f"resources/c4/en/{shard}"
    assert str(Path(counts[0]).parent) + ".npy" == table.counts_file("iwslt14_de-en", "c4")
    with pytest.raises(UserError, match=r"corpus iwslt14_en-de .* no external_counts named c4"):
        table.counts_file("iwslt14_en-de", "c4")
