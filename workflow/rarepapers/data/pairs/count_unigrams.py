"""The command `count-unigrams`: counts of a translation corpus's types in one shard of another text.

A shard holds JSON lines with `text` (`.json`), as in C4, or plain lines, optionally compressed (`.gz`). It is read line
by line and counted in batches, so memory does not grow with it. Every line of a document with at least one piece counts
as one sentence: its pieces, prepared like the corpus's target side, and one END.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path
from rarepapers.core.special_types import END
from rarepapers.data.codec import codec_of
from rarepapers.data.lines import batches_of, numbered_lines, without_marks
from rarepapers.data.prepared_corpus import load_manifest

# Number of characters that are counted at a time.
BATCH = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokenizer-of", required=True, type=Path, metavar="MANIFEST", help="manifest.json of a translation corpus"
    )
    parser.add_argument("--shard", required=True, type=Path, help="JSON lines with `text` (.json), or plain lines; .gz")
    parser.add_argument("--output", required=True, type=Path, help="counts by id, .npy")


def main(arguments: argparse.Namespace) -> None:
    corpus = load_manifest(arguments.tokenizer_of)
    if corpus.kind != "translation":
        raise UserError(f"{arguments.tokenizer_of} has kind {corpus.kind}; counting is for corpora of kind translation")
    counts = count_shard(codec_of(corpus), corpus.types, arguments.shard)
    with atomic_path(arguments.output) as temporary:
        np.save(temporary, counts, allow_pickle=False)


def count_shard(codec, types: int, shard: Path) -> np.ndarray:
    """Counts of `types` types in the documents of `shard`, (types,) int64.

    Raises UserError if the shard is missing, damaged, not UTF-8, has an invalid line, or no text.
    """
    counts = np.zeros(types, dtype=np.int64)
    for lines in batches_of(_sentences(shard), BATCH):
        encoded = codec.encode(lines, "target")
        ids = [number for line in encoded for number in line]
        counts += np.bincount(np.array(ids, dtype=np.int64), minlength=types)
        counts[END] += sum(map(bool, encoded))
    if not counts.any():
        raise UserError(f"{shard} has no text; get it again")
    return counts


def _sentences(shard: Path) -> Iterator[str]:
    """Non-blank lines of the documents."""
    is_json = shard.name.removesuffix(".gz").endswith(".json")
    for number, line in numbered_lines(shard):
        try:
            text = without_marks(json.loads(line)["text"]) if is_json else line
            yield from (part for part in text.split("\n") if part.strip())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{shard}, line {number} is no JSON object with `text`; get the shard again") from error
