"""The order of runs."""

import json

import pytest

from rarepapers.core.errors import UserError
from rarepapers.work.run_order import named_seeds, order_runs, read_order


@pytest.fixture
def table(table_with):
    return table_with(scale="smoke", seeds=2, papers=["stop_jostling", "agps"])


def test_baselines_and_headlines_come_first_and_more_seeds_last(table):
    names = [run.name for run in order_runs(table)]
    assert sorted(names) == sorted(run.name for run in table.runs.values())
    assert names[0] == "shakespeare/baseline/seed1"
    headline = {"baseline", "threshold_m2", "threshold_m1", "threshold_m1_se", "cosreg", "agps"}
    first = [name for name in names if name.split("/")[1] in headline and name.endswith("seed1")]
    # cosreg is a headline of agps, but not of stop_jostling.
    assert set(names[: len(first) - 1]) == set(first) - {"shakespeare/cosreg/seed1"}
    seeds = [name.rpartition("/")[2] for name in names]
    assert seeds == ["seed1"] * (len(names) // 2) + ["seed2"] * (len(names) // 2)


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\na/m/seed2  decides claim 3\n\nb/m/seed1\na/m/seed2\n",
        '[{"experiment": "a", "method": "m", "seed": 2}, {"experiment": "b", "method": "m", "seed": 1, "step": 2}]',
        '{"experiment": "a", "method": "m", "seed": 2, "settings": {}}\nb/m/seed1\n',
    ],
)
def test_an_order_is_lines_or_json(tmp_path, text):
    path = tmp_path / "order"
    path.write_text(text)
    assert read_order(path) == ["a/m/seed2", "b/m/seed1"]
    assert named_seeds(read_order(path)) == [1, 2]


@pytest.mark.parametrize(
    "text", ["", "a/m\n", "a/m/seedx\n", "a/m/1\n", "a/m/n/seed1\n", "[1]", json.dumps({"method": "m"}), "{broken\n"]
)
def test_names_of_unknown_runs_are_refused_with_the_file(tmp_path, text):
    path = tmp_path / "order"
    path.write_text(text)
    with pytest.raises(UserError, match=str(path)):
        read_order(path)


def test_an_order_trains_only_the_runs_that_it_names(table):
    names = ["agps_language_model/agps/seed2", "shakespeare/baseline/seed1"]
    assert [run.name for run in order_runs(table, names)] == names
    with pytest.raises(UserError, match="shakespeare/baseline/seed7"):
        order_runs(table, ["shakespeare/baseline/seed7"])
