"""The command `prepare`: character ids, counts and manifest of a text."""

import argparse
import hashlib
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, write_json
from rarepapers.data.catalogue import add_entry_arguments
from rarepapers.data.lines import without_marks
from rarepapers.data.prepared_corpus import digest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entry_arguments(parser)
    parser.add_argument("--text", required=True, type=Path, help="the corpus's text (UTF-8)")
    parser.add_argument("--output", required=True, type=Path, help="folder for train.npy, valid.npy, manifest.json")


def main(arguments: argparse.Namespace) -> None:
    if arguments.entry["kind"] != "characters":
        raise UserError(f"corpus {arguments.corpus} has kind {arguments.entry['kind']}; use encode")
    prepare(arguments.corpus, arguments.entry, arguments.text, arguments.output)


def prepare(name: str, corpus: Mapping, text_path: Path, folder: Path) -> None:
    """Write the prepared form of `corpus` (its entry in config/corpora.yaml) to `folder`, the manifest last.

    Ids have the smallest unsigned type that holds the 2 x types ids of both languages.

    Raises UserError if the text is empty, not UTF-8, too short to split, or has another number of symbols than the
    entry.
    """
    text = _read(text_path)
    symbols = sorted(set(text))
    if len(symbols) != corpus.get("symbols", len(symbols)):
        raise UserError(
            f"{text_path} has {len(symbols)} different characters, but corpus {name} of config/corpora.yaml "
            f"says symbols: {corpus['symbols']}; correct that number if the text is right"
        )
    code_points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    # Symbols are sorted code points: a code point's index among them is its id.
    ids = np.searchsorted(np.array([ord(symbol) for symbol in symbols], dtype="<u4"), code_points)
    ids = ids.astype(np.min_scalar_type(2 * len(symbols) - 1).newbyteorder("<"))
    # The last split takes what rounding leaves.
    *shares, _ = corpus["splits"].values()
    ends = [int(share * len(ids)) for share in accumulate(shares)]
    arrays = dict(zip(corpus["splits"], np.split(ids, ends), strict=True))
    splits = {}
    for part, array in arrays.items():
        if len(array) < 2:
            raise UserError(
                f"{text_path} has only {len(text)} characters, too few for the {part} split of corpus "
                f"{name}; take a longer text or another share in config/corpora.yaml"
            )
        with atomic_path(folder / f"{part}.npy") as temporary:
            np.save(temporary, array, allow_pickle=False)
        splits[part] = {"tokens": len(array), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
    manifest = {
        "corpus": name,
        "kind": corpus["kind"],
        "symbols": symbols,
        "types": len(symbols),
        "counts": np.bincount(arrays["train"], minlength=len(symbols)).tolist(),
        "splits": splits,
    }
    write_json(folder / "manifest.json", manifest | {"sha256": digest(manifest)})


def _read(path: Path) -> str:
    try:
        # Bytes, because text mode would change line ends.
        text = without_marks(path.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; download or synthesise it first") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error.reason} at byte {error.start}; convert or replace it") from error
    if not text:
        raise UserError(f"{path} is empty; get it again")
    return text
