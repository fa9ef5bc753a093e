"""The experiment in which a table or figure shows a method that is trained in several."""

import copy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import load as load_table
from rarepapers.reporting.definition import definition_of
from rarepapers.rule_inputs import report

ROOT = Path(__file__).parents[2]
PAPER = "stop_jostling"


@pytest.fixture
def load(tmp_path):
    """The run table of a config with a second experiment, in which `shown` items show their methods."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    path = tmp_path / "config" / "papers" / PAPER / "paper.yaml"

    def load(*shown, method=None):
        paper = yaml.safe_load(path.read_text())
        paper["experiments"]["second"] = copy.deepcopy(paper["experiments"]["shakespeare"])
        if method:
            paper["methods"][method]["experiments"] = ["shakespeare"]
        for item in shown:
            (paper["tables"] if item in paper["tables"] else paper["figures"])[item]["experiment"] = "second"
        path.write_text(yaml.safe_dump(paper, sort_keys=False))
        config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
        return load_table(config | {"scale": "paper", "seeds": 2}, tmp_path)

    return load


def experiments(table, item):
    return {method.experiment for method in definition_of(report.definition(table, PAPER)).behind(item)}


def test_an_item_shows_the_experiment_it_names(load):
    table = load("table8", "figure4")
    for item in ("table8", "figure4"):
        assert experiments(table, item) == {"second"}
        files = report.measurements(table, SimpleNamespace(paper=PAPER, item=item))
        assert len(files) == 2 * 2 * 2
        assert all("/runs/second/" in path for path in files)


def test_by_default_it_is_the_first(load):
    table = load("table8")
    assert experiments(table, "table1") == {"shakespeare"}
    assert all(
        "/shakespeare/" in path for path in report.measurements(table, SimpleNamespace(paper=PAPER, item="figure4"))
    )


def test_page_and_claims_use_the_same_experiment(load):
    definition = definition_of(report.definition(load("table8"), PAPER))
    assert definition.methods["dut_m1"].experiment == "shakespeare"
    assert definition.of("table8").methods["dut_m1"].experiment == "second"
    assert definition.of("table1") == definition


def test_a_method_that_is_not_trained_there_is_refused(load):
    with pytest.raises(UserError, match="table8 shows dut_m1 in experiment 'second', in which it is not trained"):
        load("table8", method="dut_m1")
