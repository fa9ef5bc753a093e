"""Downloaded files that runs need."""

from collections.abc import Iterable
from types import SimpleNamespace

from rarepapers.data.catalogue import Wanted, find_file
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.rule_inputs import evaluate, tokenize, train

RESOURCES = "resources/"
MADE_HERE = f"{RESOURCES}synthetic/"


def needed_files(table: RunTable, runs: Iterable[Run] | None = None) -> list[Wanted]:
    """The files that jobs request from rule `download`: those of `runs` (default: all), and the weights of GPT-2."""
    checkpoints = []
    for paper in table.papers.values():
        for model in paper.get("gpt2", {"models": {}})["models"].values():
            checkpoints += evaluate.gpt2_checkpoint(table, SimpleNamespace(repository=model["repository"]))
    return files_of(table, table.runs.values() if runs is None else runs, checkpoints)


def files_of(table: RunTable, runs: Iterable[Run], checkpoints: Iterable[str] = ()) -> list[Wanted]:
    """The files that `runs` request from rule `download`, each once, in order, and `checkpoints` of the hub.

    Runs request the texts of their corpora and other domains, published tokenizers, texts whose unigrams are counted,
    and word similarity sets.
    """
    paths = dict.fromkeys([*(path for run in runs for path in _of_run(table, run)), *checkpoints])
    found = []
    for path in paths:
        if path.startswith(RESOURCES) and not path.startswith(MADE_HERE):
            dataset, _, name = path.removeprefix(RESOURCES).partition("/")
            found.append(find_file(table.datasets, dataset, name))
    return found


def is_here(table: RunTable, wanted: Wanted) -> bool:
    """Whether a file has been downloaded."""
    return (table.root / RESOURCES / wanted.dataset / wanted.name).exists()


def _of_run(table: RunTable, run: Run) -> list[str]:
    """Paths that a run and its evaluation read and that no job makes from other files."""
    corpus = run.settings["corpus"]["name"]
    corpus = table.corpora[corpus].get("reverse_of", corpus)
    wildcards = SimpleNamespace(corpus=corpus)
    kind = table.corpora[corpus]["kind"]
    if kind == "characters":
        paths = [tokenize.text(table, wildcards)]
    elif kind == "language":
        paths = [*tokenize.splits(table, wildcards).values(), *tokenize.published_tokenizer(table, wildcards)]
    else:
        paths = [*tokenize.pair_texts(table, wildcards), *tokenize.published_tokenizer(table, wildcards)]
    for counts in train.outside_counts(table, run):
        text = counts.rpartition("/")[2].removesuffix(".npy")
        paths = [*paths, *tokenize.shards(table, text).values()]
    return [*paths, *evaluate.similarity_files(table, run)]
