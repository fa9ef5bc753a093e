"""Prepared corpora of any kind; `load_manifest` opens and verifies one.

A prepared corpus is a folder with `train.npy`, `valid.npy` (unsigned integers, one dimension) and `manifest.json`; kind
`language` also has `test.npy`, `counts.npy`, `vocabulary.json` and `tokenizer.json`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.data.checksums import checksum_of

SIDES = ("source", "target")  # of a translation
VOCABULARY, COUNTS, SOURCE_COUNTS = "vocabulary.json", "counts.npy", "source_counts.npy"


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus.

    `kind`: `characters` (ids in code point order, `types` of them in one language), `language` or `translation` (ids by
    decreasing training frequency, of the target side). `counts`: training counts of each type (of the target side),
    (types,) int64. `splits`: number of tokens in each split (of the target side). `sha256`: identifies the data in
    results. `special`: ids that are not part of the text. `tokenizer`: its description for results. `languages`: for a
    translation, the names of `source` and `target`.
    """

    name: str
    kind: str
    folder: Path
    types: int
    counts: np.ndarray
    splits: Mapping[str, int]
    sha256: str
    special: tuple[int, ...]
    tokenizer: Mapping
    languages: Mapping[str, str] | None = None

    @cached_property
    def source_counts(self) -> np.ndarray:
        """Counts of each type in the source side of a translation's training split, (types,) int64."""
        return np.load(self.folder / SOURCE_COUNTS, allow_pickle=False)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The types as text, indexed by id; read on first use."""
        if self.kind == "characters":
            return tuple(read_json(self.folder / "manifest.json")["symbols"])
        path = self.folder / VOCABULARY
        try:
            symbols = tuple(read_json(path))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is missing or damaged; delete {self.folder} and run the workflow again") from error
        if len(symbols) != self.types:
            raise UserError(
                f"{path} has {len(symbols):,} types, but the manifest beside it says {self.types:,}; "
                f"delete {self.folder} and run the workflow again"
            )
        return symbols

    def tokens(self, split: str, at_least: int = 1) -> np.ndarray:
        """The ids of `split`, (tokens,) unsigned integers, as a memory map.

        Raises UserError if there are fewer than `at_least`, for example a context and the token to predict.
        """
        if self.splits[split] < at_least:
            raise UserError(
                f"the {split} split of corpus {self.name} has {self.splits[split]:,} tokens, "
                f"but {at_least:,} are needed; take a smaller model.context or "
                "a longer text in config/corpora.yaml"
            )
        return self.ids(split, "target" if self.kind == "translation" else None)

    def file(self, split: str, side: str | None = None) -> Path:
        """Path of the ids of `split`; for a translation, of its `source` or `target`."""
        return self.folder / (f"{split}.{side}.npy" if side else f"{split}.npy")

    def ids(self, split: str, side: str | None = None) -> np.ndarray:
        """The ids of `split`, for a translation of its `source` or `target`, (tokens,), as a memory map."""
        return np.load(self.file(split, side), mmap_mode="r", allow_pickle=False)


def load_manifest(path: Path | str) -> Corpus:
    """The prepared corpus whose manifest.json is at `path`.

    Everything is compared with the manifest's checksums once: with a flipped byte, another model would be trained under
    the same name. Raises UserError if the manifest, a split or the counts are missing, damaged or of another corpus.
    """
    path = Path(path)
    again = f"delete {path.parent} and run the workflow again"
    try:
        manifest = read_json(path)
        corpus = Corpus(
            name=manifest["corpus"],
            kind=manifest["kind"],
            folder=path.parent,
            types=manifest["types"],
            counts=_load_counts(path.parent, manifest, again),
            splits={part: described["tokens"] for part, described in manifest["splits"].items()},
            sha256=manifest["sha256"],
            special=tuple(manifest.get("special", ())),
            tokenizer=manifest.get("tokenizer", {"name": "characters"}),
            languages=manifest.get("languages"),
        )
        expected = _arrays(manifest)
        consistent = digest(manifest) == corpus.sha256 and corpus.counts.shape == (corpus.types,)
        consistent = consistent and len(manifest.get("symbols", corpus.counts)) == corpus.types
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; prepare the corpus first (rule prepare or encode)") from error
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not the manifest of a prepared corpus; {again}") from error
    if not consistent:
        raise UserError(f"{path} contradicts itself; {again}")
    for (part, side), tokens in expected.items():
        file = corpus.file(part, side)
        try:
            found = corpus.ids(part, side).shape
        except FileNotFoundError as error:
            raise UserError(f"{file} is missing beside {path}; {again}") from error
        except (ValueError, EOFError) as error:
            raise UserError(f"{file} is damaged or cut short; {again}") from error
        if found != (tokens,):
            raise UserError(f"{file} has shape {found}, but {path} says {tokens:,} tokens; {again}")
    for part, described in manifest["splits"].items():
        try:
            found = checksum_of(_named(corpus, part))
        except FileNotFoundError as error:
            raise UserError(f"{error.filename} is missing beside {path}; {again}") from error
        if found != described["sha256"]:
            raise UserError(f"the {part} split beside {path} is damaged: its checksum is another; {again}")
    return corpus


def _named(corpus: Corpus, split: str) -> Iterator[np.ndarray | Path]:
    """The contents of a split's checksum: its ids; for a translation, ids and plain lines of both sides."""
    if corpus.kind != "translation":
        yield corpus.ids(split)
        return
    for side in SIDES:
        yield corpus.ids(split, side)
        yield corpus.folder / f"{split}.{side}.txt"


def _arrays(manifest: Mapping) -> dict[tuple[str, str | None], int]:
    """Number of ids by split and, for a translation, side."""
    if manifest["kind"] != "translation":
        return {(part, None): described["tokens"] for part, described in manifest["splits"].items()}
    keys = {"source": "source_tokens", "target": "tokens"}
    return {(part, side): of[key] for part, of in manifest["splits"].items() for side, key in keys.items()}


def digest(manifest: Mapping) -> str:
    """sha256 that identifies the data of a manifest.

    It covers the canonical JSON of the splits' lengths and checksums and, except for kind `characters`, the checksums
    of vocabulary and counts.
    """
    named = manifest["splits"]
    if manifest["kind"] != "characters":
        keys = ("splits", "vocabulary", "counts", "source_counts")
        named = {key: manifest[key] for key in keys if key in manifest}
    return hashlib.sha256(json.dumps(named, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _load_counts(folder: Path, manifest: Mapping, again: str) -> np.ndarray:
    """Counts of the training split, (types,) int64, from the manifest or from the file named there."""
    if manifest["kind"] == "characters":
        return np.array(manifest["counts"], dtype=np.int64)
    path = folder / COUNTS
    try:
        counts = np.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing beside the manifest; {again}") from error
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is damaged or cut short; {again}") from error
    if hashlib.sha256(counts.tobytes()).hexdigest() != manifest["counts"]:
        raise UserError(f"{path} is not the one that the manifest beside it names; {again}")
    return counts
