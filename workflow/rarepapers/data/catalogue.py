"""Catalogue of data sets and corpora: config/datasets.yaml and config/corpora.yaml."""

import argparse
import json
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from rarepapers.core.config_files import canonical_json, read_config
from rarepapers.core.errors import UserError
from rarepapers.data.catalogue_types import SPLITS, Corpora, DataSets
from rarepapers.data.tokenizers import published_file

# Files of a synthetic pair of languages.
SYNTHETIC_SPLITS = (*SPLITS, "domain.second")
# Files of a synthetic corpus by kind, below resources/synthetic/<corpus>.
SYNTHETIC_FILES = {
    "characters": [".txt"],
    "language": ["/train.txt", "/valid.txt", "/test.txt", "/similarity.tsv"],
    "translation": [f"/{split}.{side}.txt" for split in SYNTHETIC_SPLITS for side in ("source", "target")],
    "unigrams": [".json.gz"],
}


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its path there; `size` in bytes, `checksum` as `algorithm:digits`."""

    path: str
    size: int | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class Published:
    """A published file; `size` in bytes, `checksum` as `algorithm:digits`."""

    path: str
    size: int | None
    checksum: str | None
    urls: tuple[str, ...]
    manual: str | None
    archive: str | None


@dataclass(frozen=True)
class Wanted:
    """A file requested by a job: a published file, or a member of one.

    `mirror` is the data set's folder in a data mirror; `name` is the requested path.
    """

    dataset: str
    mirror: str
    file: Published
    member: Member | None

    @property
    def name(self) -> str:
        return self.member.path if self.member else self.file.path


@dataclass(frozen=True)
class PairFiles:
    """The two sides of a parallel text; with `columns` (header names, or numbers from 1) a single table."""

    source: Path
    target: Path
    columns: tuple[str | int, str | int] | None = None


def load_datasets(path: Path) -> dict:
    """The data sets in `path`, by name; raises UserError for a wrong file (`read_config`) or a name listed twice."""
    datasets = read_config(path, DataSets)
    for dataset, entry in datasets.items():
        names = [*entry["files"], *(m for file in entry["files"].values() for m in file.get("members", {}))]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(f"{path}: {dataset}.files lists {twice[0]} twice; give each file and member one entry")
        for name, file in entry["files"].items():
            _check_file(f"{path}: {dataset}.files.{name}", file)
    return datasets


def _check_file(where: str, file: dict) -> None:
    """Raise UserError if a missing size or checksum is unexplained, or a compressed file has several members."""
    for key, reason, absent in (("note", "checksum", file["checksum"] is None), ("manual", "URL", not file["urls"])):
        if absent and key not in file:
            raise UserError(f"{where}.{key} is missing: a file without {reason} needs it")
    if file.get("archive") == "gz" and len(file["members"]) > 1:
        raise UserError(f"{where}.members has {len(file['members'])} members; gz is one compressed file")


def load_corpora(path: Path) -> dict:
    """The corpora in `path`, by name; raises UserError for a wrong file (`read_config`) or contradictory splits."""
    corpora = read_config(path, Corpora)
    for corpus, entry in corpora.items():
        if entry["kind"] == "characters":
            total = sum(entry["splits"].values())
            if abs(total - 1) > 1e-9:
                raise UserError(f"{path}: {corpus}.splits add up to {total:g}; make the shares add up to 1")
        if entry["kind"] == "translation":
            _check_translation(f"{path}: {corpus}", corpora, entry)
    return corpora


def _check_translation(where: str, corpora: dict, entry: dict) -> None:
    """Raise UserError unless every split has one source, and other corpora that the entry names have the right kind."""
    if "reverse_of" in entry:
        forward = corpora.get(entry["reverse_of"], {})
        if forward.get("kind") != "translation" or "reverse_of" in forward:
            raise UserError(
                f"{where}.reverse_of needs a corpus of kind translation that reverses none, not {entry['reverse_of']}"
            )
        return
    for text in entry.get("external_counts", {}).values():
        if corpora.get(text, {}).get("kind") != "unigrams":
            raise UserError(f"{where}.external_counts names {text}, which is no corpus of kind unigrams")
    if "synthetic" in entry:
        return
    held = {"valid"} if "every" in (entry.get("held_out") or {}) else set(entry.get("held_out") or {}) - {"seed"}
    for split in ("valid", "test"):
        if (split in entry["files"]) == (split in held):
            raise UserError(f"{where} needs its {split} split either in `files` or in `held_out`")


def find_corpus(corpora: dict, name: str) -> dict:
    """The entry of corpus `name`; raises UserError with the known names if there is none."""
    if name not in corpora:
        known = ", ".join(sorted(corpora))
        raise UserError(f"there is no corpus {name} in config/corpora.yaml; choose one of {known} or add an entry")
    return corpora[name]


def corpus_title(corpora: dict, datasets: dict, name: str) -> str:
    """How the report names a corpus: data set, direction, and what else its name has: Multi30k De-En (bpe).

    A text that is no corpus, such as another domain's, is named by the data set of its name, or by its name.
    """
    if name not in corpora:
        return datasets.get(name, {}).get("title", name)
    entry = corpora[name]
    forward = corpora[entry["reverse_of"]] if "reverse_of" in entry else entry
    if "synthetic" in forward:
        return "synthetic pair" if entry["kind"] == "translation" else "synthetic text"
    dataset = forward["dataset"] if "dataset" in forward else forward["files"]["train"][0]["dataset"]
    languages = forward.get("languages", {}).values()
    direction = "-".join(reversed(languages) if forward is not entry else languages)
    words = name.removeprefix(dataset).strip("_").split("_")
    more = [word for word in words if word and word != direction and not dataset.startswith(word)]
    title = datasets[dataset].get("title", dataset)
    if entry["kind"] == "unigrams":
        return title
    if direction:
        title += f" {'-'.join(map(str.capitalize, direction.split('-')))}"
    return f"{title} ({' '.join(more)})" if more else title


def find_file(datasets: dict, dataset: str, name: str) -> Wanted:
    """The file or archive member `name` of `dataset`; raises UserError with the known names if there is none."""
    if dataset not in datasets:
        known = ", ".join(sorted(datasets))
        raise UserError(
            f"there is no data set {dataset} in config/datasets.yaml; choose one of {known} or add an entry"
        )
    entry = datasets[dataset]
    for path, file in entry["files"].items():
        members = file.get("members", {})
        if name != path and name not in members:
            continue
        facts = (file["size"], file["checksum"], tuple(file["urls"]), file.get("manual"), file.get("archive"))
        member = Member(name, **members[name]) if name in members else None
        return Wanted(dataset, entry.get("mirror", dataset), Published(path, *facts), member)
    known = ", ".join(path for file in entry["files"].items() for path in (file[0], *file[1].get("members", {})))
    raise UserError(f"data set {dataset} of config/datasets.yaml has no file {name}; it has {known}")


def text_file(corpora: dict, name: str) -> str:
    """Path of the text of corpus `name`: in resources/<dataset>/ or, if synthetic, in resources/synthetic/."""
    corpus = corpora[name]
    if "synthetic" in corpus:
        return f"resources/synthetic/{name}.txt"
    return f"resources/{corpus['dataset']}/{corpus['file']}"


def split_files(corpora: dict, name: str) -> dict[str, str]:
    """Paths of the texts of language corpus `name` by split: train, valid, test."""
    corpus = corpora[name]
    if "synthetic" in corpus:
        return {split: f"resources/synthetic/{name}/{split}.txt" for split in SPLITS}
    return {split: f"resources/{corpus['dataset']}/{file}" for split, file in corpus["files"].items()}


def pair_files(corpora: dict, name: str) -> dict[str, list[PairFiles]]:
    """Paths of the texts of translation corpus `name` by split (`domain.<name>` for further test sets).

    A reversed corpus has no texts of its own.
    """
    corpus = corpora[name]
    if "synthetic" in corpus:
        folder = Path("resources") / "synthetic" / name
        return {
            split: [PairFiles(folder / f"{split}.source.txt", folder / f"{split}.target.txt")]
            for split in SYNTHETIC_SPLITS
        }
    parts = {split: corpus["files"][split] for split in SPLITS if split in corpus.get("files", {})}
    parts |= {f"domain.{domain}": files for domain, files in corpus.get("domains", {}).items()}
    return {split: [_pair_of_files(files) for files in listed] for split, listed in parts.items()}


def _pair_of_files(files: dict) -> PairFiles:
    folder = Path("resources") / files["dataset"]
    columns = files.get("columns")
    if columns:
        return PairFiles(folder / files["file"], folder / files["file"], (columns["source"], columns["target"]))
    return PairFiles(folder / files["source"], folder / files["target"])


def tokenizer_file(corpora: dict, name: str) -> list[str]:
    """Path of the published tokenizer of corpus `name`, as a list; empty if its tokenizer is not published."""
    found = published_file(corpora[name].get("tokenizer", {}))
    return [f"resources/{found['dataset']}/{found['file']}"] if found else []


def shards(corpora: dict, name: str) -> list[str]:
    """Paths of the shards of a text whose unigrams are counted."""
    corpus = corpora[name]
    if "synthetic" in corpus:
        return [f"resources/synthetic/{name}.json.gz"]
    return [f"resources/{corpus['dataset']}/{file}" for file in corpus["files"]]


def external_text(corpora: dict, name: str, counts: str) -> str:
    """The corpus of kind unigrams that translation corpus `name` calls `counts`; raises UserError if there is none."""
    known = corpora[name].get("external_counts", {})
    if counts not in known:
        raise UserError(
            f"corpus {name} of config/corpora.yaml has no external_counts named {counts}, which model.output_bias asks "
            "for; add an entry, or take zero or unigram"
        )
    return known[counts]


def corpora_of_kind(corpora: dict, kind: str, reverse: bool = False) -> list[str]:
    """Names of the corpora of `kind`: characters, language, translation (its own texts, or `reverse`) or unigrams."""
    return [name for name, corpus in corpora.items() if corpus["kind"] == kind and ("reverse_of" in corpus) == reverse]


def file_params(datasets: dict, dataset: str, name: str) -> str:
    """Canonical JSON of everything that determines the bytes of a file: a job reruns when it changes.

    URLs are left out if there is a checksum, so that adding a mirror site downloads nothing again.
    """
    wanted = find_file(datasets, dataset, name)
    file = asdict(wanted.file)
    if wanted.file.checksum or (wanted.member and wanted.member.checksum):
        del file["urls"], file["manual"]
    return canonical_json({"file": file, "member": asdict(wanted.member) if wanted.member else None})


def file_sources(datasets: dict, dataset: str, name: str) -> str:
    """JSON of the sources of a file, which do not change its bytes: URLs, manual instructions, folder in a mirror."""
    wanted = find_file(datasets, dataset, name)
    return canonical_json({"urls": wanted.file.urls, "manual": wanted.file.manual, "mirror": wanted.mirror})


def read_wanted(dataset: str, entry: str, sources: str) -> Wanted:
    """The file described by `file_params` and `file_sources`."""
    entry, sources = json.loads(entry), json.loads(sources)
    file = entry["file"] | {"urls": tuple(sources["urls"]), "manual": sources["manual"]}
    member = Member(**entry["member"]) if entry["member"] else None
    return Wanted(dataset, sources["mirror"], Published(**file), member)


def corpus_params(corpora: dict, name: str) -> str:
    """JSON of everything that determines the prepared corpus `name`, in the order of its entry (that of the splits)."""
    corpus = deepcopy(corpora[name])
    corpus.pop("external_counts", None)  # belongs to another text
    if "of" in corpus.get("synthetic", {}):
        corpus["synthetic"]["of"] = find_corpus(corpora, corpus["synthetic"]["of"])["synthetic"]
    return json.dumps(corpus, ensure_ascii=False)


def add_entry_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the name and entry of a corpus."""
    parser.add_argument("--corpus", required=True, help="name of the corpus")
    parser.add_argument("--entry", required=True, type=json.loads, help="its entry of config/corpora.yaml, as JSON")


def corpus_definition(corpora: dict, datasets: dict, name: str, counts: str | None = None) -> dict:
    """Everything that determines the tokens of corpus `name`, for the run hash.

    This is the corpus's entry and, for downloaded texts, merges or models, their checksums instead of their sources. A
    reversed corpus has the definition of the original with a flag. counts: the run's name in `external_counts`, if any;
    only then the definition includes that text.
    """
    definition = deepcopy(find_corpus(corpora, name))
    if "reverse_of" in definition:
        return corpus_definition(corpora, datasets, definition["reverse_of"], counts) | {"reversed": True}
    others = definition.pop("external_counts", {})
    if counts in others:
        definition["external_counts"] = {counts: corpus_definition(corpora, datasets, others[counts])}
    if definition["kind"] == "translation":
        parts = [*definition.get("files", {}).values(), *definition.get("domains", {}).values()]
        for entry in chain(*parts):
            dataset = entry.pop("dataset")
            for key in ("source", "target", "file"):
                if key in entry:
                    entry[key] = _checksum(datasets, dataset, entry[key])
    elif "dataset" in definition:
        dataset, files = definition.pop("dataset"), definition.pop("files", None)
        if files is None:
            definition["checksum"] = _checksum(datasets, dataset, definition.pop("file"))
        elif isinstance(files, list):
            definition["checksums"] = [_checksum(datasets, dataset, file) for file in files]
        else:
            definition["checksums"] = {split: _checksum(datasets, dataset, file) for split, file in files.items()}
    tokenizer = definition.get("tokenizer", {})
    for key, value in tokenizer.items():
        if isinstance(value, dict):
            tokenizer[key] = _checksum(datasets, value["dataset"], value["file"])
    return definition


def _checksum(datasets: dict, dataset: str, name: str) -> str | list[str]:
    """Identification of the bytes of a file: its checksum, else its archive's, else its URLs."""
    wanted = find_file(datasets, dataset, name)
    checksum = wanted.member.checksum if wanted.member else None
    return checksum or wanted.file.checksum or list(wanted.file.urls)
