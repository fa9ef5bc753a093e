"""Tables: values against hand computation, missing and infinite ones, LaTeX, Markdown."""

import copy
import json
import re
import shutil

import pytest
from fake_results import cell, check_markup, definition_of, read_csv

from rarepapers.__main__ import main
from rarepapers.reporting.collect import collect
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import read_results, summarise
from rarepapers.reporting.tables.cells import Cell, mark_best
from rarepapers.reporting.tables.table_text import latex, markdown

TABLES = [f"table{k}" for k in range(1, 9)]


@pytest.fixture(scope="module")
def tables(scale):
    folder = scale.folder / "tables" / "stop_jostling"
    for item in TABLES:
        assert scale.table(item, folder / item) == 0
    return folder


def test_the_order_of_collected_metrics_is_fixed(scale):
    forward, backward = collect(scale.paths), collect(scale.paths[::-1])
    assert forward.to_csv(index=False) == backward.to_csv(index=False)
    assert len(forward) > 4000


def test_the_group_na_is_not_read_as_missing(scale):
    metrics = read_results(scale.folder).metrics
    groups = metrics.loc[metrics["metric"] == "mask_cosine", "group"]
    assert "NA" in set(groups)
    assert groups.notna().all()


def test_summary_equals_values_by_hand():
    assert summarise({1: 1.0, 2: 2.0, 3: 6.0}) == (3.0, pytest.approx(7**0.5), 3, "")
    assert summarise({1: 4.0}) == (4.0, None, 1, "")
    assert summarise({1: float("inf"), 2: 4.0}) == (float("inf"), None, 2, "infinite in seed 1")
    assert summarise({}) is None


def test_a_table_of_metrics_equals_values_by_hand(scale, tables):
    values = []
    for seed in (1, 2):
        path = scale.folder / "runs" / "shakespeare" / "baseline" / f"seed{seed}" / "metrics.json"
        rows = json.loads(path.read_text())["metrics"]
        key = ("perplexity", "HR", "valid@best")
        values += [row["value"] for row in rows if (row["metric"], row["group"], row["split"]) == key]
    mean = sum(values) / 2
    spread = abs(values[0] - values[1]) / 2**0.5
    table = read_csv(tables / "table1.csv")
    assert ",".join(table.columns) == "row,column,group,published,value,spread,seeds,difference,note"
    found = cell(table, "Baseline", "PPL", "HR")
    assert found["published"] == "5.04"
    assert float(found["value"]) == pytest.approx(mean, rel=1e-5)
    assert float(found["spread"]) == pytest.approx(spread, rel=1e-4)
    assert float(found["difference"]) == pytest.approx(mean - 5.04, abs=1e-5)
    assert found["seeds"] == "2"


def test_further_readings_are_compared_with_the_same_printed_value(tables):
    table = read_csv(tables / "table1.csv")
    rows = ["Proposed+SE (margin=2)", "Proposed+SE (margin=2) [listing]", "Proposed+SE (margin=2) [listing, last step]"]
    assert [cell(table, row, "PPL", "LR")["published"] for row in rows] == ["10.41"] * 3
    text = (tables / "table1.md").read_text()
    assert "#### Weights after the last step (the paper's own scale)" in text


def test_infinite_perplexity_has_no_temperature(tables):
    table = read_csv(tables / "table8.csv")
    assert cell(table, "Proposed (DUT, margin=2)", "PPL", "HR")["value"] == "inf"
    assert cell(table, "Proposed (DUT, margin=2)", "PPL", "HR")["difference"] == ""
    temperature = cell(table, "Proposed (DUT, margin=2)", "T_best", "HR")
    assert temperature["value"] == ""
    assert "infinite" in temperature["note"]
    assert "suspect" in cell(table, "Proposed (DUT, margin=1)", "I(W)", "HR")["note"]


def test_a_misprinted_value_is_replaced_by_the_notebooks(tables):
    """S7: 0.5017 is printed as MRR, 0.4870 was meant."""
    found = cell(read_csv(tables / "table7.csv"), "Softminus (DT, margin=2, C=5)", "MRR", "HR")
    assert found["published"] == "0.5017"
    assert float(found["difference"]) == pytest.approx(float(found["value"]) - 0.4870, abs=1e-5)
    assert "the difference is to 0.487, the notebook's value" in found["note"]


def test_neighbours_gpt2_and_hyperparameters(tables):
    table = read_csv(tables / "table2.csv")
    assert cell(table, "Baseline", "A_HR", "1")["published"] == "B_HR 0.41"
    assert re.fullmatch(r".+_(HR|LR) \d\.\d\d", cell(table, "Baseline", "A_HR", "1")["value"])
    related = cell(table, "Proposed+SE (margin=0.6)", "of A and a (of 12)")
    assert float(related["value"]) == pytest.approx(10, abs=0.05)
    table = read_csv(tables / "table3.csv")
    margin = cell(table, "GPT-2 XL", "margin_init")
    assert float(margin["value"]) == pytest.approx(0.01855 * 1600)
    assert float(margin["spread"]) == pytest.approx(0.0001 * 1600 / 2**0.5, rel=1e-5)
    assert margin["seeds"] == "2"
    width = cell(table, "GPT-2 XL", "d_model")
    assert (width["value"], width["spread"], width["seeds"]) == ("1600", "", "")
    assert cell(table, "GPT-2 XL", "margin_PT")["note"] == "the pre-trained weights were not downloaded"
    table = read_csv(tables / "table4.csv")
    assert (table["published"].astype(float) == table["value"].astype(float)).all()
    assert len(table) == 16


def test_missing_runs_leave_cells_empty(scale, tmp_path):
    definition = copy.deepcopy(scale.definition)
    gone = shutil.ignore_patterns("baseline", "gpt2")
    shutil.copytree(scale.folder / "runs", tmp_path / "runs", ignore=gone)
    shutil.rmtree(tmp_path / "runs" / "shakespeare" / "cwt" / "seed2")
    for item in TABLES:
        assert scale.table(item, tmp_path / item, definition, tmp_path) == 0
    table = read_csv(tmp_path / "table5.csv")
    missing = cell(table, "Baseline", "PPL", "HR")
    assert (missing["value"], missing["seeds"], missing["published"]) == ("", "", "5.04")
    assert "not run" in missing["note"]
    assert "1 of 2 seeds" in cell(table, "CWT", "PPL", "HR")["note"]
    assert "not run" in cell(read_csv(tmp_path / "table2.csv"), "Baseline", "A_HR", "1")["note"]
    assert "not run" in cell(read_csv(tmp_path / "table3.csv"), "GPT-2 XL", "margin_init")["note"]


def test_a_model_of_one_language_is_reported_only_on_that(scale, tmp_path):
    """S18: the paper prints dashes for Monolingual on the high-resource language."""
    definition = copy.deepcopy(scale.definition)
    definition["methods"]["monolingual"]["groups"] = ["LR"]
    assert scale.table("table1", tmp_path / "table1", definition) == 0
    table = read_csv(tmp_path / "table1.csv")
    high, low = (cell(table, "Monolingual", "PPL", group) for group in ("HR", "LR"))
    assert (high["value"], high["note"]) == ("", "not printed; not measured on HR")
    assert low["value"]
    assert low["published"] == "12.24"


def test_smoke_is_never_compared(scale, tmp_path):
    smoke = definition_of("smoke", comparable=False)
    for item in TABLES:
        assert scale.table(item, tmp_path / item, smoke) == 0
        assert (read_csv(tmp_path / f"{item}.csv")["difference"] == "").all()
        for kind in ("md", "tex"):
            text = (tmp_path / f"{item}.{kind}").read_text()
            assert "smoke scale, synthetic data; not comparable with the paper" in text


def of_seeds(row, value, spread, seeds, direction="down"):
    return Cell(row, "PPL", value=value, spread=spread, seeds=seeds, format=".2f", direction=direction)


@pytest.mark.parametrize(
    ("cells", "best"),
    [
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("b", 2.0, 0.1, 3)], ["a"]),
        ([of_seeds("a", 1.0, 0.1, 3, "up"), of_seeds("b", 2.0, 0.1, 3, "up")], ["b"]),
        # other numbers of seeds
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("b", 2.0, 0.1, 4)], ["a"]),
        # intervals that touch, one seed, one row, no direction
        ([of_seeds("a", 1.0, 0.5, 3), of_seeds("b", 2.0, 0.5, 3)], []),
        ([of_seeds("a", 1.0, None, 1), of_seeds("b", 2.0, None, 1)], []),
        ([of_seeds("a", 1.0, 0.1, 3)], []),
        ([of_seeds("a", 1.0, 0.1, 3, "none"), of_seeds("b", 2.0, 0.1, 3, "none")], []),
        # equal values in all seeds, which have no interval
        ([of_seeds("a", 1.0, 0.0, 3), of_seeds("b", 2.0, 0.1, 3)], []),
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("b", 2.0, 0.0, 3)], ["a"]),
        # a row with one seed that is better, in the interval of the best, worse
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("b", 2.0, 0.1, 3), of_seeds("c", 0.5, None, 1)], []),
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("c", 1.1, None, 1)], []),
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("c", 1.5, None, 1)], ["a"]),
        # a perplexity that is infinite in one seed
        ([of_seeds("a", 1.0, 0.1, 3), of_seeds("b", float("inf"), None, 3)], ["a"]),
    ],
)
def test_bold_is_the_best_row_if_no_other_reaches_its_interval(cells, best):
    assert [cell.row for cell in mark_best(cells) if cell.best] == best


def test_latex_and_markdown_escape(scale):
    definition = parse_definition(json.dumps(scale.definition))
    cells = [Cell("50% & {x}_1 #2 ~ ^ \\", "c|d $", "g", "1", 2.0, 0.5, 2, format=".1f")]
    text = latex(definition, "table1", cells)
    row = next(line for line in text.splitlines() if line.startswith("50"))
    expected = r"50\% \& \{x\}\_1 \#2 \textasciitilde{} \textasciicircum{} \textbackslash{} & 2.0 $\pm$ 0.5 (1) \\"
    assert row == expected
    assert "| c\\|d $ |" in markdown(definition, "table1", cells)


@pytest.mark.parametrize("item", TABLES)
def test_latex_and_markdown_are_well_formed(tables, item):
    check_markup(tables / item)
    assert (tables / f"{item}.tex").read_text().isascii()


def test_mistakes_are_refused(scale, tmp_path, capsys):
    text = json.dumps(scale.definition)
    common = [f"--results={tmp_path}", f"--output-stem={tmp_path / 'x'}"]
    assert main(["table", "--item=table9", f"--definition={text}", *common]) == 2
    assert main(["table", "--item=table1", f"--definition={text}", "--results=nowhere", "--output-stem=x"]) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 2
    assert "table9" in errors[0]
