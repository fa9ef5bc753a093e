"""A copy of the project in a folder of its own."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "envs", "workflow", "docs")


@pytest.fixture
def project(tmp_path):
    """The files a workflow needs, copied: a test may break them, and results go nowhere else."""
    for part in PARTS:
        source, target = ROOT / part, tmp_path / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, target)
    return tmp_path
