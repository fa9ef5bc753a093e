"""Improvement over the first method of a table: pairing by seed, directions, intervals, several data sets."""

import json
import math
from dataclasses import replace

import fake_comparison as comparison
import pandas as pd
import pytest
from fake_results import PUBLISHED, read_csv
from fake_table import definition_of, results_of, rows_of, write_published

from rarepapers.__main__ import main
from rarepapers.reporting.claims.improvement import ALL, COLUMNS, compare, improvements
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.definition import definition_of as read
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import COLUMNS as METRICS
from rarepapers.reporting.results import index_results
from rarepapers.rule_inputs import report

METHODS = {"base": "Base", "other": "Other"}


def pair(first, second):
    return dict(enumerate(first, 1)), dict(enumerate(second, 1))


def numbers(row):
    return {name: float(row[name]) if row[name] else None for name in COLUMNS[-8:]}


def test_differences_are_paired_by_seed():
    """By 1, 2 and 3 in the three seeds, although the runs of both overlap: mean 2, half width 4.3027 / sqrt 3."""
    row = compare([pair([10.0, 20.0, 30.0], [11.0, 22.0, 33.0])], "up")
    assert row["seeds"] == 3
    found = numbers(row)
    assert [found[name] for name in ("difference", "lower", "upper")] == pytest.approx([2, -0.48414, 4.48414], abs=1e-4)
    assert (found["bootstrap_lower"], found["bootstrap_upper"]) == (1, 3)  # 1 in 27 is all of one seed
    # Of the nine unpaired pairs of runs, the other method is above in 3 + 2 + 1.
    assert found["probability"] == pytest.approx(2 / 3, abs=1e-6)
    assert found["probability_lower"] < 2 / 3 < found["probability_upper"]


def test_the_column_sets_the_better_direction():
    values = pair([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert numbers(compare([values], "up"))["probability"] == 1
    down = numbers(compare([values], "down"))
    assert (down["probability"], down["difference"]) == (0, 3)  # the difference stays in the column's unit
    assert numbers(compare([values], "none"))["probability"] is None


def test_one_seed_has_only_a_difference():
    row = compare([pair([1.0], [3.0])], "up")
    assert row == {"seeds": 1, "not_finite": "", "difference": "2"} | dict.fromkeys(COLUMNS[-7:], "")


def test_infinite_values_and_equal_differences_have_no_interval():
    row = compare([pair([math.inf, 1.0], [math.inf, 1.0])], "down")
    found = numbers(row)
    # Not the 0 of the other seed
    assert [found[name] for name in ("difference", "lower", "bootstrap_lower", "probability")] == [
        None,
        None,
        None,
        0.5,
    ]
    assert row["not_finite"] == "undefined in seed 1"
    found = numbers(compare([pair([math.inf, 1.0], [2.0, 1.0])], "down"))
    assert (found["difference"], found["lower"], found["bootstrap_lower"]) == (-math.inf, None, None)
    assert found["probability"] == 0.625  # above: 2 and 1 under infinity; a tie: 1 and 1; below: 2 over 1


def test_infinities_of_both_signs_have_no_mean():
    up, down = pair([1.0, 1.0], [math.inf, 2.0]), pair([math.inf, 1.0], [1.0, 2.0])
    for pairs in ([up, down], [pair([1.0, math.inf], [math.inf, 1.0])]):
        row = compare(pairs, "up")
        assert row["seeds"] == 2
        assert not any(row[name] for name in ("difference", "lower", "upper", "bootstrap_lower", "bootstrap_upper"))
        assert row["probability"]


def test_only_common_seeds_are_compared(tmp_path):
    published = write_published(tmp_path, {("Base", ""): "1"})
    results = results_of(tmp_path, {"base": [1.0, math.nan, 5.0, math.nan, 8.0], "other": [2.0, 3.0, 7.0, 9.0]})
    (row,) = improvements(definition_of(METHODS), results, published)
    assert (row["row"], row["against"], row["better"], row["seeds"]) == ("Other", "Base", "up", 2)
    assert row["difference"] == "1.5"
    assert improvements(definition_of(METHODS), results_of(tmp_path, {"other": [1.0]}), published) == []


def test_several_data_sets_also_have_a_mean(tmp_path):
    """Up by 3 and 5 on one data set, down by 1 on the other: by seed 1 and 2; one of two strata is better."""
    published = write_published(tmp_path, {("Base", "first"): "1"})
    definition = definition_of(METHODS, experiments={"first": "e1", "second": "e2"})
    rows = rows_of({"base": [1.0, 2.0], "other": [4.0, 7.0]})
    rows += rows_of({"base": [9.0, 9.0], "other": [8.0, 8.0]}, experiment="e2")
    found = improvements(definition, index_results(tmp_path, pd.DataFrame(rows, columns=METRICS)), published)
    assert [row["group"] for row in found] == ["first", "second", ALL]
    assert [row["difference"] for row in found] == ["4", "-1", "1.5"]
    assert [row["probability"] for row in found] == ["1", "0", "0.5"]
    assert float(found[2]["upper"]) - 1.5 == pytest.approx(12.7062 / 2, abs=1e-3)


def test_methods_have_their_names_in_the_item(tmp_path):
    """In a table, and in a figure of several experiments; an alternative reading keeps its bracket."""
    labels = {"base": "Baseline (2017)", "other": "Other [alg1]"}
    published = write_published(tmp_path, {})
    definition = definition_of(METHODS, labels=labels)
    column = {"metric": "score", "split": "test@best", "of": {"e1": ""}}
    figure = {"title": "t", "methods": list(METHODS), "labels": labels, "experiments": "all", "columns": {"S": column}}
    definition = replace(definition, figures={"figure1": figure})
    results = results_of(tmp_path, {"base": [1.0, 2.0], "other": [4.0, 4.5]})
    found = improvements(definition, results, published)
    named = [(row["item"], row["row"], row["against"], row["column"]) for row in found]
    assert named == [
        (item, "Other [alg1]", "Baseline (2017)", how) for item, how in (("table1", "Score"), ("figure1", "S"))
    ]


def test_one_data_set_has_no_mean(tmp_path):
    published = write_published(tmp_path, {})
    definition = definition_of(METHODS, experiments={"first": "e1", "second": "e2"})
    results = results_of(tmp_path, {"base": [1.0], "other": [4.0]})
    assert [row["group"] for row in improvements(definition, results, published)] == ["first"]


def test_figures_with_columns_are_compared_over_their_data_sets(bias):
    """natural_bias prints no tables: BLEU, its area and chrF of the six data sets that the paper counts."""
    definition = parse_definition(json.dumps(bias.definition))
    rows = pd.DataFrame(improvements(definition, bias.results, PUBLISHED))
    rows = rows[rows["item"] != "scores"]  # our own table, of one data set
    assert set(rows["item"]) == {"figure2", "figure3", "figure9"}
    assert set(rows["column"]) == {"BLEU", "ALC (BLEU)", "chrF"}
    assert set(rows["row"]) | set(rows["against"]) == {"No bias", "Zero bias", "Log-unigram bias"}
    assert {"Multi30k De-En in place of IWSLT14 De-En", "IWSLT14 En-De", ALL} < set(rows["group"])
    assert len(set(rows["group"])) == 7
    assert not any("WMT14" in group for group in rows["group"])
    assert (rows["better"] == "up").all()
    whole = rows[rows["group"] == ALL].set_index(["column", "row"])
    assert len(whole) == 6
    assert float(whole.loc[("BLEU", "Log-unigram bias"), "probability"]) > 0.9


def test_chosen_candidates_are_compared(tmp_path):
    """Perplexities of tasks differ in size: their probabilities are averaged, their differences are not."""
    table = comparison.workflow(papers=["cross"])
    best = "agg_alpha0.5"  # by the validation text

    def truth(experiment, method):
        if not method.startswith("agg_alpha"):
            return 0.0, 0.0, 45.0
        return (1.0, -20.0, 40.0) if method == best else (0.0, 90.0, 50.0)

    comparison.write(tmp_path, table, truth)
    definition = read(report.definition(table, "cross"))
    rows = pd.DataFrame(improvements(definition, comparison.results_of(tmp_path, definition), PUBLISHED))
    assert set(rows["item"]) == {"table1"}
    rows = rows[rows["row"] == "AGG"].set_index(["column", "group"])
    assert set(rows["against"]) == {"MLE"}
    assert rows.loc[("rare", "characters"), ["better", "probability"]].tolist() == ["down", "1"]
    assert rows.loc[("frequent", "BPE tokens"), "difference"].startswith("0.2")  # 1 per cent of 20
    assert rows.loc[("rare", "BPE tokens"), "difference"].startswith("-1")  # 20 per cent of 900
    assert rows.loc[("rare", ALL), ["difference", "lower", "probability"]].tolist() == ["", "", "1"]
    assert ("medium", "characters") not in rows.index


def test_the_command_writes_improvement_csv(scale, tmp_path):
    common = [f"--definitions={scale.text}", f"--results={scale.folder}", f"--published={PUBLISHED}"]
    assert main(["improvement", *common, f"--output={tmp_path / 'improvement.csv'}"]) == 0
    table = read_csv(tmp_path / "improvement.csv")
    assert list(table.columns) == COLUMNS
    assert table.to_dict("records") == read_rows(tmp_path / "improvement.csv")
    assert set(table["item"]) == {"table1", "table5", "table6", "table7", "table8"}
    assert (table["seeds"] == "2").all()
    row = table[(table["row"] == "Monolingual") & (table["column"] == "Accuracy")]
    assert row["group"].tolist() == ["LR"]
    assert (table.loc[table["column"] == "T_best", "probability"] == "").all()
