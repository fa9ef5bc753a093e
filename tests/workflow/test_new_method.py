"""A new method needs no more than the three blocks of docs/adding_a_method.md."""

import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

TESTS = (
    "library/tests/methods/test_losses.py",
    "tests/training/test_every_method.py",
    "tests/experiments/test_grids.py",
)


def packages(root):
    return os.pathsep.join([str(root / "workflow"), str(root / "library")])


def insert(path, after, text):
    """Insert `text` after the only occurrence of `after`."""
    parts = path.read_text(encoding="utf-8").split(after)
    assert len(parts) == 2, (path, after)
    path.write_text(after.join([parts[0], text + parts[1]]), encoding="utf-8")


@pytest.fixture
def extended(project):
    """The project with the method of the page."""
    page = (ROOT / "docs/adding_a_method.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|yaml)\n(.*?)```", page, flags=re.DOTALL)
    module, entry, test = blocks
    (name,) = re.findall(r"This is\n`(\w+)\.py`", page)
    (project / f"library/raretok/methods/{name}.py").write_text(module, encoding="utf-8")
    paper = project / "config/papers/cross/paper.yaml"
    insert(paper, "\nmethods:\n", entry)
    insert(paper, "methods: &methods [", f"{name}, ")
    shutil.copytree(ROOT / "tests", project / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "results/recorded/small", project / "results/recorded/small")
    shutil.copy(ROOT / "pyproject.toml", project)
    insert(project / "library/tests/methods/test_losses.py", "LOSSES = {\n", test)
    insert(project / "library/tests/methods/test_losses.py", "from raretok.methods import (\n", f"    {name},\n")
    return project, name


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_fast_tests_pass(extended):
    project, name = extended
    concerned = f"{name} or finite or none_is_left_out or every_candidate or same_data"
    environment = os.environ | {"PYTHONPATH": packages(project)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", concerned, *TESTS]
    result = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-5000:]


def run_lines(root):
    """Hash and folder of every run that a copy of the project plans."""
    command = [sys.executable, "-m", "rarepapers", "runs", "--root", str(root), "--scale", "small", "--papers", "cross"]
    environment = os.environ | {"PYTHONPATH": packages(root)}
    return set(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.timeout(600)
def test_it_is_trained_and_in_the_table_and_changes_no_other_run(extended):
    project, name = extended
    before, after = run_lines(ROOT), run_lines(project)
    assert before < after
    assert all(f"/{name}_" in line for line in after - before)
    smoke = project / "config/scales/smoke.yaml"
    text = smoke.read_text(encoding="utf-8").replace("only: [mle, agg, threshold_agg]", f"only: [mle, {name}]")
    smoke.write_text(text.replace("candidates: 2", "candidates: 1"), encoding="utf-8")
    arguments = ("--cores", "2", "results/smoke/tables/cross/table1.csv", "--config", "papers=[cross]")
    result = snakemake(project, *arguments)
    assert result.returncode == 0, result.stdout[-5000:]
    table = pd.read_csv(project / "results/smoke/tables/cross/table1.csv")
    shown = table[table["row"].str.startswith("Row norms [") & (table["column"] == "all")]
    assert len(shown) == 3
    assert shown["value"].notna().all()
