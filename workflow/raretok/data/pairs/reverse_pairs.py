"""The command `reverse-pairs`: a prepared translation corpus with its sides swapped.

Texts, pieces and the joint tokenizer stay the same; ids are sorted by the counts of the former source side.
"""

import argparse
from pathlib import Path

import numpy as np

from raretok.core.files import atomic_path, copy_file, read_json
from raretok.data.pairs.encode_pairs import id_type
from raretok.data.pairs.pair_folder import (
    CHUNK,
    SIDES,
    describe_split,
    ids_path,
    text_path,
    write_manifest,
    write_pieces,
)
from raretok.data.prepared_corpus import Corpus, load_manifest
from raretok.data.special_types import SPECIAL
from raretok.data.text.encode_text import order_by_frequency
from raretok.data.tokenizers import load_tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", required=True, help="name of the corpus")
    parser.add_argument("--manifest", required=True, type=Path, help="manifest.json of the corpus that it reverses")
    parser.add_argument("--output", required=True, type=Path, help="folder for ids, texts, counts and manifest")


def main(arguments: argparse.Namespace) -> None:
    reverse_pairs(arguments.corpus, load_manifest(arguments.manifest), arguments.output)


def reverse_pairs(name: str, forward: Corpus, folder: Path) -> None:
    """Write the reverse of a prepared corpus to `folder` as `name`, the manifest last."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = read_json(forward.folder / "manifest.json")
    occurs = forward.counts + forward.source_counts > 0
    occurs[: len(SPECIAL)] = True
    symbols = [symbol for symbol, kept in zip(forward.symbols, occurs, strict=True) if kept]
    kept = len(symbols)
    # The former source is the new target side; unused fillers of the vocabulary are created anew.
    final_ids, symbols, counts = order_by_frequency(symbols, forward.source_counts[:kept], forward.counts[:kept])
    source_counts = np.zeros(len(symbols), dtype=np.int64)
    source_counts[final_ids] = forward.counts[:kept]
    final_ids = final_ids.astype(id_type(symbols))
    splits = {}
    for split, of in manifest["splits"].items():
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            _exchange(forward.folder / split, folder / split, side, other, final_ids)
            write_pieces(folder / split, side, symbols)
        splits[split] = describe_split(folder / split, of["pairs"])
    load_tokenizer(forward.folder).save(folder)
    described = {key: manifest[key] for key in ("kind", "preparation", "tokenizer", "dropped")} | {
        "corpus": name,
        "languages": dict(zip(SIDES, (manifest["languages"][side] for side in reversed(SIDES)), strict=True)),
        "splits": splits,
    }
    write_manifest(folder, described, symbols, counts, source_counts)


def _exchange(source: Path, target: Path, side: str, other: str, final_ids: np.ndarray) -> None:
    """Write one side's ids and text from the other side of the original corpus."""
    copy_file(text_path(source, other), text_path(target, side))
    ids = np.load(ids_path(source, other), mmap_mode="r", allow_pickle=False)
    with atomic_path(ids_path(target, side)) as temporary:
        out = np.lib.format.open_memmap(temporary, "w+", dtype=final_ids.dtype, shape=ids.shape)
        for at in range(0, len(ids), CHUNK):
            out[at : at + CHUNK] = final_ids[ids[at : at + CHUNK]]
        out.flush()
        del out
