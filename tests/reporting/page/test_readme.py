"""README: example code, generated part, links, rule graph."""

import os
import re
from pathlib import Path

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import load
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.page.page_words import what_was_found
from rarepapers.reporting.page.readme_command import insert_section, readme_text
from rarepapers.reporting.record import provenance
from rarepapers.rule_inputs import report

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_of_the_losses_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names = {}
    exec(code, names)
    assert names["weight"].grad.isfinite().all()
    assert names["hidden"].grad.abs().sum() > 0


def test_numbers_and_pictures_are_those_of_recorded_results():
    """If this fails, results, config or reporting changed: run `make record-page`."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    table = load(config | {"scale": "small", "recorded": True}, ROOT)
    folder = ROOT / table.results
    definitions = [definition_of(report.definition(table, paper)) for paper in table.papers]
    text = readme_text(definitions, folder, ROOT)
    assert (folder / "in_readme.md").read_text(encoding="utf-8") == text
    assert insert_section(README, text, "small") == README
    assert "recorded small: begin" in README


def test_the_report_opens_with_the_points_of_the_readme():
    found = what_was_found(ROOT / "README.md", ROOT / "results" / "report")
    papers = {path.parent.name for path in ROOT.glob("config/papers/*/paper.yaml")}
    assert {"stop_jostling", "agg", "agps", "natural_bias", "cross"} <= set(found) <= papers
    for text in found.values():
        assert text.startswith("<strong>")
        for link in re.findall(r'href="([^"#]*)', text):
            assert (ROOT / link.removeprefix("../../")).exists()


def test_a_point_belongs_to_the_paper_that_it_names(tmp_path):
    """In any order; a paper without a point has none, and a point without a paper is not shown."""
    (tmp_path / "README.md").write_text(
        "## What was found\n\n- <!-- b --> **B**\n  holds. More. Third.\n- Else.\n- <!-- a --> A.\n"
    )
    assert what_was_found(tmp_path / "README.md", tmp_path) == {
        "b": "<strong>B</strong> holds. More. Third.",
        "a": "A.",
    }


def test_where_recorded_results_come_from_names_every_run():
    for page in ROOT.glob("results/recorded/*/README.md"):
        folders = sorted(path.parent for path in page.parent.glob("runs/*/*/*/metrics.json"))
        assert folders
        assert page.read_text(encoding="utf-8") == provenance(folders)


def test_links_and_pictures_exist():
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", README) if "://" not in target]
    assert len(targets) > 10
    assert [target for target in targets if not os.path.exists(ROOT / target)] == []


def test_the_rule_graph_has_every_rule():
    (graph,) = re.findall(r"```mermaid\n(.*?)```", README, flags=re.DOTALL)
    shown = set(re.findall(r"[a-z_0-9]+", graph)) - {"flowchart", "subgraph", "data", "end"}
    rules = {
        name
        for path in ROOT.glob("workflow/rules/*.smk")
        for name in re.findall(r"^rule (\w+):$", path.read_text(), re.M)
    }
    # Not drawn: the preflight check and the definitions. Three names stand for one rule per kind or corpus.
    assert shown == rules - {"preflight", "definition"} | {"synthesise", "encode_pairs", "reverse_pairs"}


def test_the_recorded_report_is_small_enough_for_git():
    for folder in ROOT.glob("results/recorded/*/report"):
        assert 0 < sum(path.stat().st_size for path in folder.iterdir()) <= 3_000_000


def test_papers_have_the_titles_by_which_they_are_cited():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    papers = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob("config/papers/*/paper.yaml")]
    named = {paper["source"]["title"]: paper["source"]["authors"] for paper in papers if "source" in paper}
    assert named == {
        one["title"]: ", ".join(f"{author['given-names']} {author['family-names']}" for author in one["authors"])
        for one in cited
    }


def test_only_text_between_the_marks_of_a_scale_is_replaced():
    readme = "a\n<!-- recorded small: begin -->\nold\n<!-- recorded small: end -->\nb\n"
    new = "a\n<!-- recorded small: begin -->\nnew\n<!-- recorded small: end -->\nb\n"
    assert insert_section(readme, "new\n", "small") == new == insert_section(new, "new\n", "small")
    assert insert_section(readme, "new\n", "paper") == readme
    with pytest.raises(UserError, match="once after it"):
        insert_section(readme + "<!-- recorded small: begin -->", "new\n", "small")
