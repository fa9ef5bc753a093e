"""Config types of config/datasets.yaml and config/corpora.yaml, which docs/parameters.md lists."""

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from rarepapers.core.type_check import Count, Limit, Positive, Share, Text, each, keys
from rarepapers.data.tokenizers import config_type

SPLITS = ("train", "valid", "test")
# Names of data sets and corpora, and of domains and counts.
Key = Annotated[str, Limit("pattern", r"^[a-z0-9][a-z0-9_.-]*\Z"), "lower-case letters and digits, then also _ . -"]
Word = Annotated[str, Limit("pattern", r"^[a-z0-9][a-z0-9_-]*\Z"), "lower-case letters and digits, then also _ -"]
CountsName = Annotated[Word, Limit("pattern", "^(?!(zero|unigram)$)"), "a name other than zero and unigram"]
Path = Annotated[
    str,
    Limit("pattern", r"^(?!/)(?!(.*/)?\.\.?(/|$))[^\\]*[^/\\]$"),
    "a relative path with forward slashes that does not leave its folder",
]
Checksum = Annotated[
    str,
    Limit("pattern", r"^(sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|md5:[0-9a-f]{32})\Z"),
    "sha256:, sha1: or md5: and its hexadecimal digits",
]
Url = Annotated[str, Limit("pattern", "^https?://[^ ]+$"), "an address that begins with http:// or https://"]
Language = Annotated[str, Limit("pattern", r"^[a-z]{2,3}\Z"), "a code of two or three lower-case letters"]


def synthetic(name: str, **sizes: object) -> type:
    """The type of synthetic text: its seed and `sizes`."""
    return TypedDict(f"Synthetic{name.capitalize()}", {"name": Literal[name], "seed": Count, **sizes})


class Member(TypedDict, total=False):
    size: Positive | None
    # Default: the archive's checksum covers the member.
    checksum: Checksum


@keys(archive=["members"], members=["archive"])
class File(TypedDict, total=False):
    """A file as its publisher offers it."""

    # Tried in this order; none if a person has to get the file.
    urls: Required[Annotated[list[Url], Limit("uniqueItems", True)]]
    # In bytes; null if none is published.
    size: Required[Positive | None]
    # null if none is published, which `note` explains.
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
    # How the report names it; default: its name.
    title: NotRequired[Text]
    # Its folder in a data mirror; default: its name.
    mirror: NotRequired[Path]
    files: Annotated[dict[Path, File], Limit("minProperties", 1)]


@keys(one_of=("dataset", "synthetic"), dataset=["file"], file=["dataset"])
class Characters(TypedDict, total=False):
    """A corpus of character types, with ids in the order of code points."""

    kind: Required[Literal["characters"]]
    dataset: str
    # A file of the data set, or a member of one of its archives.
    file: str
    # Synthetic text instead of `dataset` and `file`; its length is in characters.
    synthetic: synthetic("characters", length=Positive)
    # Shares of the text, in order; rounding goes to the last split.
    splits: Required[each(Share, *SPLITS, needed=("train", "valid"))]
    # Number of different characters that the text must have.
    symbols: Annotated[int, Limit("minimum", 2)]


@keys(one_of=("dataset", "synthetic"), dataset=["files"], files=["dataset"])
class LanguageText(TypedDict, total=False):
    """A corpus of one language: lines become tokens and </s>, with ids by decreasing training frequency."""

    kind: Required[Literal["language"]]
    dataset: str
    # The text of each split.
    files: each(str, *SPLITS)
    # Synthetic text instead of `dataset` and `files`; approximate number of words per split.
    synthetic: synthetic("language", words=each(Positive, *SPLITS))
    tokenizer: Required[config_type("language")]


@keys(one_of=("source", "file"), source=["target"], target=["source"], file=["columns"], columns=["file"])
class PairFiles(TypedDict, total=False):
    """A file for each side, or a table with both."""

    dataset: Required[str]
    source: str
    target: str
    file: str
    # Names in the header, or numbers from 1 if there is none.
    columns: each(str, "source", "target") | each(Positive, "source", "target")


Texts = Annotated[list[PairFiles], Limit("minItems", 1)]


class HeldOut(TypedDict, total=False):
    """Number of different pairs per split, drawn at random."""

    valid: Positive
    test: Positive
    seed: Required[Count]


class Preparation(TypedDict, total=False):
    """Cleaning (`measure`, `max_length`, `max_ratio`, `deduplicate`) applies to the training split only."""

    normalise: Required[Literal["moses", "none"]]
    tokenise: Required[Literal["moses", "none"]]
    # Whether Moses splits words at hyphens.
    aggressive: bool
    lower: bool
    # Unit of lengths; default: Moses tokens.
    measure: Literal["tokens", "pieces"]
    max_length: Positive
    # Length of the longer side divided by that of the shorter.
    max_ratio: Annotated[float, Limit("minimum", 1)]
    # Drop training pairs that are repeated, or that occur in another split.
    deduplicate: bool
    # How to treat a pair with an empty side; default: error.
    empty: Literal["error", "drop"]
    # sacrebleu's tokenizer of a language, by its code; default: sacrebleu's own choice.
    bleu_tokenizer: dict[Language, str]


@keys(one_of=("files", "synthetic"))
class Pairs(TypedDict, total=False):
    """A parallel corpus with a joint vocabulary of both sides, with ids by decreasing target-side counts."""

    kind: Required[Literal["translation"]]
    # Moses' language codes; other languages are tokenised by its general rules.
    languages: Required[each(Language, "source", "target")]
    # The texts of each split, concatenated in order; a held-out split has none.
    files: each(Texts, *SPLITS, needed=("train",))
    # Synthetic text instead of `files`, `held_out` and `domains`; number of pairs per split, and of domain.second, a
    # test set of another domain.
    synthetic: synthetic("pairs", pairs=each(Positive, *SPLITS, "domain.second"))
    # Splits that are taken out of the training text because none is published. `every: n`: every n-th pair is for
    # validation, as in fairseq's preparations.
    held_out: HeldOut | each(Annotated[int, Limit("minimum", 2)], "every") | None
    # Further test sets, prepared with this corpus's own tokenizer.
    domains: Annotated[dict[Word, Texts], Limit("minProperties", 1)]
    # Corpora of kind unigrams, by the name of their counts in `model.output_bias`.
    external_counts: Annotated[dict[CountsName, str], Limit("minProperties", 1)]
    preparation: Required[Preparation]
    tokenizer: Required[config_type("translation")]


class ReversedPairs(TypedDict):
    """Another corpus with its sides swapped; ids are by decreasing counts of the new target side."""

    kind: Literal["translation"]
    reverse_of: str


@keys(one_of=("dataset", "synthetic"), dataset=["files"], files=["dataset"])
class Unigrams(TypedDict, total=False):
    """A text, in shards, in which the target types of a parallel corpus are counted."""

    kind: Required[Literal["unigrams"]]
    dataset: str
    files: Annotated[list[str], Limit("minItems", 1)]
    # A synthetic shard, in the target language of the synthetic corpus `of`.
    synthetic: synthetic("documents", of=str, documents=Positive)


Corpus = Characters | LanguageText | Pairs | ReversedPairs | Unigrams
DataSets = dict[Key, DataSet]
Corpora = dict[Key, Corpus]
