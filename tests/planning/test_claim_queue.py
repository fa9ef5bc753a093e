"""The queue of runs that would decide claims, with made-up claims and with the recorded ones."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from rarepapers.__main__ import main
from rarepapers.planning.claim_queue import BEGUN, lines_of, queue
from rarepapers.reporting.claims.claim_runs import Price
from rarepapers.reporting.claims.deciding import Decision
from rarepapers.work.run_order import read_order

ROOT = Path(__file__).parents[2]


def prices(experiment, method):
    return {"cheap": Price(10), "dear": Price(100), "unknown": None}[method]


def run(method, seed):
    return ("x", method, seed)


def test_the_most_claims_per_hour_come_first_and_each_run_once():
    needed = {
        "a": Decision("", 1, (run("dear", 1),), sure=True),
        "b": Decision("", 1, (run("cheap", 1),), sure=True),
        "c": Decision("", 2, (run("cheap", 1), run("cheap", 2)), sure=True),
        "d": Decision("", None, (run("dear", 1), run("cheap", 2))),
        "e": Decision("", None, (run("unknown", 1),)),
    }
    steps = queue(needed, prices)
    # two claims in 20 minutes equal one in 10 per hour, so `b` alone comes first
    assert [(step.decides, step.begins) for step in steps] == [
        (("b",), ()),
        (("c",), ()),
        (("a",), ("d",)),
        ((), ("e",)),
    ]
    runs = [each for step in steps for each in step.runs]
    assert len(runs) == len(set(runs)) == 4
    assert [step.price and step.price.minutes for step in steps] == [10, 10, 100, None]
    assert steps[2].per_hour == pytest.approx((1 + BEGUN) * 60 / 100)


def test_one_run_can_decide_several_claims():
    together = {name: Decision("", 1, (run("dear", 1),), sure=True) for name in "abcdefghijkl"}
    alone = {"m": Decision("", 1, (run("cheap", 1),), sure=True)}
    assert queue(alone | together, prices)[0].decides == tuple("abcdefghijkl")


def test_the_recorded_claims_have_a_queue(capsys, tmp_path):
    arguments = ["plan", "--claims", "--scale", "small", "--root", str(ROOT)]
    arguments += ["--results", str(ROOT / "results" / "recorded" / "small")]
    assert main([*arguments, "--json"]) == 0
    printed = capsys.readouterr().out
    entries = json.loads(printed)
    # `rarepapers work --order` reads it unchanged
    (tmp_path / "order.json").write_text(printed)
    names = [f"{entry['experiment']}/{entry['method']}/seed{entry['seed']}" for entry in entries]
    assert read_order(tmp_path / "order.json") == names
    claims = [name for entry in {entry["step"]: entry for entry in entries}.values() for name in entry["decides"]]
    assert len(claims) == len(set(claims))
    targets = [entry["target"] for entry in entries]
    assert len(targets) == len(set(targets))
    # no recorded run is trained again
    assert not [path for path in targets if (ROOT / path.replace("results/", "results/recorded/", 1)).exists()]


def test_the_queue_as_text():
    steps = queue({"a": Decision("", 2, (run("cheap", 4), run("cheap", 3)), sure=True)}, prices)
    lines = lines_of(steps, SimpleNamespace(scale="small"))
    assert lines[0].split()[:2] == ["step", "runs"]
    assert lines[1].split() == ["1", "x/cheap", "3,", "4", "20", "core-minutes", "0.33", "1", "0", "3", "a"]
    folder = "results/small/runs/x/cheap"
    targets = f"{folder}/seed3/metrics.json {folder}/seed4/metrics.json"
    assert lines[-1] == f"Start with: snakemake --cores all --config scale=small 'seeds=[3,4]' -- {targets}"
    seeds = (5, 1, 2, 7, 8, 9, 12)
    several = queue({"a": Decision("", 2, tuple(run("cheap", seed) for seed in seeds), sure=True)}, prices)
    assert " x/cheap 1, 2, 5, 7-9, 12 " in lines_of(several, SimpleNamespace(scale="small"))[1]
    assert "No run would decide a claim" in lines_of([], None)[0]


def test_missing_results_are_one_sentence(tmp_path, capsys):
    assert main(["plan", "--claims", "--scale", "small", "--root", str(ROOT), "--results", str(tmp_path)]) == 2
    assert "no metrics.csv" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--json"], ["--results", "results"]])
def test_options_of_the_queue_need_claims(options, capsys):
    assert main(["plan", "--scale", "small", "--root", str(ROOT), *options]) == 2
    assert f"error: {options[0]} needs --claims" in capsys.readouterr().err
