"""List of deviations: every name exists, and every item shows its deviations."""

import json
from pathlib import Path

import pytest
import yaml
from fake_results import PUBLISHED, ROOT

from rarepapers.core.errors import UserError
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.deviations import deviations_of_item, items_of, of_claim, of_paper, read_deviations
from rarepapers.reporting.results import read_published

LIST = ROOT / "docs" / "deviations.md"
PAPERS = {
    path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (ROOT / "config" / "papers").glob("*/paper.yaml")
}
MADE_UP = """# Deviations

## one

| # | the question | what we do | affects |
|---|---|---|---|
| X1, X2 | is `a` <b>, or *b* | [here](../results/x.md#y), see [there](https://example.org) | table1, f2.claim |
| X3 | a \\| in it | all | all |

| no such column | here |
|---|---|
| 1 | 2 |

## both (one, two)

| what | ours | affects |
|---|---|---|
| wide | for two | one/text, two.t1.claim, two/all |
"""


@pytest.fixture
def made_up(tmp_path):
    path = tmp_path / "docs" / "deviations.md"
    path.parent.mkdir()
    path.write_text(MADE_UP)
    return read_deviations(path, ["one", "two"], tmp_path / "results" / "small" / "report")


def test_every_name_exists():
    known = set()
    for paper, config in PAPERS.items():
        named = [*config["tables"], *config["figures"], *config["experiments"], "all"]
        known |= {f"{paper}/{name}" for name in named} | set(read_published(PUBLISHED, "claims", paper)["id"])
    rows = read_deviations(LIST, list(PAPERS), Path("report"))
    assert len(rows) > 140
    unknown = {(row.section, row.name): set(row.affects) - known for row in rows if set(row.affects) - known}
    assert not unknown
    anchors = [row.anchor for row in rows]
    assert len(anchors) == len(set(anchors))


def test_every_paper_has_rows():
    rows = read_deviations(LIST, list(PAPERS), Path("report"))
    for paper in ("agg", "agps", "natural_bias", "stop_jostling"):
        assert len(of_paper(rows, paper)) > 20


def test_rows_are_read_with_their_links_and_escaped(made_up):
    first, second, wide = made_up
    assert first.name == "X1, X2"
    assert first.affects == ("one/table1", "one.f2.claim")
    assert first.words["the question"] == "is <code>a</code> &lt;b&gt;, or <em>b</em>"
    assert 'href="../../x.md#y"' in first.words["what we do"]
    assert 'href="https://example.org"' in first.words["what we do"]
    assert second.words["the question"] == "a | in it"
    assert second.affects == ("one/all",)
    assert wide.affects == ("one/text", "two.t1.claim", "two/all")
    assert [row.name for row in of_paper(made_up, "two")] == ["wide"]


def test_a_row_that_names_nothing_is_refused(tmp_path):
    path = tmp_path / "deviations.md"
    path.write_text(MADE_UP.replace("| all | all |", "| all | |"))
    with pytest.raises(UserError, match="'X3' names nothing under `affects`"):
        read_deviations(path, ["one"], tmp_path)


def test_a_table_of_readings_has_its_deviation(made_up):
    raw = {
        "paper": "one",
        "title": "One",
        "scale": "small",
        "scale_title": "small",
        "comparable": False,
        "methods": {},
        "tables": {"table1": {"kind": "metrics"}, "readings-X2": {"kind": "readings", "about": ["X2"]}},
        "figures": {},
    }
    definition = parse_definition(json.dumps(raw))
    assert [row.name for row in deviations_of_item(made_up, definition, "table1")] == ["X1, X2"]
    assert [row.name for row in deviations_of_item(made_up, definition, "readings-X2")] == ["X1, X2"]


def test_claims_have_the_deviations_of_their_items(made_up):
    claim = {"paper": "one", "id": "one.t1.more", "measured_by": "table", "quantity": "table1 | a | b against c"}
    assert [row.name for row in of_claim(made_up, claim)] == ["X1, X2"]
    assert items_of({"id": "one.f5_7.bias", "measured_by": "figure"}) == ["figure5", "figure6", "figure7"]
    assert items_of({"id": "one.t13.words", "measured_by": "figure"}) == ["table13"]
    assert items_of({"id": "one.abs.words", "measured_by": "figure"}) == []
