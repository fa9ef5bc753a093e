"""Numbers in csv and JSON files that the report reads: finite, or an error with file and line."""

import numpy as np
import pandas as pd
import pytest
from fake_table import definition_of, results_of, write_published

from rarepapers.core.errors import UserError
from rarepapers.core.files import write_json
from rarepapers.data.text.similarity_pairs import read_pairs
from rarepapers.evaluation.settings import read_settings
from rarepapers.reporting.collect import collect
from rarepapers.reporting.cost import COLUMNS, read_costs
from rarepapers.reporting.csv_rows import write_table
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.record import record
from rarepapers.reporting.results import printed_numbers, read_published, read_results
from rarepapers.reporting.tables.cells import metric_cells
from rarepapers.training.train_command import read_run


@pytest.fixture
def metrics(tmp_path):
    table = results_of(tmp_path, {"base": [1.0, 2.0, 3.0]}).metrics.astype(str)
    return tmp_path, table


@pytest.mark.parametrize("column", ["value", "seed", "n"])
@pytest.mark.parametrize("text", ["much", "1e999", "-1e999", "Infinity"])
def test_metrics(metrics, column, text):
    folder, table = metrics
    table.loc[1, column] = text
    write_table(folder / "metrics.csv", table)
    with pytest.raises(UserError, match=rf"metrics\.csv, line 3: {column} is '{text}'; it must be a finite number"):
        read_results(folder)


@pytest.mark.parametrize("text", ["inf", "-inf", "nan"])
def test_a_diverged_metric_is_read(metrics, text):
    folder, table = metrics
    table.loc[1, "value"] = text
    write_table(folder / "metrics.csv", table)
    assert str(read_results(folder).values["e1", "base", "score", "", "test@best"][2]) == text  # noqa: PD011


@pytest.mark.parametrize("value", ["1e999", "much", None, [1]])
def test_metrics_of_another_job(tmp_path, value):
    path = tmp_path / "metrics.json"
    about = dict.fromkeys(("paper", "experiment", "method", "hash"), "a") | {"seed": 1}
    metric = {"metric": "bleu", "group": "", "split": "test@best", "value": value, "n": 3, "signature": ""}
    write_json(path, {"training": about, "metrics": [metric]})
    with pytest.raises(UserError, match=r"metrics\.json: bleu is .*, not a number; evaluate the run again"):
        collect([path])


@pytest.mark.parametrize("text", ["nan", "1e999", "much", "-inf"])
def test_printed_numbers(tmp_path, text):
    published = write_published(tmp_path, {("Base", ""): "1", ("Other", ""): text})
    with pytest.raises(UserError, match=rf"numbers\.csv, line 3: value is '{text}'; it must be a finite number or inf"):
        printed_numbers(published, "made_up")


def test_a_printed_infinity_is_shown(tmp_path):
    published = write_published(tmp_path, {("Base", ""): "inf"})
    definition = definition_of({"base": "Base"})
    (cell,) = metric_cells(definition, "table1", results_of(tmp_path, {"base": [1.0]}), published)
    assert (cell.published, cell.difference) == ("inf", None)


@pytest.mark.parametrize(("column", "text"), [("null", "one"), ("margin", "0.5;nan"), ("margin", "1e999")])
def test_margins_of_claims(tmp_path, column, text):
    published = write_published(tmp_path, {}, claims=[{}, {column: text}])
    with pytest.raises(UserError, match=rf"claims\.csv, line 3: {column} is '{text}'; it must be a finite number"):
        read_published(published, "claims", "made_up")


def test_a_definition():
    with pytest.raises(UserError, match="the definition, line 2: NaN is not a finite number"):
        parse_definition('{"paper": "a",\n"x": NaN}')


@pytest.mark.parametrize("text", ["nan", "1e999", "much"])
def test_costs(tmp_path, text):
    path = tmp_path / "cost.csv"
    table = pd.DataFrame([dict.fromkeys(COLUMNS, "1")] * 2)
    table.loc[1, "cpu_seconds"] = text
    write_table(path, table)
    with pytest.raises(UserError, match=rf"cost\.csv, line 3: cpu_seconds is '{text}'; it must be a finite number"):
        read_costs(path)


@pytest.mark.parametrize("score", ["nan", "inf", "-1e999"])
def test_scores_of_word_pairs(tmp_path, score):
    path = tmp_path / "pairs.txt"
    path.write_text(f"a b 1.5\nc d {score}\n")
    with pytest.raises(UserError, match=rf"pairs\.txt, line 2: the score {score} is not a finite number"):
        read_pairs(path)


def test_a_run_and_settings(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"experiment": "e",\n"seed": NaN}')
    with pytest.raises(UserError, match=r"run\.json, line 2: NaN is not a finite number"):
        read_run(f"@{path}")
    with pytest.raises(UserError, match=r"--settings, line 1: 1e999 is not a finite number"):
        read_settings('{"context": 1e999}', "language")


def test_a_record_of_another_machine(tmp_path):
    folder = tmp_path / "results/runs/e/m/seed1"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text('{"training": {\n"seconds": 1e999}}')
    (folder / "history.csv").write_text("step\n")
    np.savez(folder / "arrays.npz", a=np.zeros(1))
    with pytest.raises(UserError, match=r"seed1/metrics\.json, line 2: 1e999 is not a finite number"):
        record(tmp_path / "results", tmp_path / "recorded")
