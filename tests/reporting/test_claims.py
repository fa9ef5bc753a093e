"""Verdicts: intervals against known quantiles, pairing by seed, missing runs."""

import json
import math
import shutil
import statistics
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_results import PUBLISHED, read_csv

from raretok.__main__ import main
from raretok.reporting import table_claims
from raretok.reporting.claims import COLUMNS, Finding, corrected, judge, judge_paper
from raretok.reporting.definition import parse_definition
from raretok.reporting.intervals import t_interval
from raretok.reporting.named.evidence import Cases, Partial
from raretok.reporting.predicates import Truth, at_least, evaluate
from raretok.reporting.results import read_results

# Two-sided 95% points of Student's t, from printed tables.
QUANTILES = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 9: 2.2622, 10: 2.2281, 30: 2.0423, 120: 1.9799}


@pytest.mark.parametrize("freedom", QUANTILES)
def test_t_interval_has_the_quantiles_of_printed_tables(freedom):
    values = [float(k * k) for k in range(freedom + 1)]
    mean, lower, upper = t_interval(values)
    half = QUANTILES[freedom] * statistics.stdev(values) / math.sqrt(len(values))
    assert (lower, upper) == pytest.approx((mean - half, mean + half), abs=1e-4 * half)


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


def truths_of(*slacks):
    return {seed: Truth(slack > 0, slack) for seed, slack in enumerate(slacks)}


def test_what_holds_alone_is_inconclusive_after_the_correction():
    """p is 0.0082 and twice 0.0346; by Holm it is tripled and doubled."""
    strong, weak = truths_of(1.0, 1.1, 0.8), truths_of(1.0, 1.3, 0.65)
    against = truths_of(-1.0, -1.3, -0.65)
    found = [judge(strong, None, ""), judge(weak, None, "measured"), judge(against, None, "")]
    assert [finding.verdict for finding in found] == ["reproduced", "reproduced", "not reproduced"]
    after = corrected(found)
    assert [finding.p for finding in after] == pytest.approx([0.008221, 0.034601, 0.034601], rel=1e-3)
    assert [finding.p_holm for finding in after] == pytest.approx([0.024663, 0.069203, 0.069203], rel=1e-3)
    assert [finding.verdict for finding in after] == ["reproduced", "inconclusive", "inconclusive"]
    why = "not after Holm's correction for the 3 claims of the paper that seeds can decide"
    assert [finding.note for finding in after] == [
        "",
        f"measured; alone it would be reproduced, but {why}",
        f"alone it would be not reproduced, but {why}",
    ]


@pytest.mark.parametrize(
    ("truths", "exact", "testable"),
    [
        (truths_of(1.0), False, True),  # one seed
        (truths_of(0.0, 0.0), False, True),  # a tie in every seed: nothing to test
        (truths_of(math.inf, 1.0), False, True),
        (Partial(truths_of(1.0, 1.3, 0.9)), False, True),  # some of its data sets alone
        (truths_of(-1.0), True, False),  # of the data, or of fixed weights
        (Cases(truths_of(-1.0, -1.3, -0.9)), False, False),  # of formulas: no training seed is behind them
    ],
)
def test_what_has_no_p_yet_makes_the_others_harder_what_has_none_in_principle_does_not(truths, exact, testable):
    """So a verdict does not come and go with the number of claims that have been run so far."""
    untested, tested = judge(truths, None, "", exact=exact), judge(truths_of(1.0, 1.1, 0.8), None, "")
    assert untested.p is None
    after = corrected([untested, tested])
    assert after == [untested, replace(tested, p_holm=pytest.approx(tested.p * (2 if testable else 1)))]
    not_run = Finding("not run")
    assert corrected([not_run, tested])[1].p_holm == pytest.approx(tested.p * 2)


def test_a_claim_is_about_means_over_seeds():
    """|mean - 0.72| <= 0.01 is true of 0.68 to 0.76, of no seed alone; what is linear is as it was, seed by seed."""
    values = {1: 0.68, 2: 0.76, 3: 0.73, 4: 0.71}
    results = SimpleNamespace(values=values)
    near, linear = "abs(v('t','a','b') - 0.72) <= 0.01", "v('t','a','b') > 0.7"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_claims, "_measured", lambda definition, found, *key: found.values)
        patch.setattr(table_claims, "of_this_scale", lambda predicate, definition: predicate)
        alone, _ = table_claims.table_truths(near, None, results)
        of_means, seeded = table_claims.truths_of_means(near, None, results)
        assert table_claims.truths_of_means(linear, None, results)[0] == {
            seed: Truth(True, pytest.approx(value - 0.7)) for seed, value in values.items()
        }
    assert seeded
    assert judge(alone, None, "").effect < 0
    assert all(truth.holds for truth in of_means.values())
    assert judge(of_means, None, "").effect > 0
    # By hand, 4 s - 3 s': the slack is 0.01 on all four, -0.01/3 without 0.68 or 0.76, 0.02/3 without another
    assert [of_means[seed].slack for seed in values] == pytest.approx([0.05, 0.05, 0.02, 0.02])


def test_formulas_that_fail_have_no_p(scale, monkeypatch):
    """Their random cases have seeds, which are no training seeds."""
    monkeypatch.setattr("raretok.evaluation.thresholds.check_lemma3", lambda seed, cases: seed)
    rows = {row["id"]: row for row in judge_paper(parse_definition(scale.text), read_results(scale.folder), PUBLISHED)}
    row = rows["stop_jostling.lemma3"]
    assert (row["verdict"], row["effect"], row["p"]) == ("not reproduced", "-3", "")


def test_claims_csv_has_the_verdict_alone_beside_that_after_the_correction(scale):
    rows = judge_paper(parse_definition(scale.text), read_results(scale.folder), PUBLISHED)
    assert list(rows[0]) == COLUMNS
    assert COLUMNS[-4:] == ["note", "p", "p_holm", "alone"]
    tested = [row for row in rows if row["p"]]
    assert len(tested) > 30
    assert all(float(row["p_holm"]) >= float(row["p"]) for row in tested)
    changed = [row for row in tested if row["verdict"] != row["alone"]]
    assert changed
    for row in changed:
        assert row["verdict"] == "inconclusive"
        assert f"alone it would be {row['alone']}, but not after Holm's correction for the 41 claims" in row["note"]
    untested = [row for row in rows if not row["p"]]
    assert all(row["verdict"] == row["alone"] and row["p_holm"] == "" for row in untested)
    assert {"stop_jostling.lemma3", "stop_jostling.min_p"} <= {row["id"] for row in untested}


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
    assert table.loc["stop_jostling.t1.mono_worse", "alone"] == "reproduced"
    assert table.loc["stop_jostling.t1.mono_worse", "published"] == "0.0296"
    assert table.loc["stop_jostling.concl.ppl", "alone"] == "not reproduced"
    assert table.loc["stop_jostling.t3.pt_increases", "alone"] == "not run"
    assert "GPT-2 Small" in table.loc["stop_jostling.t3.pt_increases", "note"]
    assert table.loc["stop_jostling.t3.init_linear", ["alone", "seeds"]].tolist() == ["reproduced", "2"]
    for claim in ("f3.roa14", "f3.aor_all", "f3.aor_gain", "f3.roa_gain", "t2.related", "f4.tail", "f6.pca"):
        assert table.loc[f"stop_jostling.{claim}", "alone"] == "reproduced", claim
    for claim in ("f7_8.min", "lemma3", "min_p"):
        assert table.loc[f"stop_jostling.{claim}", "alone"] == "reproduced", claim


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
    assert (seeded["alone"], seeded["seeds"], seeded["effect"]) == ("reproduced", 2, "0.45")
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
    # Without what is said of the correction for many claims.
    notes = {row["id"].removeprefix("stop_jostling."): row["note"].partition("; alone it")[0] for row in rows}
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
