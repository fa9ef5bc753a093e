"""Only a training that was stopped near its time limit asks SLURM to requeue its job."""

from datetime import timedelta

import pytest

from rarepapers.machine import slurm


def test_a_training_stopped_near_its_time_limit_is_requeued(slurm_answers):
    calls = slurm_answers()
    assert slurm.queue_again()
    assert calls.read_text().splitlines()[-1] == "scontrol requeue 17"


@pytest.mark.parametrize(
    "case",
    [
        {"state": "COMPLETING"},  # cancelled, or preempted, after which SLURM requeues it by itself
        {"state": ""},
        {"left": timedelta(minutes=30)},  # a user sent the signal
        {"left": None},  # no time limit
    ],
)
def test_a_training_stopped_for_another_reason_is_not_requeued(slurm_answers, case):
    calls = slurm_answers(**case)
    assert not slurm.queue_again()
    assert "scontrol" not in calls.read_text()


def test_a_refused_requeue_returns_false(slurm_answers):
    slurm_answers(refuses=True)
    assert not slurm.queue_again()


def test_without_slurm_nothing_is_requeued(slurm_answers, monkeypatch, tmp_path):
    calls = slurm_answers()
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not slurm.queue_again()
    assert not calls.exists()
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert not slurm.queue_again()
