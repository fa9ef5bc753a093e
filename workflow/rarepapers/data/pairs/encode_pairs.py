"""The command `encode-pairs`: ids of both sides, counts, joint vocabulary and manifest of a parallel text.

It takes three passes, none of which holds the text in memory. The first one cleans and prepares lines (`preparation`)
into a temporary file, and keeps a digest of every training pair for held-out splits. Then the tokenizer is learnt on
the training pairs. The second pass writes raw ids, and the third one sorts ids by target-side training frequency.
"""

import argparse
import contextlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import SPECIAL
from rarepapers.data.catalogue import SPLITS, PairFiles, add_entry_arguments
from rarepapers.data.codec import PairCodec
from rarepapers.data.pairs import held_out
from rarepapers.data.pairs.pair_folder import SIDES, Raw, write_raw, write_split
from rarepapers.data.pairs.parallel_text import find_pair, plain_line, read_pairs
from rarepapers.data.pairs.preparation import described, preparations_of, reason_to_drop
from rarepapers.data.pairs.reference_bleu import reference_bleu
from rarepapers.data.text.encode_text import LEARNT_BYTES, count_final, order_by_frequency, write_manifest
from rarepapers.data.tokenizers import published_file, read_published, tokenizer_class
from rarepapers.metrics.translation_scores import Scoring

# Number of pairs that are tokenised at a time.
BATCH = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entry_arguments(parser)
    parser.add_argument(
        "--texts", required=True, type=json.loads, help="JSON: each split to its [source, target, columns or null]"
    )
    parser.add_argument(
        "--published", nargs="*", type=Path, default=[], help="files of a published tokenizer, if the corpus has one"
    )
    parser.add_argument("--output", required=True, type=Path, help="folder for ids, texts, counts and manifest")


def main(arguments: argparse.Namespace) -> None:
    if "reverse_of" in arguments.entry:
        raise UserError(f"corpus {arguments.corpus} is another one's reverse; use reverse-pairs")
    files = {
        split: [PairFiles(Path(source), Path(target), columns and tuple(columns)) for source, target, columns in pairs]
        for split, pairs in arguments.texts.items()
    }
    encode_pairs(arguments.corpus, arguments.entry, files, arguments.output, *arguments.published)


@dataclass
class Prepared:
    """Pairs in a temporary file: prepared and plain lines of both sides, separated by tabs, one pair per line.

    parts: the files that they come from. digests: of the pairs, concatenated, if any are held out. dropped: numbers of
    pairs left out, by reason.
    """

    parts: list[PairFiles]
    stream: object
    digests: bytearray = field(default_factory=bytearray)
    dropped: Counter = field(default_factory=Counter)

    def batches(self, chosen: np.ndarray | None = None) -> Iterator[list[list[str]]]:
        """Four lists of lines at a time: prepared source and target, plain source and target.

        chosen: mask of the pairs, (pairs,) bool; by default all.
        """
        self.stream.seek(0)
        lines = self.stream if chosen is None else compress(self.stream, chosen)
        while batch := [line.decode().rstrip("\n").split("\t") for line in islice(lines, BATCH)]:
            yield [list(column) for column in zip(*batch, strict=True)]


# A split: its file, and the mask of its pairs.
Split = tuple[Prepared, np.ndarray | None]


def encode_pairs(
    name: str, corpus: Mapping, files: Mapping[str, list[PairFiles]], folder: Path, published: Path | None = None
) -> None:
    """Write the prepared form of `corpus` (its entry in config/corpora.yaml) to `folder`, the manifest last.

    files: texts of each split, concatenated in order; `domain.<name>` are further test sets. A split without files is
    held out of the training text. published: the published tokenizer, if the entry uses one.

    Raises UserError from `read_pairs`, `held_out.assign` and the tokenizer, and if a split has no pair left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entry = corpus["preparation"]
    scoring = Scoring.of(corpus["languages"]["target"], entry)
    with contextlib.ExitStack() as stack:

        def temporary():
            # In the output folder, where there is room; removed at the end in any case.
            return stack.enter_context(tempfile.TemporaryFile(dir=folder))

        texts = {split: _prepare(parts, corpus, split, temporary()) for split, parts in files.items()}
        splits = _splits(corpus, texts)
        tokenizer = _tokenizer(name, corpus["tokenizer"], splits["train"], published)
        numbers = {piece: number for number, piece in enumerate(SPECIAL)}
        raw = {}
        for split, (text, chosen) in splits.items():
            cleaning = entry if split == "train" and entry.get("measure") == "pieces" else {}
            streams = {side: temporary() for side in SIDES}
            raw[split] = write_raw(folder / split, text.batches(chosen), tokenizer, numbers, streams, cleaning)
            if raw[split].emptied and entry.get("empty", "error") == "error":
                raise _emptied(text.parts, raw[split].emptied, "the tokenizer")
            if not raw[split].pairs:
                raise _nothing_left(name, split)
        counted = raw["train"].counts
        final_ids, symbols = order_by_frequency(list(numbers), counted["target"], counted["source"])
        counts, source_counts = (count_final(final_ids, counted[side], len(symbols)) for side in ("target", "source"))
        written = {}
        for split, of in raw.items():
            ids = {side: np.memmap(stream, np.uint32, "r") for side, stream in of.streams.items()}
            written[split] = write_split(folder / split, ids, final_ids, symbols, of.pairs)
    tokenizer.save(folder)
    codec = PairCodec(symbols, tokenizer, counts + source_counts > 0, preparations_of(entry, corpus["languages"]))
    manifest = {
        "corpus": name,
        "kind": corpus["kind"],
        "languages": dict(corpus["languages"]),
        "preparation": described(entry),
        "tokenizer": tokenizer.described,
        "splits": written,
        "dropped": _all_dropped(texts, raw),
        "types": len(symbols),
        "special": list(range(len(SPECIAL))),
        "reference_bleu": reference_bleu(folder, written, codec, scoring),
    }
    write_manifest(folder, manifest, symbols, counts=counts, source_counts=source_counts)


def _prepare(parts: list[PairFiles], corpus: Mapping, split: str, stream) -> Prepared:
    """First pass: read and prepare a split; for training text also clean by tokens.

    With deduplication, a digest of every distinct pair is kept, about 100 bytes each.
    """
    entry, text = corpus["preparation"], Prepared(parts, stream)
    sides = preparations_of(entry, corpus["languages"])
    cleans = (
        split == "train" and entry.get("measure", "tokens") == "tokens" and entry.keys() & {"max_length", "max_ratio"}
    )
    keyed = bool(corpus.get("held_out") or entry.get("deduplicate")) and not split.startswith("domain.")
    once, seen = split == "train" and entry.get("deduplicate"), set()
    for files in parts:
        for pair in read_pairs(files, entry.get("empty", "error"), text.dropped):
            digest = held_out.digest(*pair) if keyed else b""
            if once:
                if digest in seen:
                    text.dropped["repeated"] += 1
                    continue
                seen.add(digest)
            prepared = [sides[side].apply(line) for side, line in zip(SIDES, pair, strict=True)]
            reason = None
            if not all(prepared):  # only non-printing characters
                if entry.get("empty", "error") == "error":
                    raise _emptied(parts, tuple(map(plain_line, pair)), "preparation")
                reason = "empty"
            elif cleans:
                lengths = (sides[side].length(line) for side, line in zip(SIDES, prepared, strict=True))
                reason = reason_to_drop(*lengths, entry)
            if reason:
                text.dropped[reason] += 1
                continue
            # Byte order marks of joined files go only now: Autshumato has some, and which of its pairs are held out
            # depends on the digests of all lines as published.
            stream.write(("\t".join(map(plain_line, (*prepared, *pair))) + "\n").encode())
            text.digests += digest
    return text


def _splits(corpus: Mapping, texts: Mapping[str, Prepared]) -> dict[str, Split]:
    """All splits: `train`, `valid`, `test`, then domains."""
    train, chosen = texts["train"], {}
    if train.digests:
        size = held_out.DIGEST
        others = [bytes(texts[split].digests) for split in ("valid", "test") if split in texts]
        elsewhere = {digests[at : at + size] for digests in others for at in range(0, len(digests), size)}
        pairs = np.frombuffer(bytes(train.digests), dtype=f"V{size}")
        part = held_out.assign(pairs, corpus.get("held_out"), elsewhere)
        train.dropped["in another split"] += int((part == held_out.DROPPED).sum())
        chosen = {split: part == number for number, split in enumerate(SPLITS)}
    splits = {"train": (train, chosen.get("train"))}
    for split in ("valid", "test"):
        splits[split] = (texts[split], None) if split in texts else (train, chosen[split])
    return splits | {split: (text, None) for split, text in texts.items() if split not in SPLITS}


def _tokenizer(name: str, entry: Mapping, train: Split, published: Path | None):
    """The corpus's tokenizer: published, or learnt on both sides of the training text."""
    if published_file(entry) is not None:
        return read_published(name, entry, published)
    text, chosen = train
    size = text.stream.seek(0, 2)
    if not size or (chosen is not None and not chosen.any()):
        raise _nothing_left(name, "train")
    # The prepared lines, on which it is learnt, are half of the file.
    every = -(-size // (2 * LEARNT_BYTES))
    pairs = (pair for source, target, *_ in text.batches(chosen) for pair in zip(source, target, strict=True))
    lines = chain.from_iterable(islice(pairs, 0, None, every))
    return tokenizer_class(entry["name"]).learn(name, entry, lines, learnt_on_every=every)


def _all_dropped(texts: Mapping[str, Prepared], raw: Mapping[str, Raw]) -> dict[str, int]:
    """Pairs left out, by reason; of splits other than `train`, whose scores then differ from those of the published
    text, with the split's name.
    """
    train, others = {}, {}
    for split, of in raw.items():
        for reason, number in ((texts[split].dropped if split in texts else Counter()) + of.dropped).items():
            if split == "train":
                train[reason] = number
            else:
                others[f"{reason} in {split}"] = number
    return others | train


def _emptied(parts: list[PairFiles], pair: tuple[str, str], step: str) -> UserError:
    """The error for a pair with a side of which a step of the preparation leaves nothing."""
    (source, source_line), (target, target_line) = find_pair(parts, pair)
    return UserError(
        f"{source}, line {source_line}, or its partner, {target}, line {target_line}, is empty after {step}: "
        f"{pair[0][:40]!a}, {pair[1][:40]!a}; correct the text, or set preparation.empty to drop in config/corpora.yaml"
    )


def _nothing_left(name: str, split: str) -> UserError:
    return UserError(
        f"corpus {name} has no pair left in its {split} split; see `preparation` and `held_out` in config/corpora.yaml"
    )
