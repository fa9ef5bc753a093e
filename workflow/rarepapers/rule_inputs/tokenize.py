"""Files of prepared corpora; inputs and params of the rules that make them and of those that count unigrams."""

import json
import re
from pathlib import Path

from rarepapers.data import catalogue
from rarepapers.data.catalogue_types import SPLITS
from rarepapers.data.tokenizers import tokenizer_class
from rarepapers.experiments.run_table import RunTable
from rarepapers.rule_inputs.per_job import per_job

# Files of a prepared corpus.


def file_names(table: RunTable, corpus: str) -> list[str]:
    """Names of the files beside the manifest of a prepared corpus, all of which its manifest describes.

    These are the ids of each split, for a translation the ids and lines of both sides; except for characters, also
    counts, vocabulary and tokenizer.
    """
    entry = table.corpora[corpus]
    if entry["kind"] == "characters":
        return ["train.npy", "valid.npy"]
    tokenizer = table.corpora[entry.get("reverse_of", corpus)]["tokenizer"]["name"]
    shared = ["counts.npy", "vocabulary.json", *tokenizer_class(tokenizer).files]
    if entry["kind"] == "language":
        return [*shared, *(f"{split}.npy" for split in SPLITS)]
    return [*shared, "source_counts.npy", *_of_sides(table, corpus, "npy", "txt")]


def piece_names(table: RunTable, corpus: str) -> list[str]:
    """Names of the files with the pieces of a translation corpus, of which word alignment reads those for training."""
    return _of_sides(table, corpus, "tok.txt")


def _of_sides(table: RunTable, corpus: str, *forms: str) -> list[str]:
    parts = catalogue.pair_files(table.corpora, table.corpora[corpus].get("reverse_of", corpus))
    # held-out splits have no texts of their own
    splits = dict.fromkeys([*SPLITS, *parts])
    return [f"{split}.{side}.{form}" for split in splits for side in ("source", "target") for form in forms]


def manifest_of(table: RunTable, corpus: str) -> str:
    """The manifest of a prepared corpus."""
    return f"{table.results}/data/{corpus}/manifest.json"


def files_of_corpus(table: RunTable, corpus: str) -> list[str]:
    """The files beside that manifest, which every job that reads a corpus compares with their checksums."""
    return [f"{table.results}/data/{corpus}/{name}" for name in file_names(table, corpus)]


@per_job
def manifest(table: RunTable, wildcards) -> str:
    """The manifest of a job's corpus."""
    return manifest_of(table, wildcards.corpus)


@per_job
def corpus_files(table: RunTable, wildcards) -> list[str]:
    """The files beside that manifest."""
    return files_of_corpus(table, wildcards.corpus)


# Texts.


def translations(table: RunTable, reverse: bool = False) -> list[str]:
    """The translation corpora with texts of their own, or those that reverse another."""
    return catalogue.corpora_of_kind(table.corpora, "translation", reverse)


def of_kind(table: RunTable, kind: str, reverse: bool = False) -> str:
    """Regular expression of the corpora of one kind, as a wildcard constraint; reverse: those that reverse another."""
    return "|".join(map(re.escape, catalogue.corpora_of_kind(table.corpora, kind, reverse)))


@per_job
def text(table: RunTable, wildcards) -> str:
    """The text of a corpus of characters."""
    return catalogue.text_file(table.corpora, wildcards.corpus)


@per_job
def splits(table: RunTable, wildcards) -> dict[str, str]:
    """The texts of a language corpus: train, valid and test."""
    return catalogue.split_files(table.corpora, wildcards.corpus)


@per_job
def pair_texts(table: RunTable, wildcards) -> list[str]:
    """The texts of a translation corpus and its other domains, each file once."""
    parts = catalogue.pair_files(table.corpora, wildcards.corpus).values()
    return list(dict.fromkeys(str(path) for files in parts for pair in files for path in (pair.source, pair.target)))


@per_job
def texts_by_split(table: RunTable, wildcards) -> str:
    """JSON: for each split and domain of a translation corpus, its [source, target, columns of a table or null]."""
    parts = catalogue.pair_files(table.corpora, wildcards.corpus)
    named = {
        split: [(str(one.source), str(one.target), one.columns) for one in files] for split, files in parts.items()
    }
    return json.dumps(named)


@per_job
def published_tokenizer(table: RunTable, wildcards) -> list[str]:
    """The published tokenizer of a corpus, or nothing if it is learnt."""
    return catalogue.tokenizer_file(table.corpora, wildcards.corpus)


@per_job
def forward_manifest(table: RunTable, wildcards) -> str:
    """Manifest of the corpus that a reversed translation corpus is made from."""
    return manifest_of(table, table.corpora[wildcards.corpus]["reverse_of"])


@per_job
def forward_files(table: RunTable, wildcards) -> list[str]:
    """The files beside that manifest."""
    return files_of_corpus(table, table.corpora[wildcards.corpus]["reverse_of"])


def shards(table: RunTable, name: str) -> dict[str, str]:
    """The shards of a text whose unigrams are counted, by file name."""
    return {Path(path).name: path for path in catalogue.shards(table.corpora, name)}


@per_job
def shard(table: RunTable, wildcards) -> str:
    """One shard of a text."""
    return shards(table, wildcards.text)[wildcards.shard]


@per_job
def shard_counts(table: RunTable, wildcards) -> list[str]:
    """Unigram counts of all shards of a text, made with a translation corpus's tokenizer."""
    folder = f"{table.results}/counts/{wildcards.corpus}/{wildcards.text}"
    return [f"{folder}/{name}.npy" for name in shards(table, wildcards.text)]
