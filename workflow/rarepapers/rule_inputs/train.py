"""Inputs and params of the training rules.

Wildcards are experiment, method and seed.
"""

from rarepapers.data import catalogue
from rarepapers.experiments.run_table import STATE_FOLDER, Run, RunTable
from rarepapers.experiments.trained_runs import code_that_trains, same_training
from rarepapers.rule_inputs.per_job import per_job
from rarepapers.rule_inputs.tokenize import files_of_corpus, manifest_of
from rarepapers.training.finished_files import WEIGHTS


def run_of(table: RunTable, wildcards) -> Run:
    """The run of a job."""
    return table.run(wildcards.experiment, wildcards.method, wildcards.seed)


@per_job
def run_json(table: RunTable, wildcards) -> str:
    """The run of a job as a string that changes only if the run does."""
    return run_of(table, wildcards).json()


@per_job
def code(table: RunTable, wildcards) -> str:
    """Digest of the code that trains a run."""
    return code_that_trains(run_of(table, wildcards))


@per_job
def state(table: RunTable, wildcards) -> str:
    """Folder of the state of a job's unfinished training."""
    return f"{table.results}/{STATE_FOLDER.format(**vars(run_of(table, wildcards)))}"


@per_job
def manifest(table: RunTable, wildcards) -> str:
    """Manifest of the corpus of a job's run."""
    return manifest_of(table, run_of(table, wildcards).settings["corpus"]["name"])


@per_job
def corpus_files(table: RunTable, wildcards) -> list[str]:
    """The files beside that manifest."""
    return files_of_corpus(table, run_of(table, wildcards).settings["corpus"]["name"])


@per_job
def outside_counts(table: RunTable, wildcards) -> list[str]:
    """Counts of another text, if the output bias of the run starts from them."""
    settings = run_of(table, wildcards).settings
    start, corpus = settings["model"].get("output_bias"), settings["corpus"]["name"]
    if start in (None, "zero", "unigram"):
        return []
    return [f"{table.results}/counts/{corpus}/{catalogue.external_text(table.corpora, corpus, start)}.npy"]


@per_job
def same_record(table: RunTable, wildcards) -> list[str]:
    """The record of the training whose files a job's run copies, if any."""
    same = same_training(table, run_of(table, wildcards))
    return [f"{table.folder(same)}/training.json"] if same else []


@per_job
def same_files(table: RunTable, wildcards) -> list[str]:
    """That record and, if weights are temporary, the weights that are copied with it."""
    same = same_training(table, run_of(table, wildcards))
    weights = WEIGHTS if same and not table.config["keep_weights"] else ()
    return [*same_record(table, wildcards), *(f"{table.folder(same)}/{name}" for name in weights)]


@per_job
def no_copy(table: RunTable, wildcards, output) -> list[str]:
    """The option that keeps no second copy of weights that will be deleted; it changes no result, as `options` do."""
    return [] if table.config["keep_weights"] else ["--no-copy"]
