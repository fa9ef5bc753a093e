"""The command `reverse-pairs`: a prepared translation corpus with its sides swapped.

Texts, pieces and the joint tokenizer stay the same; ids are sorted by the counts of the former source side.
"""

import argparse
from itertools import compress
from pathlib import Path

from rarepapers.core.files import copy_file, read_json
from rarepapers.core.special_types import SPECIAL
from rarepapers.data.codec import PairCodec
from rarepapers.data.pairs.pair_folder import SIDES, side_file, write_split
from rarepapers.data.pairs.preparation import preparations_of
from rarepapers.data.pairs.reference_bleu import reference_bleu
from rarepapers.data.prepared_corpus import Corpus, load_manifest
from rarepapers.data.text.encode_text import count_final, order_by_frequency, write_manifest
from rarepapers.data.tokenizers import load_tokenizer
from rarepapers.metrics.translation_scores import Scoring


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
    symbols = list(compress(forward.symbols, occurs))
    own, others = forward.source_counts[: len(symbols)], forward.counts[: len(symbols)]
    # The former source is the new target side; unused fillers of the vocabulary are created anew.
    final_ids, symbols = order_by_frequency(symbols, own, others)
    splits = {}
    for split, of in manifest["splits"].items():
        ids = {}
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            copy_file(side_file(forward.folder / split, other, "txt"), side_file(folder / split, side, "txt"))
            ids[side] = forward.ids(split, other)
        splits[split] = write_split(folder / split, ids, final_ids, symbols, of["pairs"])
    tokenizer = load_tokenizer(forward.folder)
    tokenizer.save(folder)
    languages = dict(zip(SIDES, (manifest["languages"][side] for side in reversed(SIDES)), strict=True))
    counts, source_counts = (count_final(final_ids, counted, len(symbols)) for counted in (own, others))
    preparation = manifest["preparation"]
    codec = PairCodec(symbols, tokenizer, counts + source_counts > 0, preparations_of(preparation, languages))
    scoring = Scoring.of(languages["target"], preparation)
    described = {key: manifest[key] for key in ("kind", "preparation", "tokenizer", "dropped")} | {
        "corpus": name,
        "languages": languages,
        "splits": splits,
        "types": len(symbols),
        "special": list(range(len(SPECIAL))),
        "reference_bleu": reference_bleu(folder, splits, codec, scoring),
    }
    write_manifest(folder, described, symbols, counts=counts, source_counts=source_counts)
