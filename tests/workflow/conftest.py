"""A copy of the project in a folder of its own, and the marker of the tests that start Snakemake."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "envs", "workflow", "docs")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of this folder: a start of Snakemake takes seconds, so `make test` leaves them out."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("workflow")


@pytest.fixture
def project(tmp_path):
    """The files a workflow needs, copied: a test may break them, and results go nowhere else."""
    return copy_project(tmp_path)


@pytest.fixture(scope="module")
def project_at(tmp_path_factory):
    """The same for the tests of one file together: a function of a folder's name."""
    return lambda name: copy_project(tmp_path_factory.mktemp(name))


def copy_project(folder):
    """Copy the project's files into `folder`, and return that."""
    for part in PARTS:
        source, target = ROOT / part, folder / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, target)
    return folder
