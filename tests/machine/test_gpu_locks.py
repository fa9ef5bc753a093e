"""GPUs are lent to one job at a time; there are none here, so these are names of such."""

import multiprocessing
import threading

import pytest

from raretok.core.errors import UserError
from raretok.machine import gpu_locks

FORKS = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def places_of_this_test(monkeypatch):
    """What a test holds it gives back."""
    held = []
    monkeypatch.setattr(gpu_locks, "_held", held)
    monkeypatch.setattr(gpu_locks, "PATIENCE", 0.01)
    yield held
    for lock in held:
        lock.release()


def take_place(gpus, places, folder):
    return gpu_locks.take_places(gpus, places, 1, folder)[0]


def test_every_job_has_a_gpu_of_its_own(tmp_path):
    assert [take_place(["a", "b", "c"], 1, tmp_path) for _ in range(3)] == [0, 1, 2]


def test_several_processes_have_a_gpu_each_or_wait(tmp_path, places_of_this_test, capsys):
    """Nothing is held while one is missing: two jobs that hold one each would wait for each other."""
    assert take_place(["a"], 1, tmp_path) == 0
    found = []
    second = threading.Thread(target=lambda: found.append(gpu_locks.take_places(["a", "b", "c"], 1, 3, tmp_path)))
    second.start()
    second.join(0.3)
    assert second.is_alive()
    assert gpu_locks.take_places(["a", "b", "c"], 2, 2, tmp_path) == [1, 2]
    assert len(places_of_this_test) == 3
    assert "waiting for 3 of 3 GPU(s): places on all but 2 are taken by other jobs" in capsys.readouterr().err
    for lock in list(places_of_this_test):
        lock.release()
    second.join(10)
    assert found == [[0, 1, 2]]
    with pytest.raises(UserError, match="4 processes need a GPU each, but torch sees 3 here"):
        gpu_locks.take_places(["a", "b", "c"], 1, 4, tmp_path)


def test_sharing_fills_empty_gpus_first(tmp_path):
    assert [take_place(["a", "b"], 2, tmp_path) for _ in range(4)] == [0, 1, 0, 1]


def test_a_job_waits_for_a_place_and_says_so(tmp_path, places_of_this_test, capsys):
    take_place(["a"], 1, tmp_path)
    found = []
    second = threading.Thread(target=lambda: found.append(take_place(["a"], 1, tmp_path)))
    second.start()
    second.join(0.3)
    assert second.is_alive()
    assert not found
    assert "waiting for one of 1 GPU(s): all 1 places are taken by other jobs" in capsys.readouterr().err
    places_of_this_test[0].release()
    second.join(10)
    assert found == [0]


def test_a_killed_job_gives_its_gpu_back(tmp_path):
    ready = FORKS.Event()

    def hold():
        take_place(["a"], 1, tmp_path)
        ready.set()
        threading.Event().wait()

    job = FORKS.Process(target=hold)
    job.start()
    assert ready.wait(10)
    second = threading.Thread(target=take_place, args=(["a"], 1, tmp_path))
    second.start()
    second.join(0.2)
    assert second.is_alive()
    job.kill()
    job.join()
    second.join(10)
    assert not second.is_alive()


def test_no_place_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match="runs_per_gpu is 0"):
        take_place(["a"], 0, tmp_path)
