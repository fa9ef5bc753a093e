"""Tables of readings: synthetic pairs with known differences, and every sentence that can occur."""

import copy
import json
import re

import pandas as pd
import pytest
import yaml
from fake_results import ROOT, read_csv

from rarepapers.core.errors import UserError
from rarepapers.experiments import config_checks, run_table
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import COLUMNS, index_results
from rarepapers.reporting.tables.readings_table import printed_in, reading_cells, reading_outcomes
from rarepapers.reporting.tables.table_command import tidy
from rarepapers.reporting.tables.table_text import latex, legend, markdown

CONFIGS = {
    path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (ROOT / "config/papers").glob("*/paper.yaml")
}
ITEM = "readings-X1"
METHODS = {
    "plain": "Proposed (margin=1)",
    "skip": "Proposed+SE (margin=1)",
    "listing": "Proposed+SE (margin=1) [listing]",
    "other": "Other",
    "other_skip": "Other, skipped",
    "other_listing": "Other, listed",
}
BY_METHOD = {
    "title": "X",
    "kind": "readings",
    "question": "Which is it?",
    "about": ["X1"],
    "readings": ["matrix", "skip", "listing"],
    "methods": ["plain", "skip", "listing"],
    "columns": {"Accuracy": {"metric": "accuracy", "format": ".4f"}},
    "groups": ["HR", "LR"],
    "decides": {"column": "Accuracy", "group": "LR"},
}
BY_MEASURE = BY_METHOD | {
    "readings": {
        "best": {},
        "last": {"checkpoint": "last"},
        "elsewhere": {"suffix": "@index", "metrics": {"accuracy": "accuracy_else"}},
    },
    "methods": ["plain", "skip"],
}
# Ours are 0.3714 and 0.4544 in print (table1, LR).
PRINTED = ROOT / "config" / "papers"


def definition_of(entry, comparable=True, seeds=3):
    methods = {
        name: {"label": label, "experiment": "e", "seeds": list(range(1, seeds + 1))} for name, label in METHODS.items()
    }
    raw = {"paper": "stop_jostling", "title": "T", "scale": "small", "scale_title": "small scale"}
    raw |= {"comparable": comparable, "methods": methods, "tables": {ITEM: entry}, "figures": {}}
    return parse_definition(json.dumps(raw)).of(ITEM)


def results_of(folder, numbers):
    """numbers: {(method, metric, group, split): values by seed, from 1 on}; None for a seed that was not run."""
    rows = [
        dict(zip(COLUMNS, ("stop_jostling", "e", key[0], seed, *key[1:], value, "1", "made:up", "0"), strict=True))
        for key, values in numbers.items()
        for seed, value in enumerate(values, 1)
        if value is not None
    ]
    return index_results(folder, pd.DataFrame(rows, columns=COLUMNS))


def said(folder, entry, values, comparable=True, metric="accuracy", seeds=3):
    """Cells and sentences of LR accuracies on the best checkpoint, by method."""
    definition = definition_of(entry, comparable, seeds)
    numbers = {(name, metric, "LR", "valid@best"): found for name, found in values.items()}
    cells = reading_cells(definition, ITEM, results_of(folder, numbers), PRINTED)
    return cells, " ".join(reading_outcomes(definition, ITEM, cells))


def cell_of(cells, row, column="Accuracy", group="LR"):
    (found,) = [cell for cell in cells if (cell.row, cell.column, cell.group) == (row, column, group)]
    return found


def test_differences_are_paired_by_seed(tmp_path):
    # Seed by seed 0.01, 0.02, 0.03; t(0.975, 2) is 4.3027, the standard error 0.01 / sqrt(3).
    values = {"plain": [0.30, 0.60, 0.90], "skip": [0.31, 0.62, 0.93], "listing": [None, 0.6, 0.9]}
    cells, _ = said(tmp_path, BY_METHOD, values)
    found = cell_of(cells, "skip - matrix")
    assert found.value == pytest.approx(0.02)
    assert found.interval == pytest.approx((0.02 - 0.024841, 0.02 + 0.024841), abs=1e-6)
    assert found.seeds == 3
    assert cell_of(cells, "matrix").spread == pytest.approx(0.3)
    # Only common seeds: unpaired, the mean of listing would be 0.15 above that of matrix.
    assert cell_of(cells, "listing - matrix").value == 0
    assert cell_of(cells, "listing - matrix").remarks == ("over the 2 seeds that both have",)
    assert found.remarks == ()
    assert cell_of(cells, "listing").remarks == ("2 of 3 seeds",)
    assert [cell.row for cell in cells[::2]] == ["matrix", "skip", "listing", "skip - matrix", "listing - matrix"]


def test_outcomes(tmp_path):
    """One that differs and one that does not, the same in every seed, one seed, other seeds, infinite ones, none."""
    values = {"plain": [0.30, 0.60, 0.90], "skip": [0.31, 0.612, 0.911], "listing": [0.31, 0.62, 0.93]}
    _, text = said(tmp_path, BY_METHOD, values)
    assert text.startswith("Which is it? Reading skip against matrix (Accuracy of LR): they differ")
    assert "listing against matrix (Accuracy of LR): no difference shown" in text
    infinite = float("inf")
    for skip, note in {
        (0.4, 0.7): "equal differences in all seeds: no interval",
        (0.4,): "one seed",
        (None, None, 0.4): "no seed with numbers for both",
        (infinite, 0.4): "not finite in some seeds",
        (): "not run",
    }.items():
        cells, text = said(tmp_path, BY_METHOD, {"plain": [0.3, 0.6], "skip": skip})
        assert (cell_of(cells, "skip - matrix").note, cell_of(cells, "skip - matrix").interval) == (note, None)
        assert f"skip against matrix (Accuracy of LR): {note}" in text


def test_printed_differences(tmp_path):
    entry = BY_METHOD | {"printed": ["table5", "table1"]}
    values = {"plain": [0.30, 0.40, 0.50], "skip": [0.31, 0.41, 0.512], "listing": [0.39, 0.47, 0.60]}
    cells, _ = said(tmp_path, entry, values)
    assert cell_of(cells, "matrix").published == "0.3714"
    assert cell_of(cells, "listing").published == cell_of(cells, "skip").published == "0.4544"
    assert cell_of(cells, "skip - matrix").difference == pytest.approx(0.0107 - 0.083, abs=1e-4)
    cells, _ = said(tmp_path, entry, values, comparable=False)
    assert cell_of(cells, "skip - matrix").published == "+0.0830"
    assert cell_of(cells, "skip - matrix").difference is None


def test_printed_numbers_are_from_the_first_table_with_them():
    printed = {("table1", "row", "PPL", "LR"): 1, ("table2", "row", "PPL", "LR"): 2, ("table2", "row", "PPL", "HR"): 3}
    assert printed_in({"printed": ["table1", "table2"]}, printed) == {("row", "PPL", "LR"): 1, ("row", "PPL", "HR"): 3}
    assert printed_in({"printed": ["table2", "table1"]}, printed)["row", "PPL", "LR"] == 2
    assert printed_in({}, printed) == {}


def test_seeds_that_reach_a_number_are_counted(tmp_path):
    entry = BY_METHOD | {"decides": BY_METHOD["decides"] | {"reach": 0.43}}
    values = {"plain": [0.37, 0.37, 0.43], "skip": [0.37, 0.44, 0.45], "listing": [0.42]}
    cells, _ = said(tmp_path, entry, values)
    remarks = [cell_of(cells, way).remarks[0] for way in ("matrix", "skip", "listing")]
    assert remarks == [f"{reach} of {seeds} seeds reach 0.43" for reach, seeds in ((1, 3), (2, 3), (0, 1))]


def test_several_methods_in_one_table(tmp_path):
    entry = BY_METHOD | {"methods": list(METHODS), "readings": ["matrix", "skip", "listing"]}
    values = {"plain": [0.30, 0.60], "skip": [0.31, 0.61001], "other": [0.3], "other_skip": [0.4]}
    cells, text = said(tmp_path, entry, values)
    assert "one seed (Other)" in text
    assert "listing against matrix (Accuracy of LR): not run (Proposed (margin=1), Other)." in text
    assert cell_of(cells, "Other: skip - matrix").value == pytest.approx(0.1)


def test_one_method_measured_in_several_ways(tmp_path):
    numbers = {
        ("plain", "accuracy", "LR", "valid@best"): [0.3, 0.4],
        ("plain", "accuracy", "LR", "valid@last"): [0.2, 0.29],
        ("plain", "accuracy_else", "LR@index", "valid@best"): [0.5, 0.61],
        ("skip", "accuracy", "LR", "valid@best"): [0.4, 0.5],
        ("skip", "accuracy", "LR", "valid@last"): [0.1, 0.2],
        ("skip", "accuracy_else", "LR@index", "valid@best"): [0.6, 0.7],
    }
    definition = definition_of(BY_MEASURE)
    cells = reading_cells(definition, ITEM, results_of(tmp_path, numbers), PRINTED)
    assert cell_of(cells, "Proposed (margin=1): last - best").value == pytest.approx(-0.105)
    assert cell_of(cells, "Proposed (margin=1): elsewhere - best").value == pytest.approx(0.205)


def test_a_column_may_name_its_group_and_split(tmp_path):
    columns = {"KL": {"metric": "divergence", "group": "unigram", "split": "train", "format": ".1f"}}
    entry = {key: value for key, value in BY_METHOD.items() if key != "groups"}
    definition = definition_of(entry | {"columns": columns, "decides": {"column": "KL"}})
    numbers = {("plain", "divergence", "unigram", "train"): [3.0], ("skip", "divergence", "unigram", "train"): [1.0]}
    cells = reading_cells(definition, ITEM, results_of(tmp_path, numbers), PRINTED)
    assert cell_of(cells, "skip - matrix", "KL", "").value == -2


def test_intervals_are_in_the_table_and_in_the_csv(tmp_path):
    values = {"plain": [0.30, 0.60, 0.90], "skip": [0.31, 0.62, 0.93], "listing": [0.3, 0.6, 0.9]}
    cells, text = said(tmp_path, BY_METHOD, values)
    definition = definition_of(BY_METHOD)
    shown = markdown(definition, ITEM, cells, [text])
    assert "### T: Readings X1. X (the paper's own scale)" in shown
    assert "+0.0200 \\[-0.0048, +0.0448]" in shown
    assert "a - b: mean difference, paired by seed, with its 95% t interval in brackets." in shown
    assert "+0.0200 {[}-0.0048, +0.0448{]}" in latex(definition, ITEM, cells, [text])
    tidy(cells).to_csv(tmp_path / "x.csv", index=False)
    table = read_csv(tmp_path / "x.csv")
    assert list(table.columns)[-2:] == ["lower", "upper"]
    row = table[(table["row"] == "skip - matrix") & (table["group"] == "LR")].iloc[0]
    assert (row["value"], row["lower"], row["upper"]) == ("0.02", "-0.00484138", "0.0448414")


def test_the_legend_tells_one_seed_from_several(tmp_path):
    values = {"plain": [0.30, 0.60, 0.90], "skip": [0.31, 0.62, 0.93], "listing": [0.3]}
    cells, _ = said(tmp_path, BY_METHOD, values)
    mixed = "Mean ± sample standard deviation over the row's seeds, at most 3; "
    mixed += "a number without ± has one seed, or is the same in all."
    assert mixed in legend(definition_of(BY_METHOD), cells)
    alike = [cell for cell in cells if cell.seeds == 3]
    assert "Mean ± sample standard deviation over 3 seeds." in legend(definition_of(BY_METHOD), alike)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"methods": ["plain", "skip"]}, "methods has 2 methods for 3 readings; name one for each reading"),
        ({"decides": {"column": "BLEU"}}, "decides.column is 'BLEU'; it can be Accuracy"),
        ({"decides": {"column": "Accuracy"}}, "decides.group is ''; Accuracy is shown for 'HR', 'LR'"),
    ],
)
def test_mistakes_are_refused(change, words):
    with pytest.raises(UserError, match=re.escape(words)):
        config_checks.check_readings(BY_METHOD | change, "x.yaml: tables.readings-X1")
    config_checks.check_readings(copy.deepcopy(BY_METHOD), "x.yaml")


def tables_of_readings():
    return [
        (paper, item, entry)
        for paper, config in CONFIGS.items()
        for item, entry in config["tables"].items()
        if entry["kind"] == "readings"
    ]


def test_the_list_of_deviations_and_the_tables_name_each_other():
    listed = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z]\d+(?:, [A-Z]\d+)*) \|(.*)", listed, flags=re.MULTILINE))
    by_id = {name: row for names, row in rows.items() for name in names.split(", ")}
    found = tables_of_readings()
    assert {name for _, _, entry in found for name in entry["about"]} >= {"G1", "S1", "A3", "A16", "N4", "S6"}
    for paper, item, entry in found:
        for name in entry["about"]:
            assert f"results/recorded/small/tables/{paper}/{item}.md" in by_id[name], (paper, item)
    for row in by_id.values():
        for link in re.findall(r"\]\(\.\./(results/recorded/small/tables/[^)]*readings[^)]*)\)", row):
            assert (ROOT / link).exists()


def test_readings_differ_only_in_their_subject():
    table = run_table.load({"scale": "paper", "seeds": 1, **config_without_choices()}, ROOT)
    settings = {(run.experiment, run.method): copy.deepcopy(run.settings) for run in table.runs.values()}
    for name in ("unigram", "zero"):
        base = settings["iwslt14_de-en", name]
        assert base["model"]["output_scale"] == "none"
        for scaled in ("frobenius", "spectral"):
            other = settings["iwslt14_de-en", f"{name}_{scaled}"]
            assert other["model"].pop("output_scale") == scaled
            assert other == {**base, "model": {k: v for k, v in base["model"].items() if k != "output_scale"}}
    for experiment, name in (("language_model", "agg"), ("shakespeare", "agg_a0.02")):
        other = settings[experiment, f"{name}_memory"]
        assert other["method"]["gate"].pop("divisor") == "memory"
        assert other == settings[experiment, name]


def config_without_choices():
    """config.yaml as it is shipped, without what a test names."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    return {key: value for key, value in config.items() if key not in ("scale", "seeds")}


def test_separated_embeddings_have_many_seeds():
    for scale, least in (("small", 5), ("paper", 20)):
        table = run_table.load({"scale": scale, **config_without_choices(), "seeds": None}, ROOT)
        for name in ("threshold_m1", "threshold_m1_se", "threshold_m1_se_listing"):
            assert len(table.seeds_of("stop_jostling", name, "shakespeare")) >= least
