"""Inputs and params of the tokenization rules, by kind of corpus, and of the rules that count unigrams."""

import json
import re
from pathlib import Path

from rarepapers.data import catalogue
from rarepapers.experiments.run_table import RunTable


def of_kind(table: RunTable, kind: str, reverse: bool = False) -> str:
    """Regular expression of the corpora of one kind, as a wildcard constraint; reverse: those that reverse another."""
    return "|".join(map(re.escape, catalogue.corpora_of_kind(table.corpora, kind, reverse)))


def text(table: RunTable, wildcards) -> str:
    """The text of a corpus of characters."""
    return catalogue.text_file(table.corpora, wildcards.corpus)


def splits(table: RunTable, wildcards) -> dict[str, str]:
    """The texts of a language corpus: train, valid and test."""
    return catalogue.split_files(table.corpora, wildcards.corpus)


def pair_texts(table: RunTable, wildcards) -> list[str]:
    """The texts of a translation corpus and its other domains, each file once."""
    parts = catalogue.pair_files(table.corpora, wildcards.corpus).values()
    return list(dict.fromkeys(str(path) for files in parts for pair in files for path in (pair.source, pair.target)))


def texts_by_split(table: RunTable, wildcards) -> str:
    """JSON: for each split and domain of a translation corpus, its [source, target, columns of a table or null]."""
    parts = catalogue.pair_files(table.corpora, wildcards.corpus)
    named = {
        split: [(str(one.source), str(one.target), one.columns) for one in files] for split, files in parts.items()
    }
    return json.dumps(named)


def published_tokenizer(table: RunTable, wildcards) -> list[str]:
    """The published tokenizer of a corpus, or nothing if it is learnt."""
    return catalogue.tokenizer_file(table.corpora, wildcards.corpus)


def forward_manifest(table: RunTable, wildcards) -> str:
    """Manifest of the corpus that a reversed translation corpus is made from."""
    return f"{table.results}/data/{table.corpora[wildcards.corpus]['reverse_of']}/manifest.json"


def shards(table: RunTable, name: str) -> dict[str, str]:
    """The shards of a text whose unigrams are counted, by file name."""
    return {Path(path).name: path for path in catalogue.shards(table.corpora, name)}


def shard(table: RunTable, wildcards) -> str:
    """One shard of a text."""
    return shards(table, wildcards.text)[wildcards.shard]


def shard_counts(table: RunTable, wildcards) -> list[str]:
    """Unigram counts of all shards of a text, made with a translation corpus's tokenizer."""
    folder = f"{table.results}/counts/{wildcards.corpus}/{wildcards.text}"
    return [f"{folder}/{name}.npy" for name in shards(table, wildcards.text)]
