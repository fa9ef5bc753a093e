"""Data of runs: existing files are used as they are, missing ones are made by the commands of the rules.

So a machine without tokenizers can use prepared data that was copied to it. Paths are relative to the project's folder,
which is the current one.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from filelock import FileLock

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.rule_inputs import data, evaluate, tokenize, train

SYNTHETIC = "resources/synthetic/"


def provide_for_training(table: RunTable, run: Run) -> None:
    """Provide the corpus of a run, and the counts that its output bias starts from."""
    corpus = run.settings["corpus"]["name"]
    _provide_corpus(table, corpus)
    for path in train.outside_counts(table, run):
        _provide_counts(table, corpus, Path(path).stem, path)


def provide_for_evaluation(table: RunTable, run: Run) -> None:
    """Provide the word pairs and word links of a run's evaluation."""
    _provide_files(table, *evaluate.similarity_files(table, run))
    for path in evaluate.links(table, run):
        _provide_links(table, run.settings["corpus"]["name"], path)


def _provide_corpus(table: RunTable, name: str) -> None:
    """results/<scale>/data/<corpus>: rules prepare, encode, encode_pairs and reverse_pairs."""
    wildcards, entry = SimpleNamespace(corpus=name), table.corpora[name]
    folder = f"{table.results}/data/{name}"
    manifest = f"{folder}/manifest.json"
    definition = data.corpus_entry(table, SimpleNamespace(corpus=entry.get("reverse_of", name)))
    made_from = Path(table.results, "state", "work", folder, "definition.json")
    if Path(manifest).exists() and made_from.exists():
        made = read_json(made_from)
        # The workflow makes data again when a definition changes; then the record is of other data.
        if made["data"] == read_json(manifest)["sha256"] and made["definition"] != definition:
            raise UserError(
                f"{folder} was made from another definition of {name} than config/corpora.yaml has now; delete it, "
                f"together with {table.results}/counts/{name}, {table.results}/alignments/{name} and {SYNTHETIC} where "
                "they exist, and start again"
            )
    common = ("--corpus", name, "--output", folder)
    described = ("--entry", definition)

    def make() -> None:
        if "reverse_of" in entry:
            _provide_corpus(table, entry["reverse_of"])
            _command("reverse-pairs", *common, "--manifest", tokenize.forward_manifest(table, wildcards))
        elif entry["kind"] == "characters":
            text = tokenize.text(table, wildcards)
            _provide_files(table, text)
            _command("prepare", *common, *described, "--text", text)
        elif entry["kind"] == "language":
            splits, published = tokenize.splits(table, wildcards), tokenize.published_tokenizer(table, wildcards)
            _provide_files(table, *splits.values(), *published)
            texts = [word for split, path in splits.items() for word in (f"--{split}", path)]
            _command("encode", *common, *described, *texts, "--published", *published)
        else:
            published = tokenize.published_tokenizer(table, wildcards)
            _provide_files(table, *tokenize.pair_texts(table, wildcards), *published)
            texts = tokenize.texts_by_split(table, wildcards)
            _command("encode-pairs", *common, *described, "--texts", texts, "--published", *published)
        write_json(made_from, {"definition": definition, "data": read_json(manifest)["sha256"]})

    _once(table, manifest, make)


def _provide_counts(table: RunTable, corpus: str, text: str, path: str) -> None:
    """results/<scale>/counts/<corpus>/<text>.npy: rules count_unigrams and merge_counts."""

    def make() -> None:
        counted = []
        for name, shard in tokenize.shards(table, text).items():
            counts = f"{table.results}/counts/{corpus}/{text}/{name}.npy"
            manifest = f"{table.results}/data/{corpus}/manifest.json"
            _provide_files(table, shard)
            what = ("--tokenizer-of", manifest, "--shard", shard)
            _once(table, counts, partial(_command, "count-unigrams", *what, "--output", counts))
            counted.append(counts)
        _command("merge-counts", "--counts", *counted, "--output", path)

    _once(table, path, make)


def _provide_links(table: RunTable, corpus: str, path: str) -> None:
    """results/<scale>/alignments/<corpus>/train.links: rule align."""
    data = f"{table.results}/data/{corpus}/train"
    texts = ("--source", f"{data}.source.tok.txt", "--target", f"{data}.target.tok.txt")
    record = str(Path(path).with_suffix(".json"))
    _once(table, path, partial(_command, "align", *texts, "--output", path, "--record", record))


def _provide_files(table: RunTable, *paths: str) -> None:
    """resources/...: rules download and synthesise, of whatever kind."""
    for path in paths:
        if path.startswith(SYNTHETIC):
            # A single text <corpus>.txt, or a file in a folder of texts, <corpus>/train.txt.
            name, _, file = path.removeprefix(SYNTHETIC).partition("/")
            entry = data.corpus_entry(table, SimpleNamespace(corpus=name if file else name.partition(".")[0]))
            _once(table, path, partial(_command, "synthesise", "--entry", entry, "--output", path))
            continue
        dataset, _, file = path.removeprefix("resources/").partition("/")
        job = SimpleNamespace(dataset=dataset, file=file)
        what = ("--entry", data.file_entry(table, job), "--sources", data.file_sources(table, job, path))
        mirror = ("--data-mirror", *filter(None, [table.config["data_mirror"]]))
        _once(table, path, partial(_command, "download", "--dataset", dataset, *what, "--output", path, *mirror))


def _once(table: RunTable, path: str, make: Callable[[], None]) -> None:
    """Make a missing file in one process, while other processes that need it wait."""
    if Path(path).exists():
        return
    lock = Path(table.results, "state", "work", f"{path}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        if not Path(path).exists():
            make()


def _command(*arguments: str) -> None:
    """Run a command of the pipeline; raises SystemExit after printing the reason if it fails."""
    from rarepapers.machine.commands import main

    status = main(list(arguments))
    if status:
        sys.exit(status)
