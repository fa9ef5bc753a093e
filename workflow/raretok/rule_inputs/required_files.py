"""What the runs of a config read from outside: published files, with what each is for."""

from collections.abc import Iterable
from types import SimpleNamespace

from raretok.data.catalogue import Wanted, find_file
from raretok.experiments.run_table import Run, RunTable
from raretok.rule_inputs import evaluate, tokenize, train

RESOURCES = "resources/"
MADE_HERE = f"{RESOURCES}synthetic/"


def needed_files(table: RunTable) -> list[Wanted]:
    """The files that jobs of `table` ask the rule `download` for: those of all runs, and the weights of GPT-2."""
    checkpoints = []
    for paper in table.papers.values():
        for model in paper.get("gpt2", {"models": {}})["models"].values():
            checkpoints += evaluate.gpt2_checkpoint(table, SimpleNamespace(repository=model["repository"]))
    return files_of(table, table.runs.values(), checkpoints)


def files_of(table: RunTable, runs: Iterable[Run], checkpoints: Iterable[str] = ()) -> list[Wanted]:
    """The files that `runs` ask the rule `download` for, each once, in their order; and `checkpoints` of the hub.

    Texts of the runs' corpora with their other domains and published tokenizers, texts of which unigrams are counted,
    and sets of word pairs.
    """
    paths = dict.fromkeys([*(path for run in runs for path in _of_run(table, run)), *checkpoints])
    found = []
    for path in paths:
        if path.startswith(RESOURCES) and not path.startswith(MADE_HERE):
            dataset, _, name = path.removeprefix(RESOURCES).partition("/")
            found.append(find_file(table.datasets, dataset, name))
    return found


def is_here(table: RunTable, wanted: Wanted) -> bool:
    """Whether a file was downloaded already."""
    return (table.root / RESOURCES / wanted.dataset / wanted.name).exists()


def _of_run(table: RunTable, run: Run) -> list[str]:
    """Paths of everything that a run and its evaluation read which no job of the workflow made from something else."""
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
