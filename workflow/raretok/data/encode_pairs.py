"""The command `encode-pairs`: a parallel text becomes ids of both sides, counts, a joint vocabulary and a manifest.

Three passes, none of which holds the text. The first cleans and prepares lines (`preparation`) into a file beside the
output, and keeps a digest of every training pair to hold pairs out by. Then the tokenizer is learnt on the training
pairs; the second pass writes raw ids, and the third puts them in the order of target-side training frequency.
"""

import argparse
import contextlib
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raretok.data import held_out, pieces
from raretok.data.catalogue import find_corpus, load_corpora, pair_files, tokenizer_file
from raretok.data.corpora import COUNTS, SOURCE_COUNTS, VOCABULARY, digest
from raretok.data.encode import LEARNT_BYTES, add_counts, order_by_frequency, write_ids
from raretok.data.parallel import PairFiles, read_pairs
from raretok.data.preparation import Preparation, described, reason_to_drop
from raretok.data.tokenizers import END, SPECIAL
from raretok.errors import UserError
from raretok.files import atomic_path, write_json

SIDES = ("source", "target")
# Pairs that are made into pieces together.
BATCH = 10_000
# Ids of one step of the third pass.
CHUNK = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", required=True, type=Path, help="the list of corpora, config/corpora.yaml")
    parser.add_argument("--corpus", required=True, help="a corpus of that list, kind translation")
    parser.add_argument(
        "--texts", type=Path, default=Path("."), help="folder that holds resources/ (default: this one)"
    )
    parser.add_argument("--output", required=True, type=Path, help="folder for ids, texts, counts and manifest")


def main(arguments: argparse.Namespace) -> None:
    corpora = load_corpora(arguments.corpora)
    corpus = find_corpus(corpora, arguments.corpus)
    files = pair_files(corpora, arguments.corpus, arguments.texts)
    model = [arguments.texts / path for path in tokenizer_file(corpora, arguments.corpus)]
    encode_pairs(arguments.corpus, corpus, files, arguments.output, *model)


@dataclass
class Prepared:
    """Pairs of one split in a file: prepared and raw lines of both sides between tabs, one pair a line."""

    stream: object
    digests: bytearray = field(default_factory=bytearray)
    dropped: Counter = field(default_factory=Counter)

    def batches(self, chosen: np.ndarray | None = None) -> Iterator[list[list[str]]]:
        """Four lists of lines at a time: prepared source and target, raw source and target.

        chosen: which pairs, by place, (pairs,) bool; all without.
        """
        self.stream.seek(0)
        batch = []
        for place, line in enumerate(self.stream):
            if chosen is None or chosen[place]:
                batch.append(line.decode().rstrip("\n").split("\t"))
            if len(batch) == BATCH:
                yield [list(column) for column in zip(*batch, strict=True)]
                batch = []
        if batch:
            yield [list(column) for column in zip(*batch, strict=True)]


def encode_pairs(
    name: str, corpus: Mapping, files: Mapping[str, list[PairFiles]], folder: Path, model: Path | None = None
) -> None:
    """Write the prepared form of `corpus` (its entry in config/corpora.yaml) to `folder`, the manifest last.

    files: texts of each split, joined in their order; `domain.<name>` are further test sets. A split without files is
    held out of the training text. model: where the entry's tokenizer is a published one.

    Raises UserError for what `read_pairs`, `held_out.assign` and `pieces.learn` refuse, and where cleaning leaves a
    split without a pair.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entry = corpus["preparation"]
    with contextlib.ExitStack() as stack:
        # Beside the output, where there is room for it; gone when this ends, however it ends.
        def temporary():
            return stack.enter_context(tempfile.TemporaryFile(dir=folder))

        texts = {
            split: _prepare(parts, corpus, Prepared(temporary()), split == "train") for split, parts in files.items()
        }
        splits = _splits(name, corpus, texts)
        tokenizer = _tokenizer(name, corpus["tokenizer"], splits["train"], model)
        numbers = {piece: number for number, piece in enumerate(SPECIAL)}
        written = {}
        for split, (text, chosen) in splits.items():
            cleaning = entry if split == "train" and entry.get("measure") == "pieces" else {}
            streams = {side: temporary() for side in SIDES}
            written[split] = _write_raw(folder / split, text, chosen, tokenizer, numbers, streams, cleaning)
            if not written[split].pairs:
                raise UserError(f"corpus {name} of config/corpora.yaml has no pair left in its {split} split")
        train = written["train"]
        final_ids, symbols, counts = order_by_frequency(list(numbers), train.counts["target"], train.counts["source"])
        source_counts = np.zeros(len(symbols), dtype=np.int64)
        np.add.at(source_counts, final_ids[: len(train.counts["source"])], train.counts["source"])
        final_ids = final_ids.astype(np.dtype("<u2" if len(symbols) <= 2**16 else "<u4"))
        described_splits = {
            split: _write_final(folder / split, raw, final_ids, symbols) for split, raw in written.items()
        }
    tokenizer.save(folder)
    write_json(folder / VOCABULARY, symbols)
    for file, array in ((COUNTS, counts), (SOURCE_COUNTS, source_counts)):
        with atomic_path(folder / file) as path:
            np.save(path, array, allow_pickle=False)
    manifest = {
        "corpus": name,
        "kind": corpus["kind"],
        "languages": dict(corpus["languages"]),
        "types": len(symbols),
        "preparation": described(entry),
        "tokenizer": tokenizer.described,
        "special": list(range(len(SPECIAL))),
        "splits": described_splits,
        "dropped": dict(texts["train"].dropped + train.dropped),
        "vocabulary": hashlib.sha256((folder / VOCABULARY).read_bytes()).hexdigest(),
        "counts": hashlib.sha256(counts.tobytes()).hexdigest(),
        "source_counts": hashlib.sha256(source_counts.tobytes()).hexdigest(),
    }
    write_json(folder / "manifest.json", manifest | {"sha256": digest(manifest)})


def _prepare(parts: list[PairFiles], corpus: Mapping, text: Prepared, train: bool) -> Prepared:
    """First pass: read, prepare and, in the training split, clean by words."""
    entry = corpus["preparation"]
    source, target = (Preparation(entry, corpus["languages"][side]) for side in SIDES)
    by_words = train and entry.get("measure", "words") == "words"
    keyed = bool(corpus.get("held_out") or entry.get("deduplicate"))
    for files in parts:
        for pair in read_pairs(files, entry.get("empty", "error"), text.dropped):
            prepared = source.apply(pair[0]), target.apply(pair[1])
            reason = None
            if not all(prepared):
                reason = "empty"  # of characters that print nothing
            elif by_words:
                reason = reason_to_drop(*(len(line.split()) for line in prepared), entry)
            if reason:
                text.dropped[reason] += 1
                continue
            text.stream.write(("\t".join((*prepared, *pair)) + "\n").encode())
            if keyed:
                text.digests += held_out.digest(*pair)
    return text


def _splits(name: str, corpus: Mapping, texts: Mapping[str, Prepared]) -> dict[str, tuple[Prepared, np.ndarray | None]]:
    """Every split's text and which of its pairs are in it; `train`, `valid`, `test`, then domains."""
    train, chosen = texts["train"], {}
    if train.digests:
        size = held_out.DIGEST
        published = [bytes(texts[split].digests) for split in ("valid", "test") if split in texts]
        elsewhere = {digests[at : at + size] for digests in published for at in range(0, len(digests), size)}
        pairs = np.frombuffer(bytes(train.digests), dtype=f"V{size}")
        deduplicate = corpus["preparation"].get("deduplicate", False)
        part, reasons = held_out.assign(pairs, corpus.get("held_out"), elsewhere, deduplicate)
        train.dropped.update(reasons)
        chosen = {split: part == number for number, split in enumerate(held_out.SPLITS)}
    splits = {}
    for split in held_out.SPLITS:
        own = split == "train" or split not in texts
        splits[split] = (train, chosen.get(split)) if own else (texts[split], None)
        if own and split != "train" and (split not in chosen or not chosen[split].any()):
            raise UserError(
                f"corpus {name} of config/corpora.yaml has no {split} split; give it files or hold pairs out"
            )
    return splits | {split: (text, None) for split, text in texts.items() if split.startswith("domain.")}


def _tokenizer(name: str, entry: Mapping, train: tuple[Prepared, np.ndarray | None], model: Path | None):
    """The corpus's tokenizer: published, or learnt on both sides of the training text."""
    if "model" in entry:
        if model is None:
            raise UserError(f"corpus {name} of config/corpora.yaml takes a published model; give its file")
        return pieces.published(model)
    text, chosen = train
    text.stream.seek(0, 2)
    # Prepared and raw lines lie there, of which the prepared are learnt on.
    every = -(-text.stream.tell() // (2 * LEARNT_BYTES))
    return pieces.learn(name, entry, _learnt_lines(text, chosen, every), learnt_on_every=every)


def _learnt_lines(text: Prepared, chosen: np.ndarray | None, every: int) -> Iterator[str]:
    """Both prepared lines of every `every`-th training pair."""
    position = 0
    for source, target, _, _ in text.batches(chosen):
        for place in range(-position % every, len(source), every):
            yield source[place]
            yield target[place]
        position += len(source)


@dataclass
class Raw:
    """Raw ids of a split (uint32, in a temporary file a side), how many, and their counts by raw id."""

    streams: Mapping[str, object]
    checksum: object
    pairs: int = 0
    tokens: Counter = field(default_factory=Counter)
    counts: dict[str, np.ndarray] = field(default_factory=lambda: {side: np.zeros(0, np.int64) for side in SIDES})
    dropped: Counter = field(default_factory=Counter)


def _write_raw(
    base: Path,
    text: Prepared,
    chosen: np.ndarray | None,
    tokenizer,
    numbers: dict[str, int],
    streams: Mapping[str, object],
    cleaning: Mapping,
) -> Raw:
    """Second pass: raw ids of a split and its plain text, `<base>.source.txt` and `<base>.target.txt`.

    numbers: raw id of each piece, which grows with new ones. cleaning: pairs are left out by their numbers of pieces.
    """
    raw = Raw(streams, hashlib.sha256())
    with contextlib.ExitStack() as stack:
        plain = [
            stack.enter_context(stack.enter_context(atomic_path(f"{base}.{side}.txt")).open("w", encoding="utf-8"))
            for side in SIDES
        ]
        for *prepared, source, target in text.batches(chosen):
            both = [tokenizer.split(lines) for lines in prepared]
            kept = []
            for place, pair in enumerate(zip(*both, strict=True)):
                lengths = [len(line) for line in pair]
                reason = "empty" if 0 in lengths else reason_to_drop(*lengths, cleaning)
                if reason:
                    raw.dropped[reason] += 1
                else:
                    kept.append(place)
            raw.pairs += len(kept)
            for side, lines, split, stream in zip(SIDES, (source, target), both, plain, strict=True):
                ids = _number([split[place] for place in kept], numbers)
                raw.streams[side].write(ids.tobytes())
                raw.tokens[side] += len(ids)
                raw.counts[side] = add_counts(raw.counts[side], np.bincount(ids))
                written = "".join(f"{lines[place]}\n" for place in kept)
                raw.checksum.update(written.encode())
                stream.write(written)
    return raw


def _number(lines: list[list[str]], numbers: dict[str, int]) -> np.ndarray:
    """Raw ids of lines of pieces, each closed by END, (tokens,) uint32; a new piece gets the next id."""
    flat = []
    for line in lines:
        for piece in line:
            if piece not in numbers:
                numbers[piece] = len(numbers)
        flat += map(numbers.__getitem__, line)
        flat.append(END)
    return np.array(flat, dtype=np.uint32)


def _write_final(base: Path, raw: Raw, final_ids: np.ndarray, symbols: list[str]) -> dict:
    """Third pass: final ids `<base>.<side>.npy` and the same as pieces, `<base>.<side>.tok.txt`; what the manifest says."""
    for side in SIDES:
        target = base.with_name(f"{base.name}.{side}.npy")
        raw.checksum.update(write_ids(target, raw.streams[side], final_ids, raw.tokens[side]).encode())
        _write_pieces(base.with_name(f"{base.name}.{side}.tok.txt"), target, symbols)
    return {
        "pairs": raw.pairs,
        "tokens": raw.tokens["target"],
        "source_tokens": raw.tokens["source"],
        "sha256": raw.checksum.hexdigest(),
    }


def _write_pieces(target: Path, ids_path: Path, symbols: list[str]) -> None:
    """A line of pieces between blanks for each line of ids, END left out."""
    ids = np.load(ids_path, mmap_mode="r", allow_pickle=False)
    shown = np.array([f" {symbol}" for symbol in symbols], dtype=object)
    shown[END] = "\n"
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8") as stream:
        begins = True
        for at in range(0, len(ids), CHUNK):
            text = "".join(shown[ids[at : at + CHUNK]]).replace("\n ", "\n")
            stream.write(text[1:] if begins else text)
            begins = text.endswith("\n")
