"""The command `work`: trains and evaluates runs on a machine with only Python and torch, within a time limit."""

import argparse
import importlib.util
import os
from dataclasses import replace
from pathlib import Path

from rarepapers.core.errors import Interrupted, UserError
from rarepapers.experiments import config_options
from rarepapers.experiments.joint_runs import JointRuns, group_runs
from rarepapers.experiments.run_table import Run, RunTable, load_to_train
from rarepapers.experiments.trained_runs import same_training
from rarepapers.machine.clock import log
from rarepapers.work.job_data import provide_for_evaluation, provide_for_training
from rarepapers.work.jobs import Jobs
from rarepapers.work.run_order import named_seeds, order_runs, read_order
from rarepapers.work.run_speed import Speed
from rarepapers.work.run_status import done_already, is_recorded
from rarepapers.work.worker_pool import WorkerPool

# Packages that evaluation and the translations of validation texts need, and torch does not install.
EVALUATION_PACKAGES = ("sacrebleu", "sacremoses", "scipy", "sentencepiece", "subword_nmt", "tokenizers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    config_options.add_arguments(parser)
    parser.add_argument("--workers", type=int, default=1, help="number of runs at a time (default: %(default)s)")
    parser.add_argument("--minutes", type=float, help="stop after this many minutes (default: when all runs are done)")
    parser.add_argument(
        "--order",
        type=Path,
        help="train only the runs in this file, in its order: one EXPERIMENT/METHOD/seedN per line, or the output of "
        "`plan --claims --json` or `runs --json` (default: baselines and headline methods, then the "
        "first seed of all others, then further seeds)",
    )
    parser.add_argument(
        "--again", action="store_true", help="also train runs that are in results/recorded (default: leave them out)"
    )
    parser.add_argument(
        "--data-only", action="store_true", help="only prepare the data of the runs, to copy it to another machine"
    )


def main(arguments: argparse.Namespace) -> None:
    """Train and evaluate; raises Interrupted if a signal stopped it (states are saved), UserError if a run failed."""
    if arguments.workers < 1:
        raise UserError(f"--workers is {arguments.workers}; it must be at least 1")
    names = read_order(arguments.order) if arguments.order else None
    table = table_of(arguments, names)
    # Paths of the run table are relative to the project's folder, here and in child processes.
    project = table.project.resolve()
    os.chdir(table.root)
    table = replace(table, root=Path(), project=project)
    runs = order_runs(table, names)
    waiting = [run for run in runs if not done_already(table, run, recorded=not arguments.again)]
    if arguments.data_only:
        for run in runs:
            provide_for_training(table, run)
            provide_for_evaluation(table, run)
        log(f"the data of {len(runs)} runs are in {table.results}/ and resources/")
        return
    missing = [name for name in EVALUATION_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        log(f"runs are trained but not evaluated: {', '.join(missing)} not installed")
    if table.config["processes"] > 1:
        log(f"processes: {table.config['processes']} is ignored, because `work` trains each run in one process")
    limit = "no time limit" if arguments.minutes is None else f"{arguments.minutes:g} minutes"
    log(f"{len(waiting)} of {len(runs)} runs to do, {arguments.workers} at a time, {limit}")
    jobs = Jobs(table, arguments.workers, evaluates=not missing)
    seconds = None if arguments.minutes is None else 60 * arguments.minutes
    pool = WorkerPool(jobs, Speed(table), seconds)
    pool.work(waiting, groups_of(table, runs, arguments.again))
    done, failed = len(pool.done), len(pool.failed)
    log(f"{done} run(s) done, {failed} failed, {len(waiting) - done - failed} left; results are in {table.results}")
    if pool.signal:
        raise Interrupted(f"{pool.signal}: stopped; states are saved, the same command continues")
    if pool.failed:
        raise UserError(f"{failed} run(s) failed: {', '.join(run.name for run in pool.failed)}")


def table_of(arguments: argparse.Namespace, names: list[str] | None) -> RunTable:
    """The run table of the config, with the seeds in the order file if the user names none."""
    seeds = config_options.config_of(arguments)["seeds"] or (named_seeds(names) if names else None)
    return load_to_train(arguments, seeds=seeds)


def groups_of(table: RunTable, runs: list[Run], again: bool) -> list[JointRuns]:
    """Groups of runs to be trained together, by `together` of the config.

    They depend neither on the order of the runs nor on which are finished, so that an interrupted group continues.
    """
    if table.config["together"] == 1:
        return []
    chosen = {run.name for run in runs}
    own = (run for run in table.runs.values() if run.name in chosen and not same_training(table, run))
    return group_runs((run for run in own if again or not is_recorded(table, run)), table.config["together"])
