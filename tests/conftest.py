"""Order of the tests, and a stand-in for SLURM."""

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

# Files that take up to a minute each, because they kill and continue trainings.
LONG = Path(__file__).parent / "training"


def pytest_collection_modifyitems(items):
    """Long files first, so that no worker starts one when the other is idle."""
    items.sort(key=lambda item: not item.path.is_relative_to(LONG))


@pytest.fixture
def slurm_answers(tmp_path, monkeypatch):
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
