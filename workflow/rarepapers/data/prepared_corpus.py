"""Prepared corpora of any kind; `load_manifest` opens and verifies one.

A prepared corpus is a folder with `train.npy`, `valid.npy` (unsigned integers, one dimension) and `manifest.json`; kind
`language` also has `test.npy`, `counts.npy`, `vocabulary.json` and `tokenizer.json`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json

SIDES = ("source", "target")  # of a translation
VOCABULARY, COUNTS, SOURCE_COUNTS = "vocabulary.json", "counts.npy", "source_counts.npy"


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus.

    `kind`: `characters` (ids in code point order, `types` of them in one language), `language` or `translation` (ids by
    decreasing training frequency, of the target side). `counts`: training counts of each type (of the target side),
    (types,) int64. `splits`: number of tokens in each split (of the target side). `sha256`: identifies the data in
    results. `special`: ids that are not part of the text. `tokenizer`: its description for results. For a translation,
    `languages`: the codes of `source` and `target`; `preparation`: of its lines; `reference_bleu`: value,
    signature and `pairs` of the BLEU that the references of each split but `train` have against themselves, once
    prepared and decoded.
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
    preparation: Mapping | None = None
    reference_bleu: Mapping[str, Mapping] = field(default_factory=dict)

    @cached_property
    def scoring(self):
        """How translations into the target language are scored, a `translation_scores.Scoring`."""
        from rarepapers.metrics.translation_scores import Scoring  # loads sacrebleu, which other kinds do not need

        return Scoring.of(self.languages["target"], self.preparation)

    @cached_property
    def source_counts(self) -> np.ndarray:
        """Counts of each type in the source side of a translation's training split, (types,) int64."""
        return _load(self.folder / SOURCE_COUNTS)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The types as text, indexed by id; read on first use."""
        if self.kind == "characters":
            return tuple(read_json(self.folder / "manifest.json")["symbols"])
        return tuple(read_json(self.folder / VOCABULARY))

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

    def ids(self, split: str, side: str | None = None) -> np.ndarray:
        """The ids of `split`, for a translation of its `source` or `target`, (tokens,), as a memory map."""
        return _load(self.folder / (f"{split}.{side}.npy" if side else f"{split}.npy"), mmap_mode="r")


def load_manifest(path: Path | str) -> Corpus:
    """The prepared corpus whose manifest.json is at `path`.

    Everything is compared with the manifest's checksums once: with a flipped byte, another model would be trained under
    the same name. Raises UserError if the manifest or a file beside it is missing, damaged or of another corpus.
    """
    path = Path(path)
    folder, again = path.parent, f"delete {path.parent} and run the workflow again"
    try:
        manifest = read_json(path)
        in_manifest = manifest["kind"] == "characters"
        corpus = Corpus(
            name=manifest["corpus"],
            kind=manifest["kind"],
            folder=folder,
            types=manifest["types"],
            counts=np.array(manifest["counts"], dtype=np.int64) if in_manifest else _load(folder / COUNTS),
            splits={part: described["tokens"] for part, described in manifest["splits"].items()},
            sha256=manifest["sha256"],
            special=tuple(manifest.get("special", ())),
            tokenizer=manifest.get("tokenizer", {"name": "characters"}),
            languages=manifest.get("languages"),
            preparation=manifest.get("preparation"),
            reference_bleu=manifest.get("reference_bleu", {}),
        )
        consistent = digest(manifest) == corpus.sha256 and corpus.counts.shape == (corpus.types,)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; prepare the corpus first (rule prepare or encode)") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not the manifest of a prepared corpus; {again}") from error
    if not consistent:
        raise UserError(f"{path} contradicts itself; {again}")
    checked = {part: (described["sha256"], _contents(corpus, part)) for part, described in manifest["splits"].items()}
    if not in_manifest:
        checked[COUNTS] = manifest["counts"], [corpus.counts]
        checked[VOCABULARY] = manifest["vocabulary"], [folder / VOCABULARY]
    for part, (expected, contents) in checked.items():
        try:
            found = checksum_of(contents)
        except FileNotFoundError as error:
            raise UserError(f"{error.filename} is missing beside {path}; {again}") from error
        if found != expected:
            raise UserError(f"{part} beside {path} is damaged: its checksum does not match; {again}")
    return corpus


def _contents(corpus: Corpus, split: str) -> Iterator[np.ndarray | Path]:
    """The contents of a split's checksum: its ids; for a translation, ids and plain lines of both sides."""
    if corpus.kind != "translation":
        yield corpus.ids(split)
        return
    for side in SIDES:
        yield corpus.ids(split, side)
        yield corpus.folder / f"{split}.{side}.txt"


def checksum_of(contents: Iterable[np.ndarray | Path]) -> str:
    """sha256 over the numbers of arrays and the bytes of files, in order; independent of the format of array files."""
    checksum = hashlib.sha256()
    for part in contents:
        if isinstance(part, Path):
            with part.open("rb") as stream:
                hashlib.file_digest(stream, lambda: checksum)
        else:
            checksum.update(part)
    return checksum.hexdigest()


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


def _load(path: Path, mmap_mode: str | None = None) -> np.ndarray:
    try:
        return np.load(path, mmap_mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} is missing or damaged; delete {path.parent} and run the workflow again") from error
