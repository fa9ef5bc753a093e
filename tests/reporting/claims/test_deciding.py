"""Runs that would decide a claim: number of seeds by power, cheapest runs, words and costs."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fake_results import definition_of
from scipy import stats

from rarepapers.reporting.claims import deciding
from rarepapers.reporting.claims.claim_parts import Bound, Part
from rarepapers.reporting.claims.claim_runs import Price, measured_prices
from rarepapers.reporting.claims.claim_text import shown_numbers
from rarepapers.reporting.claims.deciding import cheapest_runs, more_seeds, power_of, seeds_to_decide
from rarepapers.reporting.claims.table_claims import compared
from rarepapers.reporting.claims.verdicts import NOT_RUN, UNDECIDED, Finding
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import COLUMNS, Results
from rarepapers.reporting.statistics.moderated_t import Estimate, Prior, estimate


def part(mean, sd=1.0, seeds=3, sign=1, value=0.0, prior=None):
    diverged = "infinite in seed 2" if math.isinf(mean) else ""
    return Part("", Estimate(mean, sd, seeds - 1.0, seeds, prior, diverged), (Bound(sign, value),))


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 34), (0.8, 15), (1.0, 10)])
def test_seeds_of_textbook_power(effect, seeds):
    """Cohen's tables: the sample size at which a two-sided one-sample t test at 5% has power 0.8."""
    assert power_of(effect, seeds, seeds - 1, 0.05) >= 0.8 > power_of(effect, seeds - 1, seeds - 2, 0.05)
    assert more_seeds(Estimate(effect, 1.0, 4.0, 5), Bound(1, 0.0), 0.05) == seeds - 5
    # The effect is measured from the bound, not from 0, with either sign.
    assert more_seeds(Estimate(7 - effect, 1.0, 4.0, 5), Bound(1, 7.0), 0.05) == seeds - 5


def test_power_at_extreme_effects():
    assert power_of(1e6, 3, 2, 0.001) == 1
    assert power_of(20, 3, 2, 1e-12) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("level", [0.05, 0.05 / 40])
@pytest.mark.parametrize("df", [1, 2, 2.5, 9])
@pytest.mark.parametrize("shift", [0.5, 5, 29.9, 30.1, 40, 300])
def test_power_equals_numerical_integration(shift, df, level):
    """The mean over s, the estimated standard deviation, of P(z > t s - shift)."""
    beyond = stats.t.isf(level / 2, df)
    shares = (np.arange(20_000) + 0.5) / 20_000
    spread = np.sqrt(stats.chi2.ppf(shares, df) / df)
    right = stats.norm.sf(beyond * spread - shift).mean()
    assert power_of(shift, 1, df, level) == pytest.approx(right, abs=1e-4)


def test_power_rises_with_the_effect_across_both_formulas():
    powers = [power_of(shift, 1, 1, 0.001) for shift in np.linspace(25, 35, 201)]
    assert all(np.diff(powers) > 0)


def test_known_spread_needs_fewer_seeds():
    alone = more_seeds(Estimate(4.0, 1.0, 1.0, 2), Bound(1, 0.0), 0.00125)
    pooled = more_seeds(Estimate(4.0, 1.0, 3.0, 2, Prior(1.0, 2.0)), Bound(1, 0.0), 0.00125)
    assert pooled < alone


def test_effects_that_no_number_of_seeds_decides():
    assert more_seeds(Estimate(0.0, 1.0, 4.0, 5), Bound(1, 0.0), 0.05) is None
    assert more_seeds(Estimate(0.01, 1.0, 4.0, 5), Bound(1, 0.0), 0.05) is None
    assert more_seeds(Estimate(3.0, None, 0.0, 1), Bound(1, 0.0), 0.05) is None
    # At least one more seed, however clear the effect is.
    assert more_seeds(Estimate(100.0, 1.0, 4.0, 5), Bound(1, 0.0), 0.05) == 1


def test_equal_seeds_are_judged_by_their_signs():
    """p = 2^(1-n) is below 0.01 from 8 seeds on."""
    assert more_seeds(Estimate(3.0, None, 0.0, 2), Bound(1, 0.0), 0.01) == 6
    assert 2.0**-7 < 0.01 < 2.0**-6


def test_a_conjunction_waits_for_its_weakest_part_or_falls_with_one():
    strong, weak, failing = part(5.0), part(1.0), part(-2.0)
    alone = seeds_to_decide((weak,), 0.01)
    assert seeds_to_decide((strong, weak), 0.01) > alone
    assert seeds_to_decide((strong, part(0.0001)), 0.01) is None
    # One failing part decides the claim, at the level divided by the number of parts.
    assert seeds_to_decide((weak, failing), 0.01) == seeds_to_decide((failing,), 0.005)


PRICES = {"a": Price(10), "b": Price(30), "c": None}


def test_partly_recorded_seeds_come_first():
    seeds = {("x", "a"): {1, 2, 3}, ("x", "b"): {1, 5}}
    runs = cheapest_runs([("x", "a"), ("x", "b")], 2, seeds, lambda _, method: PRICES[method])
    # of seed 5 only the cheap one is missing; then one of those that `a` has
    assert runs == (("x", "b", 2), ("x", "a", 5))


def test_first_runs_take_the_seed_of_the_others():
    runs = cheapest_runs([("x", "a"), ("x", "c")], 1, {("x", "a"): {4}}, lambda _, method: PRICES[method])
    assert runs == (("x", "c", 4),)


def test_a_claim_that_no_run_decides_says_so(monkeypatch):
    monkeypatch.setattr(deciding, "trainings_of", lambda *_: ())
    claims = [SimpleNamespace(id=kind, kind=kind, direction=">") for kind in ("experiment", "mathematics")]
    found = [(claim, Finding(NOT_RUN)) for claim in claims]
    results = Results(Path(), pd.DataFrame(columns=COLUMNS), {})
    experiment, mathematics = deciding.decisions(found, 1, SimpleNamespace(paper="agg"), results)
    assert experiment.columns()["decides"] == "runs that this scale leaves out: see the note"
    assert not mathematics.columns()["decides"]


@pytest.mark.parametrize(
    ("mean", "sd", "words"),
    [(math.inf, None, "infinite in seed 2"), (0.0, None, "at its bound"), (1e-9, 1.0, "more than")],
)
def test_what_no_number_of_seeds_decides(mean, sd, words):
    one, training = part(mean, sd, seeds=2), ("e", "m")
    finding = Finding(UNDECIDED, parts=(one,), binding=one, seeds=2)
    decision = deciding._decision(finding, (training,), 0.05, {training: [1, 2]}, {})
    assert words in decision.columns()["decides"]


def test_a_sentence_shows_no_interval_beside_one_seed():
    """The comparison with fewest seeds counts."""
    few, several = part(1.0, None, seeds=1), part(0.1, 0.5, seeds=2)
    for seeds, parts in ((1, (few, several)), (2, (several,))):
        shown = shown_numbers(Finding(UNDECIDED, parts=parts, binding=several, seeds=seeds))
        assert (shown["lower"] is None) == (seeds == 1)


def test_costs_in_words():
    assert Price(0.2).in_words() == "1 core-minute"
    assert Price(25.4).in_words() == "25 core-minutes"
    assert Price(200, "GPU").in_words() == "3.3 GPU-hours"
    assert Price(6000).in_words() == "100 core-hours"


def results_of(seeds):
    """Results with accuracies of two groups, by method of stop_jostling and seeds."""
    generator = np.random.default_rng(0)
    values = {
        ("shakespeare", method, "accuracy", group, "valid@best"): {
            seed: 0.4 + 0.01 * generator.normal() for seed in own
        }
        for method, own in seeds.items()
        for group in ("HR", "LR")
    }
    return Results(Path(), pd.DataFrame(columns=COLUMNS), values)


QUANTITY = "table1 | Monolingual | Accuracy | LR against Baseline"
OTHERS = dict.fromkeys(("threshold_m1", "threshold_m2", "threshold_m4", "threshold_m8"), (1, 2, 3))


def test_the_spread_of_others_is_used_for_one_seed():
    """If the baseline has one seed, there is no second difference; those to another method have a similar spread."""
    definition = parse_definition(json.dumps(definition_of("small")))
    one = {"baseline": (1,), "monolingual": (1,)}
    (alone,) = compared(QUANTITY, "x", definition, results_of(one))
    assert alone.pool == []
    (found,) = compared(QUANTITY, "x", definition, results_of(one | OTHERS))
    assert len(found.values) == 1
    assert [len(row) for row in found.pool] == [3, 3, 3]
    result = estimate(found.values, found.pool, found.paired)
    assert result.p() is None
    assert 0.005 < result.sd < 0.1
    # With two seeds of its own, the baseline is used for all comparisons.
    two = {"baseline": (1, 2), "monolingual": (1, 2)}
    (found,) = compared(QUANTITY, "x", definition, results_of(two | OTHERS))
    assert [len(row) for row in found.pool] == [2] * 5
    assert found.values in found.pool  # noqa: PD011  (a dictionary by seed)


def test_the_cost_of_an_experiment_without_runs_is_its_papers(tmp_path):
    for method, seconds in (("a", 60.0), ("b", 180.0)):
        path = tmp_path / "runs" / "e" / method / "seed1" / "metrics.json"
        path.parent.mkdir(parents=True)
        run = {"paper": "agg", "experiment": "e", "method": method, "seed": 1, "device": "CPU, made up", "tokens": 1}
        run |= {"seconds": seconds, "peak_memory_gib": 1.0, "resumes": 0, "settings": {"training": {"threads": 1}}}
        path.write_text(json.dumps({"training": run, "metrics": []}))
    collected = pd.DataFrame([("e", "a", 1), ("e", "b", 1)], columns=["experiment", "method", "seed"])
    results = Results(tmp_path, collected, {})
    of_agg, of_another = measured_prices(results, "agg"), measured_prices(results, "agps")
    assert [of_agg("e", "b").minutes, of_agg("e", "c").minutes, of_agg("f", "a").minutes] == [3.0, 2.0, 2.0]
    assert of_another("f", "a") is None
    # A run that metrics.csv leaves out, such as one of earlier settings, has no price.
    assert measured_prices(Results(tmp_path, collected[:1], {}), "agg")("e", "b").minutes == 1.0
