"""Pool of jobs that train and evaluate runs within a time limit."""

import signal
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess

from filelock import FileLock, Timeout

from raretok.core.errors import EXIT_INTERRUPTED, UserError
from raretok.experiments.joint_runs import JointRuns
from raretok.experiments.run_table import Run
from raretok.experiments.trained_runs import same_training
from raretok.machine.clock import log
from raretok.machine.signals import StopFlag
from raretok.work.jobs import EVALUATE, TRAIN, Jobs
from raretok.work.run_speed import Speed
from raretok.work.run_status import (
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


class WorkerPool:
    """Trains and evaluates runs, as many at a time as `jobs` allows, for at most `seconds` (None: no limit).

    number: of all runs. done, failed: runs that ended.
    """

    def __init__(self, jobs: Jobs, speed: Speed, seconds: float | None):
        self.jobs, self.speed, self.table = jobs, speed, jobs.table
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.done: list[Run] = []
        self.failed: list[Run] = []
        self.active: list[ActiveRun] = []
        self.number = 0
        self.flag: StopFlag | None = None

    @property
    def signal(self) -> str | None:
        """Name of the signal that stopped the work, if any."""
        return self.flag and self.flag.signal

    def work(self, runs: list[Run], groups: Iterable[JointRuns] = ()) -> None:
        """Process `runs` in order; runs that do not fit into the remaining time are left out.

        groups: trained together first, one group after another. Raises UserError if such a training fails.
        """
        self.flag, waiting = StopFlag(), deque(runs)
        self.number = len(runs)
        for group in groups:
            self.train_together(group)
        while not self.signal and self.time_left() > 0:
            while len(self.active) < self.jobs.workers and self.start_next(waiting):
                pass
            if not self.active:
                break
            if self.look() and not self.table.config["keep_weights"]:
                self.drop_weights(waiting)
        self.stop()
        if waiting and not self.signal:
            log(f"{len(waiting)} run(s) do not fit into the remaining time, or are at work elsewhere")

    def time_left(self) -> float:
        """Remaining seconds."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def start_next(self, waiting: deque[Run]) -> bool:
        """Start the first run of `waiting` that fits into the time and is not locked; returns whether there was one."""
        under_way = [*waiting, *(work.run for work in self.active)]
        for run in list(waiting):
            same = same_training(self.table, run)
            if same in under_way and not is_trained_here(self.table, same):
                continue  # its files are copied from that training
            share = 1 - trained_share(self.table, run)
            if self.speed.expected(run, share) > self.time_left():
                continue
            lock = self.lock(run)
            if lock is None:
                continue
            waiting.remove(run)
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

    def train_together(self, group: JointRuns) -> None:
        """Train a group of runs until the time is up or a signal arrives, which saves their state."""
        locks = [lock for run in group.runs if (lock := self.lock(run))]
        try:
            if len(locks) < len(group.runs):
                log("runs that would be trained together are trained alone, because some of them are at work elsewhere")
                return
            if self.signal or self.time_left() <= 0:
                return
            log(f"training {len(group.runs)} runs together, from {group.runs[0].name} to {group.runs[-1].name}")
            process = self.jobs.start_together(group)
            while process.exitcode is None and not self.signal and self.time_left() > 0:
                connection.wait([process.sentinel], timeout=PATIENCE)
            stop(process)
            if process.exitcode == EXIT_INTERRUPTED:
                log("stopped runs trained together; their state is saved")
            elif process.exitcode and not self.signal:
                path = log_together(self.table, group)
                raise UserError(f"training runs together failed: {last_line(path) or 'no reason given'} ({path})")
        finally:
            for lock in locks:
                lock.release()

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
        connection.wait([work.process.sentinel for work in self.active], timeout=PATIENCE)
        ended = [work for work in self.active if work.process.exitcode is not None]
        for work in ended:
            self.active.remove(work)
            self.end(work)
        return bool(ended)

    def drop_weights(self, waiting: Iterable[Run]) -> None:
        """Delete the weights of measured runs that no other run will copy."""
        others = (*waiting, *(work.run for work in self.active))
        copied = {same.name for run in others if (same := same_training(self.table, run))}
        for run in self.done:
            if run.name not in copied and is_evaluated(self.table, run):
                drop_weights(self.table, run)

    def end(self, work: ActiveRun, stopping: bool = False) -> None:
        """Record the result of a run whose job has ended. stopping: start no further job.

        A signal to all processes, as schedulers send, also ends the server of the jobs, so that their status is lost.
        """
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
            killed = f"was killed by {signal.Signals(-status).name}" if status < 0 else ""
            how = fault or killed or last_line(path) or "no reason given"
            log(f"failed: {work.stage} {run.name}: {how} ({path})")

    def stop(self) -> None:
        """Ask active jobs to stop, and wait until trainings have saved their state; evaluations have none to save."""
        stop(*(work.process for work in self.active))
        for work in self.active:
            self.end(work, stopping=True)
        self.active.clear()


def stop(*processes: BaseProcess) -> None:
    """Ask processes to stop, and wait until they have; kill those that take too long."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + SAVE_SECONDS
    for process in processes:
        process.join(max(0, end - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()
