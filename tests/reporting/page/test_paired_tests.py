"""Paired tests on the pages, from files written by `rarepapers compare`."""

import json
import shutil

import pytest
from fake_results import make_report
from fake_translation import definition_of
from tests.evaluation.test_compare_command import prepare

from rarepapers.__main__ import main
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.page.page_statistics import paired_test_rows, with_rowspans
from rarepapers.reporting.results import COLUMNS

COMPARISON = "comparisons/iwslt14_de-en/seed2.json"
REFERENCES = [
    "a dog runs through the deep snow",
    "two men sit on a bench",
    "a girl is reading a book",
    "cats sleep all day",
]


@pytest.fixture
def results(tmp_path):
    """Results with the comparison for one seed of one experiment: the second system is right, the first is wrong."""
    prepare(tmp_path, "tiny", REFERENCES)
    wrong = [" ".join(line.split()[::-1]) for line in REFERENCES]
    for name, lines in (("none", wrong), ("unigram", REFERENCES), ("left_out", wrong)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"test": lines}))
    systems = [f"{name}={tmp_path / name}.json" for name in ("none", "unigram", "left_out")]
    output = tmp_path / COMPARISON
    arguments = ["compare", f"--manifest={tmp_path / 'data' / 'tiny' / 'manifest.json'}", "--hypotheses", *systems]
    assert main([*arguments, "--samples=100", f"--output={output}"]) == 0
    return tmp_path


def test_every_metric_of_every_known_system(results):
    definition = parse_definition(json.dumps(definition_of()))
    bleu, chrf = paired_test_rows(definition, [results / COMPARISON])
    assert bleu[:6] == ("iwslt14_de-en: Multi30k De-En", 2, "Log-unigram bias", "No bias", "BLEU", "100.00")
    assert chrf[4] == "chrF"
    ours, theirs, gap = map(float, bleu[5:8])
    assert gap == pytest.approx(ours - theirs, abs=0.011)
    assert gap > 50
    assert all(0 < float(p) <= 1 for p in bleu[8:])


def test_paired_tests_of_candidates_are_not_shown(results):
    """An earlier run may have left such files."""
    definition = definition_of()
    item = next(iter(definition["tables"]))
    definition["tables"][item] = definition["tables"][item] | {"candidates": {}}
    assert paired_test_rows(parse_definition(json.dumps(definition)), [results / COMPARISON]) == []


def test_comparisons_of_other_experiments_are_not_shown(results):
    other = results / "comparisons" / "afromt_af-en" / "seed2.json"
    other.parent.mkdir()
    shutil.copy(results / COMPARISON, other)
    definition = definition_of()
    del definition["settings"]["afromt_af-en"]
    assert len(paired_test_rows(parse_definition(json.dumps(definition)), [other, results / COMPARISON])) == 2


def test_the_page_shows_paired_tests_only_if_there_are_any(results, tmp_path):
    bare = json.dumps(definition_of() | {"tables": {}, "figures": {}})
    (results / "metrics.csv").write_text(",".join(COLUMNS) + "\n")
    output = make_report(results, bare, comparisons=results / COMPARISON)
    page = output.with_name("natural_bias.html")
    shown = page.read_text(encoding="utf-8")
    assert "Paired tests of translations, over test sentences: 2</summary>" in shown
    assert ">Log-unigram bias</th>" in shown
    # A file that the workflow leaves out, such as one of outdated translations, may still lie there.
    make_report(results, bare)
    assert "Paired tests" not in page.read_text(encoding="utf-8")


def test_cells_that_rows_share_are_written_once():
    rows = [("a", "x", 1), ("a", "x", 2), ("a", "y", 3), ("b", "x", 4), ("a", "x", 5)]
    assert list(with_rowspans(rows, 2)) == [(2, rows[0]), (0, rows[1]), *((1, row) for row in rows[2:])]
