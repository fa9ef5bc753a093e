"""Pool of jobs that train and evaluate runs within a time limit."""

import signal
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from filelock import FileLock, Timeout

from rarepapers.core.errors import EXIT_INTERRUPTED
from rarepapers.experiments.joint_runs import JointRuns
from rarepapers.experiments.run_table import Run
from rarepapers.experiments.trained_runs import same_training
from rarepapers.machine.clock import log
from rarepapers.machine.signals import StopFlag
from rarepapers.training.finished_files import RECORD
from rarepapers.work.jobs import EVALUATE, TRAIN, Jobs
from rarepapers.work.run_speed import Speed
from rarepapers.work.run_status import (
    done_already,
    drop_weights,
    evaluation_fault,
    is_evaluated,
    is_trained_here,
    last_line,
    log_of,
    log_together,
    must_train,
    trained_share,
)

# Seconds between checks of clock and signals.
PATIENCE = 0.5
# Time for trainings to save their state before they are killed.
SAVE_SECONDS = 300


@dataclass
class ActiveRun:
    """A run in progress: its job, start time, and the share of its training that was left at the start."""

    run: Run
    stage: str
    process: BaseProcess
    lock: FileLock
    started: float
    share: float


@dataclass
class ActiveGroup:
    """Runs that are being trained together: their job, the locks of the untrained ones, and the start time."""

    group: JointRuns
    process: BaseProcess
    locks: list[FileLock]
    started: float


class WorkerPool:
    """Trains and evaluates runs, as many at a time as `jobs` allows, for at most `seconds` (None: no limit).

    number: of all runs. done, failed: runs that ended. waiting: runs that were not started. active: those in progress;
    beside them at most one `group` is trained together. grouped: names of runs that wait for the end of their group.
    """

    def __init__(self, jobs: Jobs, speed: Speed, seconds: float | None):
        self.jobs, self.speed, self.table = jobs, speed, jobs.table
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.done: list[Run] = []
        self.failed: list[Run] = []
        self.waiting: deque[Run] = deque()
        self.active: list[ActiveRun] = []
        self.group: ActiveGroup | None = None
        self.grouped: set[str] = set()
        self.number = 0
        self.flag: StopFlag | None = None

    @property
    def signal(self) -> str | None:
        """Name of the signal that stopped the work, if any."""
        return self.flag and self.flag.signal

    def work(self, runs: list[Run], groups: Iterable[JointRuns] = ()) -> None:
        """Process `runs` in order; runs that do not fit into the remaining time are left out.

        groups: trained together, one group after another, beside other runs; their runs are evaluated as all others.
        """
        self.flag, self.waiting, self.number = StopFlag(), deque(runs), len(runs)
        groups = deque(groups)
        self.grouped = {run.name for group in groups for run in self.untrained(group)}
        while not self.signal and self.time_left() > 0:
            if self.group is None:
                self.start_group(groups)
            while len(self.active) < self.jobs.workers and self.start_next():
                pass
            if not self.active and self.group is None:
                break
            if self.look() and not self.table.config["keep_weights"]:
                self.drop_weights()
        self.stop()
        if self.waiting and not self.signal:
            log(f"{len(self.waiting)} run(s) do not fit into the remaining time, or are at work elsewhere")

    def time_left(self) -> float:
        """Remaining seconds."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def start_next(self) -> bool:
        """Start the first waiting run that fits into the time and is not locked; returns whether there was one."""
        under_way = [*self.waiting, *(work.run for work in self.active)]
        for run in list(self.waiting):
            if run.name in self.grouped:
                continue
            same = same_training(self.table, run)
            if same in under_way and not is_trained_here(self.table, same):
                continue  # its files are copied from that training
            share = 1 - trained_share(self.table, run)
            if self.speed.expected(run, share) > self.time_left():
                continue
            lock = self.lock(run)
            if lock is None:
                continue
            self.waiting.remove(run)
            # The checkpoint of a training that still lacks its final validation is of the last step, so the share does
            # not decide the stage.
            stage = TRAIN if must_train(self.table, run) else EVALUATE
            # Another command may have finished it meanwhile; or it is trained, and evaluation lacks its packages.
            if done_already(self.table, run, recorded=False) or (stage == EVALUATE and not self.jobs.evaluates):
                lock.release()
                continue
            self.start(run, stage, lock, time.monotonic(), share)
            return True
        return False

    def untrained(self, group: JointRuns) -> list[Run]:
        """The runs of a group that are not trained, or whose weights were deleted before they could be measured."""
        return [run for run in group.runs if trained_share(self.table, run) < 1]

    def start_group(self, groups: deque[JointRuns]) -> None:
        """Start the first of `groups` that is not at work elsewhere; groups with fewer than two untrained runs go.

        A single one, whose group has left it behind because its loss is not finite, is trained alone.
        """
        for group in list(groups):
            untrained = self.untrained(group)
            locks = self.lock_all(untrained) if len(untrained) > 1 else []
            if locks is None:
                continue
            groups.remove(group)
            if not locks:
                self.grouped -= {run.name for run in group.runs}
                continue
            for run in untrained:
                # Of a run whose weights were deleted; it would count as finished.
                (self.table.root / self.table.folder(run) / RECORD).unlink(missing_ok=True)
            log(f"training {len(untrained)} runs together, from {untrained[0].name} to {untrained[-1].name}")
            self.group = ActiveGroup(group, self.jobs.start_together(group), locks, time.monotonic())
            return

    def lock_all(self, runs: list[Run]) -> list[FileLock] | None:
        """The acquired locks of runs, or None if another command holds one."""
        locks = []
        for run in runs:
            lock = self.lock(run)
            if lock is None:
                release(locks)
                return None
            locks.append(lock)
        return locks

    def end_group(self, stopping: bool = False) -> None:
        """Record the result of the group whose job has ended. stopping: as in `end`."""
        work, self.group = self.group, None
        status, path = work.process.exitcode, log_together(self.table, work.group.hash)
        release(work.locks)
        if status == EXIT_INTERRUPTED:
            log("stopped the runs trained together; their state is saved")
        elif status and (stopping or self.signal):
            log("stopped the runs trained together; they continue from their last saved state")
        elif status:
            lost = {run.name: run for run in self.untrained(work.group)}
            self.failed += lost.values()
            self.waiting = deque(run for run in self.waiting if run.name not in lost)
            log(f"failed: train {len(lost)} runs together: {reason(status, path)} ({path})")
        else:
            log(f"done with training together in {time.monotonic() - work.started:.0f} s")
        if status != EXIT_INTERRUPTED and not stopping:
            self.grouped -= {run.name for run in work.group.runs}

    def lock(self, run: Run) -> FileLock | None:
        """The acquired lock of a run, so that several commands can share a table; None if another one holds it."""
        path = self.table.root / self.table.results / "state" / "work" / f"{run.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return FileLock(path, timeout=0).acquire().lock
        except Timeout:
            return None

    def start(self, run: Run, stage: str, lock: FileLock, started: float, share: float) -> None:
        """Start a job of a run."""
        verb = {TRAIN: "training", EVALUATE: "evaluating"}[stage]
        resumed = f", {1 - share:.0%} of it done before" if stage == TRAIN and share < 1 else ""
        log(f"{verb} {run.name}{resumed}")
        self.active.append(ActiveRun(run, stage, self.jobs.start(run, stage), lock, started, share))

    def look(self) -> bool:
        """Wait briefly for jobs to end, record their results, and evaluate trained runs.

        Returns whether any job ended.
        """
        connection.wait([process.sentinel for process in self.processes()], timeout=PATIENCE)
        if self.group and self.group.process.exitcode is not None:
            self.end_group()
        ended = [work for work in self.active if work.process.exitcode is not None]
        for work in ended:
            self.active.remove(work)
            self.end(work)
        return bool(ended)

    def processes(self) -> list[BaseProcess]:
        """The processes of all jobs in progress."""
        return [work.process for work in (*self.active, *([self.group] if self.group else []))]

    def drop_weights(self) -> None:
        """Delete the weights of measured runs that no other run will copy."""
        others = (*self.waiting, *(work.run for work in self.active))
        copied = {same.name for run in others if (same := same_training(self.table, run))}
        for run in self.done:
            if run.name not in copied and is_evaluated(self.table, run):
                drop_weights(self.table, run)

    def end(self, work: ActiveRun, stopping: bool = False) -> None:
        """Record the result of a run whose job has ended. stopping: start no further job."""
        status, run, seconds = work.process.exitcode, work.run, time.monotonic() - work.started
        stopping = stopping or self.signal is not None
        to_evaluate = status == 0 and work.stage == TRAIN and self.jobs.evaluates and not is_evaluated(self.table, run)
        if to_evaluate and not stopping:
            self.start(run, EVALUATE, work.lock, work.started, work.share)
            return
        fault = evaluation_fault(self.table, run) if status == 0 and work.stage == EVALUATE else ""
        work.lock.release()
        if to_evaluate or (stopping and status and work.stage == EVALUATE):
            log(f"stopped {run.name}; it is trained")
        elif status == 0 and not fault:
            self.speed.note(run, seconds, work.share)
            self.done.append(run)
            log(f"done with {run.name} in {seconds:.0f} s; {len(self.done)} of {self.number}")
        elif status == EXIT_INTERRUPTED:
            log(f"stopped {run.name}; its state is saved")
        elif stopping and not fault:
            log(f"stopped {run.name}; it continues from its last saved state")
        else:
            self.failed.append(run)
            path = log_of(self.table, run, work.stage)
            log(f"failed: {work.stage} {run.name}: {fault or reason(status, path)} ({path})")

    def stop(self) -> None:
        """Ask active jobs to stop, and wait until trainings have saved their state; evaluations have none to save."""
        stop(self.processes())
        if self.group:
            self.end_group(stopping=True)
        for work in self.active:
            self.end(work, stopping=True)
        self.active.clear()


def reason(status: int, path: Path) -> str:
    """Why a job with this exit status and log failed."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else last_line(path) or "no reason given"


def release(locks: Iterable[FileLock]) -> None:
    for lock in locks:
        lock.release()


def stop(processes: list[BaseProcess]) -> None:
    """Ask processes to stop, and wait until they have; kill those that take too long."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + SAVE_SECONDS
    for process in processes:
        process.join(max(0, end - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()
