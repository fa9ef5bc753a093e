"""The command `encode`: token ids, counts, vocabulary and manifest of a language corpus.

A text is read in batches of lines and its raw ids go to a file, so memory does not grow with the text. Once the counts
of the training split are known, a second pass sorts the raw ids by frequency. Lines are stripped; each becomes its
tokens and </s>, an empty line </s> alone.
"""

import argparse
import contextlib
import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, write_json
from rarepapers.core.special_types import SPECIAL, UNKNOWN
from rarepapers.data.catalogue import SPLITS, add_entry_arguments
from rarepapers.data.lines import batches_of, numbered_lines
from rarepapers.data.prepared_corpus import VOCABULARY, checksum_of, digest
from rarepapers.data.tokenizers import published_file, read_published, tokenizer_class

# Characters per batch, and bytes of the longest accepted line, since a line is tokenised in memory as a whole.
BATCH, LONGEST_LINE = 2**20, 2**22
# Maximum size of the text from which merges are learnt, because the library keeps its distinct words in memory. From a
# larger text every k-th line is used, which shows the most common pairs equally well.
LEARNT_BYTES = 2**28
# Raw ids per chunk of the second pass.
CHUNK = 2**20
# The vocabulary size is rounded up to a multiple of this, as in fairseq.
MULTIPLE = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entry_arguments(parser)
    for split in SPLITS:
        parser.add_argument(f"--{split}", required=True, type=Path, help=f"the {split} split, one text a line (UTF-8)")
    parser.add_argument(
        "--published", nargs="*", type=Path, default=[], help="files of a published tokenizer, if the corpus has one"
    )
    parser.add_argument("--output", required=True, type=Path, help="folder for ids, counts, vocabulary and manifest")


def main(arguments: argparse.Namespace) -> None:
    if arguments.entry["kind"] != "language":
        raise UserError(f"corpus {arguments.corpus} has kind {arguments.entry['kind']}; use prepare")
    texts = {split: getattr(arguments, split) for split in SPLITS}
    encode(arguments.corpus, arguments.entry, texts, arguments.output, *arguments.published)


def encode(name: str, corpus: Mapping, texts: Mapping[str, Path], folder: Path, published: Path | None = None) -> None:
    """Write the prepared form of `corpus` (its entry in config/corpora.yaml) to `folder`, the manifest last.

    texts: the file of each split. published: the published tokenizer, if the entry uses one.

    Raises UserError from the tokenizer and from `numbered_lines`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(name, corpus["tokenizer"], texts["train"], published)
    with contextlib.ExitStack() as stack:
        # In the output folder, where there is room; removed at the end in any case.
        raw = {split: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for split in SPLITS}
        counts = np.zeros(0, dtype=np.int64)
        for split in SPLITS:
            for lines in batches_of(read_lines(texts[split]), BATCH):
                ids = np.array(tokenizer.encode(lines), dtype=np.uint32)
                raw[split].write(ids.tobytes())
                if split == "train":
                    counts = add_counts(counts, np.bincount(ids))
        final_ids, symbols = order_by_frequency(tokenizer.symbols, counts, types=tokenizer.kept)
        counts = count_final(final_ids, counts, len(symbols))
        splits = {}
        for split in SPLITS:
            ids = np.memmap(raw[split], np.uint32, "r")
            splits[split] = {"tokens": len(ids), "sha256": write_ids(folder / f"{split}.npy", ids, final_ids)}
    tokenizer.save(folder)
    manifest = {
        "corpus": name,
        "kind": corpus["kind"],
        "types": len(symbols),
        "tokenizer": tokenizer.described,
        "special": list(range(len(SPECIAL))),
        "splits": splits,
    }
    write_manifest(folder, manifest, symbols, counts=counts)


def write_manifest(folder: Path, described: Mapping, symbols: list[str], **counts: np.ndarray) -> None:
    """Write vocabulary, counts and, last, the manifest: `described` with their checksums.

    counts: `counts` and, for a translation, `source_counts`, (types,) int64 each.
    """
    write_json(folder / VOCABULARY, symbols)
    checksums = {"vocabulary": checksum_of([folder / VOCABULARY])}
    for name, array in counts.items():
        with atomic_path(folder / f"{name}.npy") as temporary:
            np.save(temporary, array, allow_pickle=False)
        checksums[name] = checksum_of([array])
    manifest = described | checksums
    write_json(folder / "manifest.json", manifest | {"sha256": digest(manifest)})


def read_lines(path: Path) -> Iterator[str]:
    """The stripped lines of a text; errors as in `numbered_lines`."""
    return (line.strip() for _, line in numbered_lines(path, LONGEST_LINE))


def order_by_frequency(
    symbols: list[str], counts: np.ndarray, more: np.ndarray | None = None, types: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """The mapping from raw ids to ids by decreasing training frequency, ties by text.

    symbols: text of every raw id. counts: of the training split, (at most raw ids,). more: of its other side, if there
    is one; these do not change the order. types: keep only this many of the most frequent types, including special
    ones. Types that occur on neither side, or are not kept, become UNKNOWN; the vocabulary size is rounded up to a
    multiple of MULTIPLE.

    Returns the final id of every raw id, (raw ids,), in the type that ids are stored in, and the vocabulary.
    """
    counts = add_counts(np.zeros(len(symbols), dtype=np.int64), counts)
    occurs = counts if more is None else add_counts(counts, more)
    occurring = [raw for raw in range(len(SPECIAL), len(symbols)) if occurs[raw]]
    order = [*range(len(SPECIAL)), *sorted(occurring, key=lambda raw: (-counts[raw], symbols[raw]))][:types]
    unused = [f"<unused {k}>" for k in range(-len(order) % MULTIPLE)]
    vocabulary = [symbols[raw] for raw in order] + unused
    final_ids = np.full(len(symbols), UNKNOWN, dtype="<u2" if len(vocabulary) <= 2**16 else "<u4")
    final_ids[order] = np.arange(len(order))
    return final_ids, vocabulary


def count_final(final_ids: np.ndarray, counts: np.ndarray, types: int) -> np.ndarray:
    """Counts of the final ids, (types,) int64, from those of the first raw ids."""
    total = np.zeros(types, dtype=np.int64)
    np.add.at(total, final_ids[: len(counts)], counts)
    return total


def _tokenizer(name: str, entry: Mapping, text: Path, published: Path | None):
    """The tokenizer of a corpus's entry: published, or learnt on `text`."""
    if published_file(entry) is not None:
        return read_published(name, entry, published)
    # A missing text is an error of `read_lines`.
    size = text.stat().st_size if text.is_file() else 0
    every = max(1, -(-size // LEARNT_BYTES))
    lines = batches_of(islice(read_lines(text), 0, None, every), BATCH)
    return tokenizer_class(entry["name"]).learn(name, entry, lines, learnt_on_every=every)


def write_ids(target: Path, raw: np.ndarray, final_ids: np.ndarray) -> str:
    """Write the final ids of the raw ids `raw`, (tokens,), as a flat npy; returns the sha256 of the ids."""
    checksum = hashlib.sha256()
    header = {"descr": final_ids.dtype.str, "fortran_order": False, "shape": raw.shape}
    with atomic_path(target) as temporary, temporary.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for at in range(0, len(raw), CHUNK):
            ids = final_ids[raw[at : at + CHUNK]].tobytes()
            checksum.update(ids)
            stream.write(ids)
    return checksum.hexdigest()


def add_counts(counts: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The sum of two arrays of counts, as long as the longer one."""
    total = np.zeros(max(len(counts), len(more)), dtype=np.int64)
    total[: len(counts)] += counts
    total[: len(more)] += more
    return total
