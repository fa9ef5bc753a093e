"""What config/datasets.yaml and config/corpora.yaml can hold; docs/parameters.md shows it."""

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from raretok.core.type_check import Count, Limit, Positive, Share, Text, each, keys
from raretok.data.tokenizers import config_type

SPLITS = ("train", "valid", "test")
# The kinds of corpora, of data sets and of names that are parts of paths.
Key = Annotated[str, Limit("pattern", r"^[a-z0-9][a-z0-9_.-]*\Z"), "small letters, digits and then also _ . -"]
Word = Annotated[str, Limit("pattern", r"^[a-z0-9][a-z0-9_-]*\Z"), "small letters, digits and then also _ -"]
CountsName = Annotated[Word, Limit("pattern", "^(?!(zero|unigram)$)"), "a name other than zero and unigram"]
Path = Annotated[
    str,
    Limit("pattern", r"^(?!/)(?!(.*/)?\.\.?(/|$))[^\\]*[^/\\]$"),
    "a relative path with forward slashes that does not leave its folder",
]
Checksum = Annotated[
    str,
    Limit("pattern", r"^(sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|md5:[0-9a-f]{32})\Z"),
    "sha256:, sha1: or md5: and so many hexadecimal digits",
]
Url = Annotated[str, Limit("pattern", "^https?://[^ ]+$"), "an address that begins with http:// or https://"]
Language = Annotated[str, Limit("pattern", r"^[a-z]{2,3}\Z"), "a code of two or three small letters"]


def synthetic(name: str, **sizes: object) -> type:
    """Text made by the project."""
    return TypedDict(f"Synthetic{name.capitalize()}", {"name": Literal[name], "seed": Count, **sizes})


class Member(TypedDict, total=False):
    size: Positive | None
    # Without it, the archive's checksum stands for the member.
    checksum: Checksum


@keys(archive=["members"], members=["archive"])
class File(TypedDict, total=False):
    """A file as its publisher offers it."""

    # In the order in which they are tried; none where a person has to get the file.
    urls: Required[Annotated[list[Url], Limit("uniqueItems", True)]]
    # In bytes; null where none is published.
    size: Required[Positive | None]
    # null where none is published, which the note says.
    checksum: Required[Checksum | None]
    note: Text
    # How a person gets a file that has no URL.
    manual: Text
    # tar may be compressed in any way; gz is one compressed file.
    archive: Literal["tar", "zip", "gz"]
    members: Annotated[dict[Path, Member], Limit("minProperties", 1)]


class DataSet(TypedDict):
    description: Text
    licence: Text
    # Its folder in a data mirror, where that is not its name.
    mirror: NotRequired[Path]
    files: Annotated[dict[Path, File], Limit("minProperties", 1)]


@keys(one_of=("dataset", "synthetic"), dataset=["file"], file=["dataset"])
class Characters(TypedDict, total=False):
    """A corpus of character types, with ids in the order of code points."""

    kind: Required[Literal["characters"]]
    dataset: str
    # A file of the data set, or a member of one of its archives.
    file: str
    # Text made by the project, instead of `dataset` and `file`; its length is in characters.
    synthetic: synthetic("characters", length=Positive)
    # Shares of the text, in its order; the last split takes what rounding leaves.
    splits: Required[each(Share, *SPLITS, needed=("train", "valid"))]
    # Character types that the text must have.
    symbols: Annotated[int, Limit("minimum", 2)]


@keys(one_of=("dataset", "synthetic"), dataset=["files"], files=["dataset"])
class LanguageText(TypedDict, total=False):
    """A corpus of one language: lines become tokens and </s>, with ids in the order of falling training frequency."""

    kind: Required[Literal["language"]]
    dataset: str
    # The text of each split.
    files: each(str, *SPLITS)
    # Text made by the project, instead of `dataset` and `files`: about how many words each split has.
    synthetic: synthetic("language", words=each(Positive, *SPLITS))
    tokenizer: Required[config_type("language")]


@keys(one_of=("source", "file"), source=["target"], target=["source"], file=["columns"], columns=["file"])
class PairFiles(TypedDict, total=False):
    """A file for each side, or a table with both."""

    dataset: Required[str]
    source: str
    target: str
    file: str
    # By header or, where it has none, by number from 1.
    columns: each(str, "source", "target") | each(Positive, "source", "target")


Texts = Annotated[list[PairFiles], Limit("minItems", 1)]


class HeldOut(TypedDict, total=False):
    """So many different pairs, drawn at random."""

    valid: Positive
    test: Positive
    seed: Required[Count]


class Preparation(TypedDict, total=False):
    """Cleaning (`measure`, `max_length`, `max_ratio`, `deduplicate`) is for the training split alone."""

    normalise: Required[Literal["moses", "none"]]
    tokenise: Required[Literal["moses", "none"]]
    # Moses splits words at hyphens.
    aggressive: bool
    lower: bool
    # What lengths are counted in; default: tokens of Moses.
    measure: Literal["tokens", "pieces"]
    max_length: Positive
    # Of the longer side to the shorter.
    max_ratio: Annotated[float, Limit("minimum", 1)]
    # No training pair twice, and none that is in another split.
    deduplicate: bool
    # A pair with an empty side; default: error.
    empty: Literal["error", "drop"]


@keys(one_of=("files", "synthetic"))
class Pairs(TypedDict, total=False):
    """A parallel corpus with one vocabulary of both sides, in the order of target-side counts."""

    kind: Required[Literal["translation"]]
    # Codes as Moses has them; others are tokenised by its general rules.
    languages: Required[each(Language, "source", "target")]
    # The texts of each split, joined in order; a split that is held out has none.
    files: each(Texts, *SPLITS, needed=("train",))
    # Text made by the project, instead of `files`, `held_out` and `domains`: how many pairs each split has, and
    # domain.second, a test set of another domain.
    synthetic: synthetic("pairs", pairs=each(Positive, *SPLITS, "domain.second"))
    # What is taken out of the training text, where its publisher has no such split; every n-th pair for validation as
    # fairseq's preparations do.
    held_out: HeldOut | each(Annotated[int, Limit("minimum", 2)], "every") | None
    # Further test sets, prepared with this corpus's own tokenizer.
    domains: Annotated[dict[Word, Texts], Limit("minProperties", 1)]
    # Corpora of kind unigrams, by the name that `output_bias` calls their counts.
    external_counts: Annotated[dict[CountsName, str], Limit("minProperties", 1)]
    preparation: Required[Preparation]
    tokenizer: Required[config_type("translation")]


class ReversedPairs(TypedDict):
    """Another corpus with its sides exchanged; the vocabulary is in the order of the other side's counts."""

    kind: Literal["translation"]
    reverse_of: str


@keys(one_of=("dataset", "synthetic"), dataset=["files"], files=["dataset"])
class Unigrams(TypedDict, total=False):
    """A text, in shards, of which only the counts of a parallel corpus's target types are taken."""

    kind: Required[Literal["unigrams"]]
    dataset: str
    files: Annotated[list[str], Limit("minItems", 1)]
    # A shard made by the project, in the target language of a synthetic pair: that of the corpus `of`.
    synthetic: synthetic("documents", of=str, documents=Positive)


Corpus = Characters | LanguageText | Pairs | ReversedPairs | Unigrams
DataSets = dict[Key, DataSet]
Corpora = dict[Key, Corpus]
