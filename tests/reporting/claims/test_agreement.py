"""Agreement with printed numbers: recovery of planted signs, ranks and gaps."""

import math

import pytest
from fake_results import PUBLISHED, read_csv
from fake_table import definition_of, results_of, write_published

from rarepapers.__main__ import main
from rarepapers.reporting.claims.agreement import COLUMNS, SCALED, agreements
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.statistics.variation import cv_star

METHODS = {"a": "A", "b": "B", "b_other": "B [listing]", "c": "C", "d": "D"}
PRINTED = {("A", ""): "1", ("B", ""): "2", ("C", ""): "3", ("D", ""): "4"}
# A and B are in reverse order; the alternative reading of B would make it worse if it were counted.
OURS = {"a": [2.0, 2.2, 1.8], "b": [1.0, 1.1, 0.9], "b_other": [9.0], "c": [3.0, 3.0], "d": [4.4, 4.4, 4.4]}


def below(first, second, groups=""):
    return {"quantity": f"table1 | {first} | Score | {groups} against {second}", "direction": "<"}


def test_signs_ranks_and_variation(tmp_path):
    published = write_published(tmp_path, PRINTED)
    (row,) = agreements(definition_of(METHODS), results_of(tmp_path, OURS), published)
    assert (row["item"], row["column"], row["group"]) == ("table1", "Score", "")
    assert (row["rows"], row["pairs"], row["seeds"]) == (4, 6, 2)
    assert float(row["sign_agreement"]) == pytest.approx(5 / 6, abs=1e-6)
    assert float(row["kendall_tau"]) == pytest.approx(2 / 3, abs=1e-6)
    assert float(row["spearman"]) == pytest.approx(0.8)
    # The rows have 1 and 2, 2 and 1, 3 and 3, 4 and 4.4: the mean of the middle two.
    expected = (cv_star([1, 2]) + cv_star([4, 4.4])) / 2
    assert float(row["cv_star"]) == pytest.approx(expected, rel=1e-5)
    assert row["note"] == ""


def test_a_scaled_run_has_signs_and_ranks_but_no_cv(tmp_path):
    published = write_published(tmp_path, PRINTED)
    (row,) = agreements(definition_of(METHODS, comparable=False), results_of(tmp_path, OURS), published)
    assert float(row["spearman"]) == pytest.approx(0.8)
    assert (row["cv_star"], row["note"]) == ("", SCALED)


def test_a_misprinted_value_is_replaced_by_the_reference(tmp_path):
    published = write_published(tmp_path, PRINTED, reference={("A", ""): "2.5", ("C", ""): "2.6"})
    (row,) = agreements(definition_of(METHODS), results_of(tmp_path, OURS), published)
    assert float(row["spearman"]) == 1


def test_groups_are_compared_separately(tmp_path):
    """The order is the printed one in each group, but not across groups."""
    printed = {("A", "rare"): "1", ("C", "rare"): "2", ("A", "freq"): "10", ("C", "freq"): "9"}
    published = write_published(tmp_path, printed)
    definition = definition_of({"a": "A", "c": "C"}, groups=["freq", "rare"])
    results = results_of(tmp_path, {"a": [30.0], "c": [40.0]}, "rare")
    rows = agreements(definition, results, published)
    assert [(row["group"], row["rows"], row["sign_agreement"]) for row in rows] == [("rare", 2, "1")]


def test_rows_that_were_not_run_or_printed_are_left_out(tmp_path):
    published = write_published(tmp_path, {key: text for key, text in PRINTED.items() if key[0] != "D"})
    (row,) = agreements(definition_of(METHODS), results_of(tmp_path, {"a": OURS["a"], "d": OURS["d"]}), published)
    assert (row["rows"], row["pairs"], row["sign_agreement"], row["kendall_tau"]) == (1, 0, "", "")
    assert agreements(definition_of(METHODS), results_of(tmp_path, {}), published) == []


def test_claims_agree_if_their_slack_has_the_printed_sign(tmp_path):
    """Printed: holds, holds, fails. Ours: fails, holds, fails; the last was not run."""
    claims = [below("A", "B"), below("C", "D"), below("D", "C"), below("A", "E")]
    published = write_published(tmp_path, PRINTED | {("E", ""): "5"}, claims)
    row = agreements(definition_of(METHODS), results_of(tmp_path, OURS), published)[0]
    assert (row["item"], row["rows"], row["seeds"], row["kendall_tau"]) == ("claims", 3, 2, "")
    assert float(row["sign_agreement"]) == pytest.approx(2 / 3, abs=1e-6)


def test_signs_of_claims_use_only_groups_of_the_scale(tmp_path):
    """In print, A is below B in the first group and above it in the second, which the scale leaves out."""
    printed = {("A", "base"): "1", ("B", "base"): "2", ("A", "big"): "4", ("B", "big"): "3"}
    published = write_published(tmp_path, printed, [below("A", "B", "base; big")])
    definition = definition_of({"a": "A", "b": "B"}, experiments={"base": "e1", "big": "left_out"})
    results = results_of(tmp_path, {"a": [1.0, 1.2], "b": [2.0, 2.2]})
    row = agreements(definition, results, published)[0]
    assert (row["item"], row["rows"], row["sign_agreement"]) == ("claims", 1, "1")


def test_an_infinite_perplexity_has_a_rank_but_no_cv(tmp_path):
    published = write_published(tmp_path, PRINTED | {("D", ""): "inf"})
    (row,) = agreements(definition_of(METHODS), results_of(tmp_path, OURS | {"d": [math.inf] * 3}), published)
    assert float(row["spearman"]) == pytest.approx(0.8)
    assert float(row["cv_star"]) == pytest.approx(cv_star([1, 2]), rel=1e-5)  # of 1 and 2, 2 and 1, 3 and 3


def test_the_command_on_numbers_around_the_printed_ones(scale, tmp_path):
    """For numbers drawn around the printed ones."""
    common = [f"--definitions={scale.text}", f"--results={scale.folder}", f"--published={PUBLISHED}"]
    assert main(["agreement", *common, f"--output={tmp_path / 'agreement.csv'}"]) == 0
    table = read_csv(tmp_path / "agreement.csv")
    assert list(table.columns) == COLUMNS
    assert table.to_dict("records") == read_rows(tmp_path / "agreement.csv")
    claims, tables = table[table["item"] == "claims"], table[table["item"] != "claims"]
    assert float(claims["sign_agreement"].item()) > 0.8
    assert set(tables["item"]) == {"table1", "table5", "table6", "table7", "table8"}
    perplexities = tables[(tables["item"] == "table1") & (tables["column"] == "PPL")]
    assert (perplexities["spearman"].astype(float) > 0.95).all()
    assert (perplexities["cv_star"].astype(float) < 1).all()
    assert perplexities["rows"].tolist() == ["9", "10"]  # Monolingual says nothing of the high-resource language
