"""Copies of the project, and the marker of tests that start Snakemake."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "envs", "library", "workflow", "docs")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of this folder, which `make test` leaves out, because a start of Snakemake takes seconds."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("workflow")


@pytest.fixture
def project(tmp_path):
    """A copy of the files that a workflow needs, which a test may change; results go there."""
    return copy_project(tmp_path)


@pytest.fixture(scope="module")
def project_at(tmp_path_factory):
    """The same, shared by the tests of one file: a function of a folder's name."""
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
