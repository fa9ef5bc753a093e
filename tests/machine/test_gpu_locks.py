"""GPU locks: a GPU is lent to one job at a time. The GPUs here are only names."""

import multiprocessing
import tempfile
import threading

import pytest

from rarepapers.core.errors import UserError
from rarepapers.machine import gpu_locks
from rarepapers.machine.gpu_locks import take_places

FORKS = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def held(tmp_path, monkeypatch):
    """Locks in a test's own folder, released at its end."""
    held = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(gpu_locks, "_held", held)
    monkeypatch.setattr(gpu_locks, "PATIENCE", 0.01)
    yield held
    for lock in held:
        lock.release()


def waiting(*arguments):
    """A thread that waits for GPUs, and those that it gets."""
    taken = []
    thread = threading.Thread(target=lambda: taken.extend(take_places(*arguments)))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert not taken
    return thread, taken


@pytest.mark.parametrize(("gpus", "places", "taken"), [("abc", 1, [0, 1, 2]), ("ab", 2, [0, 1, 0, 1])])
def test_jobs_share_a_gpu_only_if_allowed_and_none_is_free(gpus, places, taken):
    assert [take_places(list(gpus), places, 1) for _ in taken] == [[index] for index in taken]


def test_several_processes_get_a_gpu_each_or_wait(held, capsys):
    """A waiting job holds none, because two jobs that hold one each would wait for each other."""
    assert take_places(["a"], 1, 1) == [0]
    second, taken = waiting(["a", "b", "c"], 1, 3)
    assert len({*take_places(["a", "b", "c"], 2, 2)}) == 2
    assert len(held) == 3
    assert "waiting for 3 of 3 GPU(s): places on all but 2 are taken by other jobs" in capsys.readouterr().err
    for lock in list(held):
        lock.release()
    second.join(10)
    assert taken == [0, 1, 2]
    with pytest.raises(UserError, match="4 processes need a GPU each, but torch sees 3 here"):
        take_places(["a", "b", "c"], 1, 4)


def test_the_gpu_of_a_killed_job_goes_to_a_waiting_one_which_logs_it(capsys):
    ready = FORKS.Event()

    def hold():
        take_places(["a"], 1, 1)
        ready.set()
        threading.Event().wait()

    job = FORKS.Process(target=hold)
    job.start()
    assert ready.wait(10)
    second, taken = waiting(["a"], 1, 1)
    assert "waiting for one of 1 GPU(s): all 1 places are taken by other jobs" in capsys.readouterr().err
    job.kill()
    job.join()
    second.join(10)
    assert taken == [0]


def test_zero_runs_per_gpu_are_refused():
    with pytest.raises(UserError, match="runs_per_gpu is 0"):
        take_places(["a"], 0, 1)
