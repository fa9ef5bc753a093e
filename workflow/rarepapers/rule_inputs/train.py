"""Inputs and params of the training rules.

Wildcards are experiment, method and seed.
"""

from functools import lru_cache

from rarepapers.data import catalogue
from rarepapers.experiments.joint_runs import JointRuns, group_runs
from rarepapers.experiments.run_table import STATE_FOLDER, Run, RunTable
from rarepapers.experiments.trained_runs import code_that_trains, is_trained, same_training
from rarepapers.rule_inputs.requested_jobs import requested
from rarepapers.training.finished_files import KEPT, WEIGHTS


def run_of(table: RunTable, wildcards) -> Run:
    """The run of a job."""
    return table.run(wildcards.experiment, wildcards.method, wildcards.seed)


def run_json(table: RunTable, wildcards) -> str:
    """The run of a job as a string that changes only if the run does."""
    return run_of(table, wildcards).json()


def code(table: RunTable, wildcards) -> str:
    """Digest of the code that trains a run."""
    return code_that_trains(run_of(table, wildcards))


def state(table: RunTable, wildcards) -> str:
    """Folder of the state of a job's unfinished training."""
    return f"{table.results}/{STATE_FOLDER.format(**vars(run_of(table, wildcards)))}"


def manifest(table: RunTable, wildcards) -> str:
    """Manifest of the corpus of a job's run."""
    return f"{table.results}/data/{run_of(table, wildcards).settings['corpus']['name']}/manifest.json"


def manifest_to_train(table: RunTable, wildcards) -> str:
    """The manifest for rule `train`; marks the run as requested."""
    run = run_of(table, wildcards)
    requested(table).trained[run.name] = run
    return manifest(table, run)


def outside_counts(table: RunTable, wildcards) -> list[str]:
    """Counts of another text, if the output bias of the run starts from them."""
    settings = run_of(table, wildcards).settings
    start, corpus = settings["model"].get("output_bias"), settings["corpus"]["name"]
    if start in (None, "zero", "unigram"):
        return []
    return [f"{table.results}/counts/{corpus}/{catalogue.external_text(table.corpora, corpus, start)}.npy"]


def same_record(table: RunTable, wildcards) -> list[str]:
    """The record of the training whose files a job's run copies, if any."""
    same = same_training(table, run_of(table, wildcards))
    return [f"{table.folder(same)}/training.json"] if same else []


def same_files(table: RunTable, wildcards) -> list[str]:
    """That record and, if weights are temporary, the weights that are copied with it."""
    same = same_training(table, run_of(table, wildcards))
    weights = WEIGHTS if same and not table.config["keep_weights"] else ()
    return [*same_record(table, wildcards), *(f"{table.folder(same)}/{name}" for name in weights)]


def kept_files(table: RunTable, wildcards, output) -> str:
    """The second copy of a job's trained files, if it is to be deleted with the weights; else nothing."""
    return "" if table.config["keep_weights"] else f"{state(table, wildcards)}/{KEPT}"


# Runs trained together: the group's job keeps the files of each run and leaves a mark for its `train`.


@lru_cache(maxsize=4)
def joint_runs(table: RunTable) -> dict[str, JointRuns]:
    """Groups of runs that are trained together, by rule name; none if the config says `together: 1`."""
    together = table.config["together"]
    alone = (run for run in table.runs.values() if together > 1 and not same_training(table, run))
    found = enumerate(group_runs(alone, together), 1)
    return {f"train_together_{number}": stack for number, stack in found if marks_of(table, stack)}


def joint_runs_json(table: RunTable, stack: JointRuns, wildcards, output) -> str:
    """JSON of the runs of a group's job; another choice retrains nothing, because this param derives from an output."""
    return stack.json()


def marks_of(table: RunTable, stack: JointRuns) -> list[str]:
    """The marks that a group's job must make: those of untrained runs that have none yet."""
    waiting = (run for run in stack.runs if not is_trained(table, run))
    return [path for run in waiting if not (table.root / (path := _mark(table, run))).exists()]


def joint_mark(table: RunTable, wildcards) -> list[str]:
    """The mark of a job's run if it is trained together with others, now or earlier."""
    mark = _mark(table, run_of(table, wildcards))
    return [mark] if mark in _all_marks(table) or (table.root / mark).exists() else []


@lru_cache(maxsize=4)
def _all_marks(table: RunTable) -> frozenset[str]:
    return frozenset(mark for stack in joint_runs(table).values() for mark in marks_of(table, stack))


def _mark(table: RunTable, run: Run) -> str:
    """The file that a group's job makes for the `train` of a run. It stays an input of that run's files.

    Another run or other code has another mark, so existing marks rerun no group's job.
    """
    return f"{table.folder(run)}/together-{run.hash}-{code_that_trains(run)[:8]}"


def results_folder(table: RunTable, wildcards) -> str:
    """The results folder of the scale, in which a group's job keeps the files of its runs."""
    return table.results
