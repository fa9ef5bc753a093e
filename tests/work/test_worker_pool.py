"""Several runs at once, with jobs that compute nothing."""

import multiprocessing
import os
import signal
import sys
import time

import pytest
import torch

from rarepapers.core.errors import EXIT_INTERRUPTED
from rarepapers.core.files import write_json
from rarepapers.experiments.joint_runs import JointRuns
from rarepapers.experiments.trained_runs import code_that_trains
from rarepapers.rule_inputs import train
from rarepapers.training.checkpoint import save_checkpoint
from rarepapers.training.finished_files import FILES, RECORD, WEIGHTS
from rarepapers.work import run_status, worker_pool
from rarepapers.work.run_status import log_of, log_together
from rarepapers.work.worker_pool import WorkerPool

FORK = multiprocessing.get_context("fork")


class Jobs:
    """Jobs that call the function in `acts` for their method, if any. started: (method, stage), in order."""

    evaluates = True

    def __init__(self, table, workers=1, **acts):
        self.table, self.workers, self.acts, self.started = table, workers, acts, []

    def start(self, run, stage):
        self.started.append((run.method, stage))
        return self.process(log_of(self.table, run, stage), run.method)

    def start_together(self, group):
        self.started.append(("together", len(group.runs)))
        return self.process(log_together(self.table, group.hash), "together")

    def process(self, log, method):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("started\nraretok train: error: it broke\n\n")
        process = FORK.Process(target=self.acts.get(method, str))
        process.start()
        return process


class Speed:
    """Every run takes `seconds`, or its method's own."""

    def __init__(self, seconds=0.0, **methods):
        self.seconds, self.methods, self.noted = seconds, methods, []

    def expected(self, run, share):
        return share * self.methods.get(run.method, self.seconds)

    def note(self, run, seconds, share):
        self.noted.append(run.method)


@pytest.fixture
def table(table_with):
    return table_with()


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """Every evaluation counts, although these jobs write no metrics."""
    monkeypatch.setattr(worker_pool, "evaluation_fault", lambda table, run: "")


def names(runs):
    return [run.method for run in runs]


@pytest.fixture
def groups(table, monkeypatch):
    """One group of all runs, whose job keeps its files; the second run's loss may not be finite."""
    kept = set()
    monkeypatch.setattr(worker_pool, "trained_share", lambda _, run: 1.0 if run.name in kept else 0.0)
    group = JointRuns(tuple(table.runs.values()))
    return kept, [group]


def test_runs_of_a_group_wait_for_it(table, groups):
    kept, wanted = groups
    jobs, runs = Jobs(table, 2), list(table.runs.values())
    pool = WorkerPool(jobs, Speed(), None)
    ended = pool.end_group
    pool.end_group = lambda *stopping: (kept.update(run.name for run in runs), ended(*stopping))
    pool.work(runs, wanted)
    assert jobs.started[0] == ("together", 3)
    assert set(names(pool.done)) == {"baseline", "threshold_m2", "cosreg"}


def test_a_group_that_fails_is_named_and_others_continue(table, groups, capsys):
    runs = list(table.runs.values())
    group = JointRuns(tuple(runs[:2]))
    jobs = Jobs(table, together=lambda: os.kill(os.getpid(), signal.SIGKILL))
    pool = WorkerPool(jobs, Speed(), None)
    pool.work(runs, [group])
    assert (names(pool.failed), names(pool.done)) == (["baseline", "threshold_m2"], ["cosreg"])
    assert "failed: train 2 runs together: was killed by SIGKILL" in capsys.readouterr().err
    assert all(pool.lock(run) for run in runs)


@pytest.mark.parametrize("status", [EXIT_INTERRUPTED, 1, -signal.SIGKILL])
def test_a_group_stopped_by_the_time_limit_has_not_failed(table, groups, status):
    _, wanted = groups
    pool = WorkerPool(Jobs(table, together=lambda: time.sleep(3)), Speed(), 1.0)
    ended = pool.end_group

    def end(stopping):
        pool.group.process = type("Ended", (), {"exitcode": status})
        ended(stopping)

    pool.end_group = end
    pool.work(list(table.runs.values()), wanted)
    assert (pool.done, pool.failed, len(pool.waiting)) == ([], [], 3)


def test_a_group_with_a_run_at_work_elsewhere_is_left_to_it(table, groups):
    _, wanted = groups
    runs, jobs = list(table.runs.values()), Jobs(table)
    pool = WorkerPool(jobs, Speed(), None)
    elsewhere = pool.lock(runs[1])
    pool.work(runs, wanted)
    assert (jobs.started, len(pool.waiting)) == ([], 3)
    elsewhere.release()
    assert all(pool.lock(run) for run in runs)


def test_a_run_that_its_group_left_behind_is_trained_alone(table, groups):
    kept, wanted = groups
    runs, jobs = list(table.runs.values()), Jobs(table)
    kept.update(run.name for run in runs[1:])
    WorkerPool(jobs, Speed(), None).work(runs[:1], wanted)
    assert jobs.started == [("baseline", "train"), ("baseline", "evaluate")]


def test_a_failed_run_is_named_and_the_others_continue(table, capsys):
    jobs = Jobs(table, baseline=lambda: sys.exit(1), cosreg=lambda: os.kill(os.getpid(), signal.SIGKILL))
    pool, runs = WorkerPool(jobs, Speed(), None), list(table.runs.values())
    pool.work(runs)
    assert (names(pool.done), names(pool.failed)) == (["threshold_m2"], ["baseline", "cosreg"])
    # One at a time in the given order, each evaluated after its training.
    broken, trained = [("baseline", "train")], [("threshold_m2", "train"), ("threshold_m2", "evaluate")]
    assert jobs.started == [*broken, *trained, ("cosreg", "train")]
    said = capsys.readouterr().err
    assert "failed: train shakespeare/baseline/seed1: raretok train: error: it broke" in said
    assert "failed: train shakespeare/cosreg/seed1: was killed by SIGKILL" in said
    assert pool.speed.noted == ["threshold_m2"]


@pytest.mark.parametrize("has_old_files", [False, True])
def test_a_training_stopped_in_its_last_validation_is_completed(table, has_old_files):
    """Its checkpoint is of the last step; files of other code may be in the run's folder."""
    run = table.run("shakespeare", "baseline", 1)
    facts = {"progress": {"step": run.settings["training"]["steps"]}, "sources": code_that_trains(run)}
    save_checkpoint(table.root / train.state(table, run), {"model": {"weight": torch.ones(2)}}, facts)
    if has_old_files:
        folder = table.root / table.folder(run)
        folder.mkdir(parents=True)
        for name in FILES:
            (folder / name).touch()
        write_json(folder / RECORD, {"hash": run.hash, "sources": "other"})
    pool = WorkerPool(Jobs(table), Speed(), None)
    pool.work([run])
    assert pool.jobs.started == [("baseline", "train"), ("baseline", "evaluate")]


def test_an_evaluation_without_metrics_fails(table, monkeypatch, capsys):
    monkeypatch.setattr(worker_pool, "evaluation_fault", run_status.evaluation_fault)
    pool = WorkerPool(Jobs(table), Speed(), None)
    pool.work([table.run("shakespeare", "baseline", 1)])
    assert (names(pool.done), names(pool.failed)) == ([], ["baseline"])
    assert "failed: evaluate shakespeare/baseline/seed1: there is no metrics.json" in capsys.readouterr().err


def test_only_runs_that_fit_into_the_time_are_started(table, capsys):
    pool = WorkerPool(Jobs(table, 2), Speed(1.0, baseline=100.0), 30)
    pool.work(list(table.runs.values()))
    assert sorted(names(pool.done)) == ["cosreg", "threshold_m2"]
    assert "1 run(s) do not fit" in capsys.readouterr().err


def test_at_the_end_of_the_time_runs_are_stopped(table, capsys):
    def train():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_INTERRUPTED))
        time.sleep(60)

    pool = WorkerPool(Jobs(table, 2, baseline=train, threshold_m2=train), Speed(), 1.0)
    started = time.monotonic()
    pool.work(list(table.runs.values()))
    assert time.monotonic() - started < 20
    assert (pool.done, pool.failed, pool.signal) == ([], [], None)
    assert capsys.readouterr().err.count("its state is saved") == 2


@pytest.mark.parametrize("stage", ["train", "evaluate"])
def test_a_signal_to_all_processes_fails_no_run(table, capsys, stage):
    """It also ends the server of the jobs, whose exit status is then 255 although they have saved their state."""

    def stop():
        os.kill(os.getppid(), signal.SIGTERM)
        sys.exit(255)

    class Signalled(Jobs):
        def start(self, run, now):
            self.acts = {"baseline": stop} if now == stage else {}
            return super().start(run, now)

    pool = WorkerPool(Signalled(table), Speed(), None)
    pool.work(list(table.runs.values()))
    assert (pool.done, pool.failed, pool.signal) == ([], [], "SIGTERM")
    said = {"train": "it continues from its last saved state", "evaluate": "it is trained"}[stage]
    assert f"stopped shakespeare/baseline/seed1; {said}" in capsys.readouterr().err


def test_a_run_of_another_command_is_left_to_it(table):
    first, second = (WorkerPool(Jobs(table), Speed(), None) for _ in range(2))
    lock = first.lock(table.run("shakespeare", "baseline", 1))
    second.work(list(table.runs.values()))
    assert names(second.done) == ["threshold_m2", "cosreg"]
    lock.release()


def test_weights_are_deleted_once_no_other_run_copies_them(project, table_with, monkeypatch):
    table = table_with(config=["keep_weights=false"])
    first, second, _ = runs = list(table.runs.values())
    kept = []

    def write(run):
        folder = table.root / table.folder(run)
        folder.mkdir(parents=True, exist_ok=True)
        for name in WEIGHTS:
            (folder / name).touch()

    def look(run):
        kept.append([(table.root / table.folder(other) / WEIGHTS[0]).exists() for other in (first, second)])

    class Trainings(Jobs):
        def start(self, run, stage):
            (write if stage == "train" else look)(run)
            return super().start(run, stage)

    monkeypatch.setattr(worker_pool, "is_evaluated", lambda table, run: kept and run in pool.done)
    monkeypatch.setattr(worker_pool, "same_training", lambda table, run: first if run is second else None)
    pool = WorkerPool(Trainings(table), Speed(), None)
    pool.work(runs)
    # The second run copies the first, whose weights stay until then.
    assert kept == [[True, False], [True, True], [False, False]]
    assert not list(project.glob("results/**/*.safetensors"))
