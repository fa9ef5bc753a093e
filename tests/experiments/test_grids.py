"""Methods with a grid: their candidates, equal effort for all, and error messages."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.experiments import run_table
from rarepapers.experiments.grids import expand
from rarepapers.rule_inputs import report

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
SCALES = ("smoke", "small", "small_gpu", "paper")


def load(scale="small_gpu", root=ROOT, **changes):
    return run_table.load(CONFIG | {"scale": scale, "papers": ["cross"]} | changes, root)


@pytest.fixture
def project(tmp_path):
    """A copy of the config, and a function that edits one of its files."""
    shutil.copytree(ROOT / "config", tmp_path / "config")

    def edit(name, change):
        path = tmp_path / "config" / name
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
        return tmp_path

    return edit


def paper(**methods):
    return {"methods": methods, "tables": {"t": {"methods": list(methods)}}, "figures": {}}


AGG = {"label": "AGG", "gate": {"name": "agg", "alpha": 1.0}, "grid": {"gate.alpha": [0.03, 0.5]}}
AGPS = {
    "label": "AGPS",
    "gate": {"name": "agps", "rare_from": 1, "mu_1": 1.0, "mu_2": 1.0},
    "grid": {"gate.mu_1": [500.0, 50.0], "gate.mu_2": [20.0, 2.0]},
}


def test_a_method_becomes_a_candidate_for_each_value():
    found = expand(paper(agg=AGG, agps=AGPS), "here")
    assert list(found["methods"]) == ["agg_alpha0.03", "agg_alpha0.5", "agps_mu_1-500", "agps_mu_1-50"]
    assert found["methods"]["agg_alpha0.03"] == {"label": "AGG (alpha=0.03)", "gate": {"name": "agg", "alpha": 0.03}}
    assert found["methods"]["agps_mu_1-50"]["gate"] == {"name": "agps", "rare_from": 1, "mu_1": 50.0, "mu_2": 2.0}
    assert found["methods"]["agps_mu_1-50"]["label"] == "AGPS (mu_1=50, mu_2=2)"
    assert found["tables"]["t"]["methods"] == list(found["methods"])
    assert found["tables"]["t"]["candidates"]["agps"] == {
        "label": "AGPS",
        "methods": {"agps_mu_1-500": "mu_1=500, mu_2=20", "agps_mu_1-50": "mu_1=50, mu_2=2"},
    }
    assert AGG["gate"]["alpha"] == 1.0  # the argument is unchanged


def test_a_paper_without_grids_is_unchanged():
    plain = paper(mle={"label": "MLE"})
    assert expand(plain, "here") is plain


def test_a_scale_keeps_the_first_candidates():
    found = expand(paper(agg=AGG, agps=AGPS) | {"candidates": 1}, "here")
    assert list(found["methods"]) == ["agg_alpha0.03", "agps_mu_1-500"]


def test_a_scale_gives_a_method_more_candidates():
    grid = {"gate.alpha": [0.03, 0.5, 0.03], "rate": [1, 1, 2]}
    found = expand(paper(agg=AGG | {"grid": grid, "candidates": 3}, agps=AGPS) | {"candidates": 1}, "here")
    names = ["agg_alpha0.03", "agg_alpha0.5", "agg_alpha0.03_rate2"]
    assert list(found["methods"]) == [*names, "agps_mu_1-500"]
    assert found["methods"][names[2]]["label"] == "AGG (alpha=0.03, learning rate x2)"
    assert "candidates" not in found["methods"][names[2]]
    assert list(found["tables"]["t"]["candidates"]["agg"]["methods"]) == names


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"label": "MLE"}, "methods.mle has no grid, which the others have"),
        ({"label": "MLE", "grid": {"rate": [1, 2, 3]}}, "methods.mle.grid has 3 candidates, that of agg has 2"),
        ({"label": "MLE", "grid": {"rate": [1, 2], "x": [1]}}, "methods.mle has a grid whose lists differ in length"),
        ({"label": "MLE", "grid": {"gate.alpha": [1, 2]}}, "names gate.alpha, but the method has no gate"),
        ({"label": "MLE", "grid": {"rate": [2, 2]}}, "grid has the candidate learning rate x2 twice"),
        (
            {"label": "MLE", "candidates": 3, "grid": {"rate": [1, 2]}},
            "methods.mle.grid has 2 candidates, but 3 are to be kept",
        ),
    ],
)
def test_unequal_effort_is_refused(other, expected):
    with pytest.raises(UserError) as error:
        expand(paper(agg=AGG, mle=other), "here")
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_candidate_equals_the_run_written_by_hand(project):
    def by_hand(entry):
        entry["methods"] = {"mine": {"label": "Mine", "gate": {"name": "agg", "alpha": 0.5}}}
        entry["tables"] = entry["figures"] = {}

    root = project("papers/cross/paper.yaml", by_hand)
    mine = load("paper", root, seeds=1).run("cross_bpe", "mine", 1)
    assert mine.hash == load("paper", seeds=1).run("cross_bpe", "agg_alpha0.5", 1).hash


def test_rates_are_multiples_of_the_experiments_own():
    table = load()
    for experiment, keys in (("cross_character", ("peak", "final")), ("cross_translation", ("peak",))):
        plain, half = (
            table.run(experiment, f"mle_rate{rate}", 1).settings["training"]["schedule"] for rate in (1, 0.5)
        )
        assert [half[key] / plain[key] for key in keys] == [0.5] * len(keys)
        assert {key: value for key, value in half.items() if key not in keys} == {
            key: value for key, value in plain.items() if key not in keys
        }
    # All candidates of other methods have MLE's first rate.
    agg = table.run("cross_character", "agg_alpha1", 1).settings["training"]
    assert agg == table.run("cross_character", "mle_rate1", 1).settings["training"]


@pytest.mark.parametrize("scale", SCALES)
def test_all_methods_of_a_task_have_the_same_data_model_steps_and_seeds(scale):
    """Except the start of the output bias and the learning rate, which define a method or its candidates."""
    table = load(scale)
    for experiment in table.papers["cross"]["experiments"]:
        found = [run for run in table.runs.values() if run.experiment == experiment]
        seen = []
        for run in found:
            settings = {key: dict(run.settings[key]) for key in ("corpus", "model", "training")}
            settings["model"].pop("output_bias", None)
            settings["training"]["schedule"] = settings["training"]["schedule"]["warmup"]
            seen.append(settings)
        assert all(settings == seen[0] for settings in seen)
        families = table.papers["cross"]["tables"]["table1"]["candidates"]
        sizes = {name: len(family["methods"]) for name, family in families.items()}
        assert sizes == dict.fromkeys(families, {"smoke": 2, "small": 1}.get(scale, 3))
        assert len({run.method for run in found}) == sum(sizes.values())
        assert len(found) == len({run.method for run in found}) * len({run.seed for run in found})
        # The report, too, has the same methods at every scale unless one is left out.
        assert {run.method for run in found} <= set(table.published["cross"]["methods"])
    seeds = len({run.seed for run in table.runs.values()})
    assert seeds >= 3 if scale != "smoke" else seeds == 1


def test_small_scale_takes_at_most_two_hours_of_one_gpu():
    from rarepapers.planning import throughput
    from rarepapers.planning.cost_estimate import costs_of

    machine = throughput.load(ROOT)["A100"]
    costs = costs_of(run_table.load(CONFIG | {"scale": "small", "papers": ["cross"]}, ROOT))
    assert sum(cost.seconds(machine) for cost in costs) < 2 * 3600


def test_a_scale_cannot_change_a_grid(project):
    root = project(
        "scales/small_gpu.yaml", lambda s: s["papers"]["cross"].update(methods={"agg": {"grid": {"gate.alpha": [9.0]}}})
    )
    with pytest.raises(UserError, match=r"cross\.methods\.agg\.grid cannot be changed; `candidates: n`"):
        load(root=root)


def test_a_scale_keeps_only_the_methods_that_it_names(project):
    families = load("smoke").papers["cross"]["tables"]["table1"]["candidates"]
    assert list(families) == ["mle", "agg", "threshold_agg"]
    root = project("scales/smoke.yaml", lambda s: s["papers"]["cross"]["only"].append("nobody"))
    with pytest.raises(UserError, match=r"papers\.cross\.only names 'nobody'; the paper has mle, "):
        load("smoke", root)


def test_a_table_that_names_no_method_is_refused_before_candidates_are_made(project):
    root = project("papers/cross/paper.yaml", lambda p: p["tables"]["table1"]["methods"].append("nobody"))
    with pytest.raises(UserError, match="names 'nobody'; it can be"):
        load(root=root)


def test_the_definition_has_candidates_and_no_printed_numbers():
    table = run_table.load(CONFIG | {"scale": "smoke", "papers": ["cross"]}, ROOT)
    text = json.dumps(report.definition(table, "cross"))
    assert '"printed": false' in text
    assert '"agg_alpha0.5": "alpha=0.5"' in text
    shown = report.measurements(table, SimpleNamespace(paper="cross", item="table1"))
    assert {f"{table.folder(run)}/metrics.json" for run in table.runs.values()} <= set(shown)
    assert shown == report.measurements(table, SimpleNamespace(paper="cross", item="figure1"))


def test_candidates_have_no_paired_tests():
    """No page would show them; natural_bias's methods have them."""
    table = run_table.load(CONFIG | {"scale": "smoke", "papers": ["natural_bias", "cross"]}, ROOT)
    experiments = {path.split("/")[-2] for path in report.comparisons(table)}
    assert "iwslt14_de-en" in experiments
    assert experiments <= set(table.papers["natural_bias"]["experiments"])


def test_a_comparison_names_the_split_of_its_columns(project):
    root = project("papers/cross/paper.yaml", lambda p: p["tables"]["table1"]["columns"]["rare"].pop("of"))
    with pytest.raises(UserError, match=r"tables\.table1\.columns\.rare\.of is missing"):
        load(root=root)
