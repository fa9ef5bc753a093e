"""Processes that train or evaluate a run, or train a group of runs, with the commands and logs of the rules."""

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from rarepapers.experiments.joint_runs import JointRuns
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.machine.signals import SIGNALS
from rarepapers.rule_inputs import evaluate, train
from rarepapers.work import job_data
from rarepapers.work.run_status import copied_record, log_of, log_together

TRAIN, EVALUATE = "train", "evaluate"
# Forks of a server that has imported torch start at once. The server computes nothing and requests no GPU, because
# threads and a CUDA context would not survive a fork.
FORKS = multiprocessing.get_context("forkserver")
PRELOADED = [
    "rarepapers.__main__",
    "rarepapers.training.train_command",
    "rarepapers.training.loop",
    "rarepapers.evaluation.evaluate_command",
]


class Jobs:
    """Starts jobs for the runs of a run table.

    workers: maximum number of jobs at a time; on GPUs they share them. evaluates: whether the packages for evaluation
    are installed.
    """

    def __init__(self, table: RunTable, workers: int, evaluates: bool):
        self.table, self.workers, self.evaluates = table, workers, evaluates
        # Jobs share the cores, so torch's compiler also gets one thread. A CPU run's threads are part of its settings.
        for variable in ("OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
            os.environ.setdefault(variable, "1")
        FORKS.set_forkserver_preload(PRELOADED)
        # A signal to all processes, as schedulers send, must not end the server, or the status of its jobs is lost.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
        forkserver.ensure_running()
        for number, handler in before.items():
            signal.signal(number, handler)

    def start(self, run: Run, stage: str) -> BaseProcess:
        """Start a process that trains a run (after making missing data), or evaluates it."""
        arguments = self.training(run) if stage == TRAIN else self.evaluation(run)
        return self._start(run, stage, arguments, log_of(self.table, run, stage))

    def start_together(self, group: JointRuns) -> BaseProcess:
        """Start a process that trains a group of runs (after making missing data)."""
        table, first = self.table, group.runs[0]
        arguments = [
            *("train-together", "--runs", group.json(), "--manifest", train.manifest(table, first)),
            *("--results", table.results, "--checkpoint-seconds", str(table.config["checkpoint_seconds"])),
            *self.device(),
        ]
        return self._start(first, TRAIN, arguments, log_together(table, group.hash))

    def _start(self, run: Run, stage: str, arguments: list[str], log: Path) -> BaseProcess:
        process = FORKS.Process(target=_do, args=(self.table, run, stage, arguments, log))
        process.start()
        return process

    def training(self, run: Run) -> list[str]:
        """Arguments of `raretok` that train a run, as in rule `train`."""
        table = self.table
        return [
            *("train", "--run", run.json(), "--manifest", train.manifest(table, run)),
            *("--counts", *train.outside_counts(table, run), "--same-as", *copied_record(table, run)),
            *("--output", table.folder(run), "--state", train.state(table, run)),
            *("--checkpoint-seconds", str(table.config["checkpoint_seconds"])),
            *self.device(),
        ]

    def evaluation(self, run: Run) -> list[str]:
        """Arguments of `raretok` that evaluate a run, as in rule `evaluate`."""
        table, folder = self.table, self.table.folder(run)
        return [
            *("evaluate", "--run-folder", folder, "--manifest", train.manifest(table, run)),
            *("--settings", evaluate.settings(table, run), "--word-similarity", *evaluate.similarity(table, run)),
            *("--links", *evaluate.links(table, run), "--threads", "1"),
            *("--metrics", f"{folder}/metrics.json", "--arrays", f"{folder}/arrays.npz"),
            *("--hypotheses", f"{folder}/hypotheses.json"),
            *("--measurable", f"{folder}/measurable.npz"),
            *self.device(),
        ]

    def device(self) -> list[str]:
        """Options for the device; a GPU has one place per worker."""
        return ["--device", self.table.config["device"], "--runs-per-gpu", str(self.workers)]


def _do(table: RunTable, run: Run, stage: str, arguments: list[str], log: Path) -> None:
    """Body of a job's process."""
    from rarepapers.machine.commands import main

    # The terminal sends Ctrl-C to all processes; the parent decides what to do.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a" if stage == TRAIN else "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if stage == TRAIN:
        job_data.provide_for_training(table, run)
    else:
        job_data.provide_for_evaluation(table, run)
    # The SLURM job is that of `work`, which requeues it itself if a signal stops it.
    sys.exit(main(arguments, requeues=False))


def _stop_with_parent() -> None:
    """Stop when the parent is killed, as if it had sent SIGTERM, so that a training saves its state."""
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)
