"""A fifth paper and a metric need no more than the blocks of docs/adding_a_paper.md."""

import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

PAGE = (ROOT / "docs/adding_a_paper.md").read_text(encoding="utf-8")
# The files of the page, by path; those that exist get lines more.
FILES = dict(re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL))
# Where lines are added: after which text.
PLACES = {
    "config/scales/smoke.yaml": "\npapers:\n",
    "workflow/rarepapers/metrics/declared.py": "METRICS: dict[str, Metric] = {\n",
    "workflow/rarepapers/evaluation/characters.py": '("LR", slice(n, 2 * n))):\n',
}
METRIC = "mean_norm"


def insert(path, after, text):
    """Insert `text` after the only occurrence of `after`."""
    parts = path.read_text(encoding="utf-8").split(after)
    assert len(parts) == 2, (path, after)
    path.write_text((after + text).join(parts), encoding="utf-8")


def apply_page(project):
    """Add the paper and the metric to a copy of the project."""
    for name, text in FILES.items():
        path = project / name
        if name in PLACES:
            insert(path, PLACES[name], text)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    evaluation = project / "workflow/rarepapers/evaluation/characters.py"
    after = "from rarepapers.metrics import clusters, neighbours, projection\n"
    insert(evaluation, after, f"from rarepapers.metrics.{METRIC} import {METRIC}\n")
    config = project / "config/config.yaml"
    config.write_text(re.sub(r"^papers: .*", "papers: [fifth]", config.read_text(), flags=re.MULTILINE))


def test_a_paper_may_not_have_the_name_of_a_rule(project):
    """Each paper is a rule."""
    shutil.copytree(project / "config/papers/follow_up", project / "config/papers/table")
    insert(project / "config/scales/smoke.yaml", "\npapers:\n", "  table: {}\n")
    result = snakemake(project, "-n", "--config", "papers=[table]")
    assert result.returncode == 1
    assert "config/papers/table: a rule has this name; give the paper another one" in result.stdout


def test_a_paper_that_a_reduced_scale_does_not_name_is_refused(project):
    apply_page(project)
    scale = project / "config/scales/smoke.yaml"
    scale.write_text(scale.read_text().replace(FILES["config/scales/smoke.yaml"], ""))
    result = snakemake(project, "-n")
    assert result.returncode == 1
    assert "smoke.yaml has no entry for the paper 'fifth'" in result.stdout
    assert "or `fifth: {}` to keep that size" in result.stdout


def test_the_metrics_test_passes(project):
    apply_page(project)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/metrics/test_{METRIC}.py"]
    environment = {"PYTHONPATH": f"{project}/workflow:{project}/library"}
    assert subprocess.run(command, cwd=project, env=environment).returncode == 0


@pytest.mark.timeout(600)
def test_a_fifth_paper_needs_two_folders_a_word_and_an_entry(project):
    apply_page(project)
    result = snakemake(project, "--cores", "2")
    assert result.returncode == 0, result.stdout
    results = project / "results/smoke"
    table = pd.read_csv(results / "tables/fifth/table1.csv")
    assert {"Plain", "Dropped"} <= set(table["row"])
    assert set(table["published"].dropna()) == {19.0, 20.0}
    assert set(table["column"]) == {"PPL", "norm"}
    assert table["value"].notna().all()
    assert (results / "figures/fifth/figure1.svg").exists()
    claims = pd.read_csv(results / "claims.csv").set_index("id")
    assert list(claims.index) == ["fifth.t1.lower", "fifth.t1.frequent"]
    assert claims["printed"].isna().tolist() == [False, True]
    assert "A fifth paper" in (results / "report/fifth.html").read_text()
    assert "Nothing to be done" in snakemake(project, "--cores", "2").stdout
