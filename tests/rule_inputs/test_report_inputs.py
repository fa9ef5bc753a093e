"""Files of printed numbers that a table has as inputs."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.experiments.run_table import load
from rarepapers.reporting.page.page_words import PICTURE, pages_of
from rarepapers.rule_inputs import report

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
TABLE = load(CONFIG | {"scale": "paper", "seeds": 1}, ROOT)


@pytest.mark.parametrize("kind", ["neighbours", "hyperparameters"])
def test_a_table_has_only_the_printed_file_of_its_kind(kind):
    waiting = set()
    for paper, settings in TABLE.papers.items():
        for item in settings["tables"]:
            numbers, *others = report.printed(TABLE, SimpleNamespace(paper=paper, item=item))
            assert numbers == f"{ROOT}/config/papers/{paper}/numbers.csv"
            if others == [f"{ROOT}/config/papers/{paper}/{kind}.csv"]:
                assert (ROOT / "config" / "papers" / paper / f"{kind}.csv").exists()
                waiting.add((paper, item))
    of_kind = {
        (paper, item)
        for paper, settings in TABLE.papers.items()
        for item, entry in settings["tables"].items()
        if entry["kind"] == kind
    }
    assert waiting == of_kind != set()


def test_a_table_of_metrics_has_none():
    numbers = f"{ROOT}/config/papers/stop_jostling/numbers.csv"
    assert report.printed(TABLE, SimpleNamespace(paper="stop_jostling", item="table1")) == [numbers]


def test_the_pages_are_those_that_the_report_writes():
    papers = [{"id": paper, "title": paper, "claims": []} for paper in TABLE.papers]
    names = [page["file"] for page in pages_of(papers)]
    assert report.pages(TABLE) == [f"results/paper/report/{name}" for name in (*names, PICTURE)]


def test_labels_name_the_experiments_of_a_figure_that_shows_all():
    labels = report.labels(TABLE, SimpleNamespace(paper="natural_bias", item="figure1"))
    assert labels["groups"] == ", ".join(TABLE.papers["natural_bias"]["experiments"])
