"""Provenance: finished runs, and names of missing ones."""

from rarepapers.reporting.definition import Method
from rarepapers.reporting.page.provenance import Runs, count, in_yaml, missing, provenance, shared, without


def runs_of(label, experiment, seeds, there):
    method = Method(label.lower(), label, experiment, tuple(seeds))
    return Runs(method, {seed: {"settings": {"seed": seed, "steps": 3}} for seed in there})


def test_missing_runs_are_named_with_their_seeds():
    runs = [runs_of("MLE", "a", (1, 2, 3), (1, 2, 3)), runs_of("AGG", "a", (1, 2, 3), (1,))]
    assert missing(runs[:1]) == ""
    assert missing(runs) == "a, seeds 2, 3: AGG"
    assert missing([*runs, runs_of("UL", "b", (1, 2, 3), ())]) == "a, seeds 2, 3: AGG; b: UL"
    assert count(runs) == (4, 6)
    assert missing([runs_of("MLE", "a", (1, 2), (1,))]) == "a, seed 2: MLE"


def test_seeds_are_in_numerical_order():
    class Shown:
        paper, title = "made_up", "Made up (2026)"

        def shown(self):
            return [method]

    class Results:
        def trainings(self, method):
            made = {"settings": {"steps": 3}, "device": "cpu", "versions": {}, "commit": "c", "data": "d", "seconds": 1}
            return {seed: made | {"seed": seed} for seed in method.seeds}

    method = Method("mle", "MLE", "a", tuple(range(1, 12)))
    found = provenance(Shown(), Results())
    assert found["facts"]["Seeds"] == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert found["facts"]["Training time"] == "0.00 hours of wall time"
    assert found["copies"] == 0
    hour = Results().trainings(method)[1] | {"seconds": 3600}
    Results.trainings = lambda self, method: {1: hour, 2: hour | {"same_as": {"method": "other"}}}
    found = provenance(Shown(), Results())
    assert found["facts"]["Training time"] == "1.00 hours of wall time"
    assert (found["done"], found["copies"]) == (2, 1)
    Results.trainings = lambda self, method: {}
    found = provenance(Shown(), Results())
    assert found["facts"] == {"Runs": "0 of 11"}


def test_settings_are_shown_without_the_seed():
    assert runs_of("MLE", "a", (1, 2), (2,)).settings == {"steps": 3}


def test_settings_of_all_methods_are_said_once():
    mle = {"method": {}, "training": {"steps": 3, "optimiser": {"name": "adamw", "eps": 0.0}}, "precision": None}
    agg = {"method": {"gate": "agg"}, "training": {"steps": 4, "optimiser": {"name": "adamw", "eps": 0.0}}}
    common = {"training": {"optimiser": {"name": "adamw", "eps": 0.0}}}
    assert shared([mle, agg]) == shared([agg, mle]) == common
    assert without(mle, common) == {"method": {}, "training": {"steps": 3}, "precision": None}
    assert without(agg, common) == {"method": {"gate": "agg"}, "training": {"steps": 4}}
    assert without(mle, shared([mle])) == {"method": {}}
    assert (in_yaml(common), in_yaml({})) == ("training:\n  optimiser: {eps: 0.0, name: adamw}\n", "")
