"""GPU locks: a GPU is lent to one job at a time. The GPUs here are only names."""

import multiprocessing
import tempfile
import threading

import pytest

from rarepapers.core.errors import UserError
from rarepapers.machine import gpu_locks
from rarepapers.machine.gpu_locks import take_place

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
    """A thread that waits for a GPU, and the one that it gets."""
    taken = []
    thread = threading.Thread(target=lambda: taken.append(take_place(*arguments)))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert not taken
    return thread, taken


@pytest.mark.parametrize(("gpus", "places", "taken"), [("abc", 1, [0, 1, 2]), ("ab", 2, [0, 1, 0, 1])])
def test_jobs_share_a_gpu_only_if_allowed_and_none_is_free(gpus, places, taken):
    assert [take_place(list(gpus), places) for _ in taken] == taken


def test_the_gpu_of_a_killed_job_goes_to_a_waiting_one_which_logs_it(capsys):
    ready = FORKS.Event()

    def hold():
        take_place(["a"], 1)
        ready.set()
        threading.Event().wait()

    job = FORKS.Process(target=hold)
    job.start()
    assert ready.wait(10)
    second, taken = waiting(["a"], 1)
    assert "waiting for one of 1 GPU(s): all 1 places are taken by other jobs" in capsys.readouterr().err
    job.kill()
    job.join()
    second.join(10)
    assert taken == [0]


def test_zero_runs_per_gpu_are_refused():
    with pytest.raises(UserError, match="runs_per_gpu is 0"):
        take_place(["a"], 0)
