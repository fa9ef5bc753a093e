"""Verdicts: intervals against known quantiles, pairing by seed, missing runs."""

import json
import math
import shutil

import pytest
from fake_results import PUBLISHED, read_csv

from raretok.__main__ import main
from raretok.reporting.claims import judge, judge_paper
from raretok.reporting.definition import parse_definition
from raretok.reporting.intervals import t_interval, t_quantile
from raretok.reporting.predicates import Truth, at_least, evaluate
from raretok.reporting.results import read_results

# Two-sided 95% points of Student's t, from printed tables.
QUANTILES = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 9: 2.2622, 10: 2.2281, 30: 2.0423, 120: 1.9799}


@pytest.mark.parametrize("freedom", QUANTILES)
def test_t_quantile(freedom):
    assert t_quantile(0.975, freedom) == pytest.approx(QUANTILES[freedom], abs=6e-5)


def test_t_interval_by_hand():
    # mean 2, standard deviation 1, half width 4.3027 / sqrt(3)
    assert t_interval([1.0, 2.0, 3.0]) == pytest.approx((2, 2 - 2.4841, 2 + 2.4841), abs=1e-4)
    assert t_interval([5.0]) == (5.0, None, None)
    assert t_interval([4.0, 4.0]) == (4.0, 4.0, 4.0)
    assert t_interval([math.inf, 4.0]) == (math.inf, None, None)


@pytest.mark.parametrize(
    ("slacks", "verdict"),
    [
        ([1.0, 1.1, 0.9], "reproduced"),
        ([-1.0, -1.1, -0.9], "not reproduced"),
        ([1.0, -1.0], "inconclusive"),
        ([1.0], "inconclusive"),
        ([-1.0], "inconclusive"),
        ([math.inf, 1.0], "inconclusive"),
    ],
)
def test_verdicts(slacks, verdict):
    truths = {seed: Truth(slack > 0, slack) for seed, slack in enumerate(slacks)}
    assert judge(truths, None, "").verdict == verdict


def test_a_tie_reproduces_only_what_is_not_strict():
    assert judge({1: Truth(True, 0.0), 2: Truth(True, 0.0)}, None, "").verdict == "reproduced"
    assert judge({1: Truth(False, 0.0), 2: Truth(False, 0.0)}, None, "").verdict == "not reproduced"


def test_a_measurement_on_the_bound_reproduces_it():
    """`T_best` of five seeds at 0.95 is within 0.05 of 1, though not in floating point."""
    truths = {seed: evaluate("abs(v('t','r','T') - 1) <= 0.05", lambda *key: 0.95) for seed in range(5)}
    finding = judge(truths, None, "")
    assert (finding.verdict, finding.effect) == ("reproduced", 0)


def test_a_named_claim_on_the_bound_reproduces_it():
    assert at_least(0.1 + 0.7, 0.8) == at_least(0.8, 0.1 + 0.7) == Truth(True, 0)


def test_claims_csv(scale):
    output = scale.folder / "claims.csv"
    assert (
        main(
            [
                "claims",
                f"--definitions={scale.text}",
                f"--results={scale.folder}",
                f"--published={PUBLISHED}",
                f"--output={output}",
            ]
        )
        == 0
    )
    table = read_csv(output).set_index("id")
    assert len(table) == 43
    assert table.loc["stop_jostling.t1.mono_worse", "verdict"] == "reproduced"
    assert table.loc["stop_jostling.t1.mono_worse", "published"] == "0.0296"
    assert table.loc["stop_jostling.concl.ppl", "verdict"] == "not reproduced"
    assert table.loc["stop_jostling.t3.pt_increases", "verdict"] == "not run"
    assert "GPT-2 Small" in table.loc["stop_jostling.t3.pt_increases", "note"]
    assert table.loc["stop_jostling.t3.init_linear", ["verdict", "seeds"]].tolist() == ["reproduced", "2"]
    for claim in ("f3.roa14", "f3.aor_all", "f3.aor_gain", "f3.roa_gain", "t2.related", "f4.tail", "f6.pca"):
        assert table.loc[f"stop_jostling.{claim}", "verdict"] == "reproduced", claim
    for claim in ("f7_8.min", "lemma3", "min_p"):
        assert table.loc[f"stop_jostling.{claim}", "verdict"] == "reproduced", claim


def test_pretrained_weights_are_the_same_for_every_seed(scale, tmp_path):
    """A claim that holds them against random initialisations is judged seed by seed; one on them alone has none."""
    shutil.copy(scale.folder / "metrics.csv", tmp_path)
    shutil.copytree(scale.folder / "gpt2", tmp_path / "gpt2")
    for path in (tmp_path / "gpt2").iterdir():
        measured = json.loads(path.read_text())
        size = measured["width"] / 16
        measured["pretrained"] = {"margin": size, "margin_sigma": 1.0, "alpha": 0.5, "alpha_sigma": 0.1}
        path.write_text(json.dumps(measured))
    rows = {row["id"]: row for row in judge_paper(parse_definition(scale.text), read_results(tmp_path), PUBLISHED)}
    seeded, fixed = rows["stop_jostling.t3.alpha_pt_lower"], rows["stop_jostling.t3.pt_increases"]
    assert (seeded["verdict"], seeded["seeds"], seeded["effect"]) == ("reproduced", 2, "0.45")
    assert (fixed["verdict"], fixed["seeds"]) == ("reproduced", 0)


def test_effect_is_paired_by_seed(scale):
    results = read_results(scale.folder)
    definition = parse_definition(scale.text)
    rows = {row["id"]: row for row in judge_paper(definition, results, PUBLISHED)}
    cells = [results.per_seed(definition.methods[name], "accuracy", "LR") for name in ("baseline", "monolingual")]
    slacks = [cells[0][seed] - cells[1][seed] for seed in (1, 2)]
    row = rows["stop_jostling.t1.mono_worse"]
    assert float(row["effect"]) == pytest.approx(sum(slacks) / 2, rel=1e-4)
    half = 12.7062 * abs(slacks[0] - slacks[1]) / 2
    assert float(row["upper"]) - float(row["effect"]) == pytest.approx(half, rel=1e-3)


def test_what_the_printed_numbers_refute_is_said_once(scale):
    rows = judge_paper(parse_definition(scale.text), read_results(scale.folder), PUBLISHED)
    notes = {row["id"].removeprefix("stop_jostling."): row["note"] for row in rows}
    assert notes["t6.ppl_best"] == "fails on the printed numbers"
    assert notes["t1.ppl_best_hr"] == "fails on the printed numbers: 5.13 against 5.01"
    assert notes["t1.lr_recall_monotone"] == "fails on the printed numbers between margins 8 and 4"
    assert notes["t1.ppl_best_lr_all"].startswith("general form; fails on the printed numbers for margins 8 and 4")
    assert sum("fails on the printed numbers" in note for note in notes.values()) == 8
    assert all(note.count("fails") <= 1 for note in notes.values())


def test_a_missing_method_is_named_and_the_scale_is_said(scale, tmp_path):
    metrics = read_csv(scale.folder / "metrics.csv")
    metrics[metrics["method"] != "monolingual"].to_csv(tmp_path / "metrics.csv", index=False)
    shutil.copytree(scale.folder / "gpt2", tmp_path / "gpt2")
    definition = parse_definition(json.dumps(scale.definition | {"comparable": False}))
    rows = {row["id"]: row for row in judge_paper(definition, read_results(tmp_path), PUBLISHED)}
    row = rows["stop_jostling.t1.mono_worse"]
    assert row["verdict"] == "not run"
    assert "monolingual was not run" in row["note"]
    assert "not comparable" in row["note"]
    assert rows["stop_jostling.f3.roa14"]["verdict"] == "not run"  # no arrays here
    assert rows["stop_jostling.t5.alpha_lr"]["verdict"] != "not run"
