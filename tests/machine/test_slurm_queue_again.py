"""Only a training that was stopped near its time limit asks SLURM to requeue its job."""

import os
from datetime import datetime, timedelta

import pytest

from raretok.machine import slurm


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Stand-ins for squeue and scontrol with answers set by the test; the file `calls` has their calls."""

    def install(state: str = "RUNNING", left: timedelta | None = timedelta(minutes=2), refuses: bool = False):
        end = "N/A" if left is None else (datetime.now() + left).isoformat(timespec="seconds")
        scripts = {"squeue": f"echo '{state}|{end}'", "scontrol": f"exit {int(refuses)}"}
        for name, script in scripts.items():
            path = tmp_path / name
            path.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n{script}\n')
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("SLURM_JOB_ID", "17")
        return tmp_path / "calls"

    return install


def test_a_training_stopped_near_its_time_limit_is_requeued(answers):
    calls = answers()
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
def test_a_training_stopped_for_another_reason_is_not_requeued(answers, case):
    calls = answers(**case)
    assert not slurm.queue_again()
    assert "scontrol" not in calls.read_text()


def test_a_refused_requeue_returns_false(answers):
    answers(refuses=True)
    assert not slurm.queue_again()


def test_without_slurm_nothing_is_requeued(answers, monkeypatch, tmp_path):
    calls = answers()
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not slurm.queue_again()
    assert not calls.exists()
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert not slurm.queue_again()
