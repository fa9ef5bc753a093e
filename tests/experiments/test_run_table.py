"""The run table: its runs, their hashes, and error messages for mistakes in the config."""

import copy
import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rarepapers.core.config_files import merge
from rarepapers.core.errors import UserError
from rarepapers.experiments import run_table
from rarepapers.machine import commands

ROOT = Path(__file__).parents[2]
PRINTED = ROOT / "config" / "papers" / "stop_jostling" / "numbers.csv"
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())


def load(root=ROOT, **changes):
    return run_table.load(CONFIG | changes, root)


@pytest.fixture(scope="module")
def paper_scale():
    return load(scale="paper", seeds=1, papers=["stop_jostling"])


@pytest.fixture(scope="module")
def language_models():
    return load(scale="paper", seeds=1, papers=["agg", "agps"])


@pytest.fixture
def project(tmp_path):
    """A copy of the config that a test may change."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return tmp_path


def edit(path, change):
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def published_rows():
    with PRINTED.open() as file:
        rows = list(csv.DictReader(file))
    return {row["row"] for row in rows if row["item"] in ("table1", "table5", "table6", "table7", "table8")}


def test_all_models_of_the_paper_and_further_readings_are_runs(paper_scale):
    labels = {entry["label"] for entry in paper_scale.papers["stop_jostling"]["methods"].values()}
    printed, further = {x for x in labels if "[" not in x}, {x for x in labels if "[" in x}
    assert published_rows() <= printed
    assert {re.sub(r" \[.*", "", label) for label in further} <= printed


def test_every_printed_row_is_in_its_table():
    for name, paper in load(scale="paper").published.items():
        path = ROOT / "config" / "papers" / name / "numbers.csv"
        tables = {item for item, table in paper["tables"].items() if table["kind"] == "metrics"}
        with path.open() as file:
            printed = [row for row in csv.DictReader(file) if row["item"] in tables]
        for row in printed:
            table = paper["tables"][row["item"]]
            labels = table.get("labels", {})
            shown = [labels.get(method, paper["methods"][method]["label"]) for method in table["methods"]]
            assert row["row"] in (*shown, *table.get("data", ()))
            assert row["column"] in table["columns"]


def test_three_readings_of_separated_embeddings_differ_only_in_that(paper_scale):
    names = ("threshold_m0.6_se", "threshold_m0.6_se_listing", "threshold_m0.6_se_matrix")
    settings = copy.deepcopy([paper_scale.run("shakespeare", name, 1).settings for name in names])
    readings = [entry["method"].pop("embedding_update", {}).get("reading") for entry in settings]
    assert readings == ["skip", "listing", None]  # matrix is the default of every method
    assert settings[0] == settings[1] == settings[2]


def test_hashes_are_distinct_and_stable(paper_scale):
    hashes = [run.hash for run in paper_scale.runs.values()]
    assert len(set(hashes)) == len(hashes)
    assert {run.hash for run in load(scale="paper", seeds=1, papers=["stop_jostling"]).runs.values()} == set(hashes)
    # The same run at another scale or with other seeds is the same run, so results can be moved.
    small = load(scale="small", seeds=[1, 7])
    assert small.run("shakespeare", "baseline", 1).hash == paper_scale.run("shakespeare", "baseline", 1).hash
    assert small.run("shakespeare", "baseline", 7).hash not in hashes


def test_hash_ignores_labels_and_order_but_not_numbers(project):
    path = project / "config" / "papers" / "stop_jostling" / "paper.yaml"
    before = load(project).run("shakespeare", "threshold_m1", 1).hash
    edit(path, lambda paper: paper["methods"]["threshold_m1"].update(label="another name"))
    edit(
        path,
        lambda paper: paper["methods"].update(threshold_m1=dict(reversed(paper["methods"]["threshold_m1"].items()))),
    )
    assert load(project).run("shakespeare", "threshold_m1", 1).hash == before
    edit(path, lambda paper: paper["methods"]["threshold_m1"]["loss"].update(margin=1.5))
    assert load(project).run("shakespeare", "threshold_m1", 1).hash != before


def test_a_default_written_out_is_the_same_run(project):
    path = project / "config" / "papers" / "stop_jostling" / "paper.yaml"
    before = load(project).run("shakespeare", "threshold_m1", 1).hash
    edit(path, lambda paper: paper["methods"]["threshold_m1"]["loss"].update(detach_under=False))
    edit(path, lambda paper: paper["methods"]["threshold_m1"].update(training_temperature=1.0))
    matrix = {"name": "separated", "reading": "matrix"}
    edit(path, lambda paper: paper["methods"]["threshold_m1"].update(embedding_update=matrix))
    assert load(project).run("shakespeare", "threshold_m1", 1).hash == before


def test_scaled_down_agg_keeps_its_shares(paper_scale):
    """Inventory 5.3: alpha scales with tokens per step, K with the number of steps."""
    published = paper_scale.run("shakespeare", "agg_a0.02", 1).settings
    smoke = load().run("shakespeare", "agg_a0.02", 1).settings
    assert published["method"]["gate"] == {"name": "agg", "alpha": 0.02, "memory": 1600}

    def shares(settings):
        tokens = settings["training"]["batch_size"] * settings["model"]["context"]
        gate = settings["method"]["gate"]
        return gate["alpha"] / tokens, gate["memory"] / settings["training"]["steps"]

    assert shares(smoke) == pytest.approx(shares(published))


def test_a_step_of_a_translation_model_has_the_papers_tokens():
    for run in load(scale="paper", seeds=1, papers=["agg", "agps"]).runs.values():
        if "translation" in run.experiment:
            assert run.settings["training"]["batch_tokens"] * run.settings["training"]["accumulation"] == 65536


def test_a_scale_can_leave_experiments_and_methods_out(project):
    edit(
        project / "config" / "scales" / "paper.yaml",
        lambda s: s.update(papers={"natural_bias": {"experiments": {"wmt14_de-en": None}, "methods": {"c4": None}}}),
    )
    names = {
        (run.experiment, run.method) for run in load(project, scale="paper", papers=["natural_bias"]).runs.values()
    }
    assert not {name for name in names if name[0] == "wmt14_de-en" or name[1] == "c4"}
    assert ("iwslt14_de-en", "zero") in names


def test_intervals_of_evaluation_are_scaled_with_training():
    assert json.loads(load(scale="smoke", papers=["natural_bias"]).evaluation("iwslt14_de-en"))["alc"] == [80]


def test_a_step_of_the_language_models_has_the_papers_tokens(language_models):
    for run in language_models.runs.values():
        if "translation" in run.experiment:
            continue
        training = run.settings["training"]
        assert training["batch_size"] * training["accumulation"] * run.settings["model"]["context"] == 32768


def test_scaled_language_models_keep_alpha_and_relative_steps():
    """Alpha is derived from the corpus's counts; steps scale with the length of training."""
    table = load(papers=["agg"])
    steps = table.run("empirical", "mle", 1).settings["training"]["steps"]
    gate = table.run("language_model", "agg_a0.05", 1).settings["method"]["gate"]
    assert gate == {"name": "agg", "alpha": 0.05}
    until = table.run("empirical", "freeze_until_18k", 1).settings["method"]["gate"]["until"]
    assert until == round(18 / 40 * steps)
    shown = table.run("empirical", "mle", 1).settings["method"]["observe"][0]
    assert shown == {"name": "snapshots", "steps": [max(1, round(s / 40000 * steps)) for s in (100, 500, 1500, 3500)]}


def test_methods_override_the_scale(paper_scale):
    monolingual = paper_scale.run("shakespeare", "monolingual", 1).settings
    assert monolingual["training"]["steps"] == 160
    assert monolingual["training"]["schedule"] == {"name": "cosine", "peak": 1e-3, "final": 1e-4, "warmup": 2}
    assert monolingual["corpus"]["low_resource_probability"] == 1.0
    assert load().run("shakespeare", "monolingual", 1).settings["training"]["steps"] == 6


def test_merge_merges_mappings_and_replaces_the_rest():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 3}
    assert merge(base, {"a": {"c": [9]}}, {"d": {"e": 1}}) == {"a": {"b": 1, "c": [9]}, "d": {"e": 1}}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 3}


def test_run_table_needs_no_torch():
    code = "import sys; from rarepapers.experiments import run_table as runs; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


MISTAKES = [
    (lambda p: p["methods"]["baseline"].update(loss={"name": "nll"}), "methods.baseline.loss.name is 'nll'"),
    (lambda p: p["methods"]["baseline"].update(gate={"name": "cosreg"}), "'cosreg', which is no gate"),
    (
        lambda p: p["methods"]["threshold_m1"]["loss"].update(margine=1),
        "margine is not a parameter of threshold",
    ),
    (
        lambda p: p["methods"]["threshold_m1"]["loss"].update(margin="1"),
        "margin is '1'; it must be a number or null",
    ),
    (lambda p: p["methods"]["threshold_m1"]["loss"].update(margin=-1), "below 0 would drop the target"),
    (lambda p: p["methods"]["threshold_m1"]["loss"].update(alpha=1), "give either margin or alpha"),
    (lambda p: p["methods"]["cwt"].update(gate={"name": "agg", "alpha": 1, "memory": 2}), "do not combine"),
    (lambda p: p["experiments"]["shakespeare"]["corpus"].update(name="moby_dick"), "moby_dick"),
    (lambda p: p["experiments"]["shakespeare"].pop("model"), "key experiments.shakespeare.model is missing"),
    (lambda p: p["tables"]["table1"]["methods"].append("nobody"), "tables.table1.methods names 'nobody'"),
    (lambda p: p["methods"]["cwt"].update(label="Baseline"), "two methods have the label 'Baseline'"),
    (lambda p: p["methods"].update({"../up": {"label": "x"}}), "../up"),
    (lambda p: p["experiments"].update({"a/b": p["experiments"]["shakespeare"]}), "a key of experiments is 'a/b'"),
    (lambda p: p["experiments"].update({"a b": p["experiments"]["shakespeare"]}), "a key of experiments is 'a b'"),
    (lambda p: p["methods"]["cwt"].update(experiments=[]), "methods.cwt.experiments"),
    (lambda p: p["methods"]["cwt"].update(model={"heads": 5}), "model.width is 128, which 5 heads"),
    (lambda p: p["methods"]["threshold_m1"]["loss"].update(margin=float("nan")), ".nan is not a number"),
]


LANGUAGE_MISTAKES = [
    (lambda p: p["experiments"]["empirical"]["corpus"].update(name="tiny_shakespeare"), "lacks low_resource_prob"),
    (lambda p: p["experiments"]["empirical"]["evaluation"]["groups"][0].update(share=1), "evaluation"),
    (lambda p: p["methods"]["agg"]["gate"].update(memory=0), "memory"),
    (lambda p: p["methods"]["agg"]["gate"].update(alpha=0), "alpha"),
    (lambda p: p["methods"]["mle"]["observe"][0].update(step=3), "methods.mle.observe"),
]
DECODER = {"name": "decoder", "layers": 6, "heads": 4, "width": 64, "context": 64}
TRANSLATION_MISTAKES = [
    (lambda p: p["experiments"]["iwslt14_de-en"]["corpus"].update(name="wikitext-103"), "which is a language"),
    (lambda p: p["experiments"]["iwslt14_de-en"].update(model=DECODER), "needs encoder_decoder"),
    (
        lambda p: p["experiments"]["iwslt14_de-en"]["model"].update(name="decoder"),
        "unknown key experiments.iwslt14_de-en.model.encoder_layers",
    ),
    (lambda p: p["experiments"]["iwslt14_de-en"]["training"].pop("batch_tokens"), "batch_tokens is missing"),
]


@pytest.mark.parametrize(
    ("paper", "change", "expected"),
    [("stop_jostling", *mistake) for mistake in MISTAKES]
    + [("agg", *mistake) for mistake in LANGUAGE_MISTAKES]
    + [("natural_bias", *mistake) for mistake in TRANSLATION_MISTAKES],
)
def test_the_error_for_a_mistake_in_a_paper_names_file_and_key(project, paper, change, expected):
    edit(project / "config" / "papers" / paper / "paper.yaml", change)
    edit(project / "config" / "scales" / "paper.yaml", lambda scale: scale.update(papers={}))
    with pytest.raises(UserError) as error:
        assert load(project, scale="paper", papers=[paper]).runs
    message = str(error.value)
    assert expected in message
    assert f"{paper}/paper.yaml" in message or "corpora.yaml" in message
    assert "\n" not in message


def test_a_key_given_twice_is_refused(project):
    path = project / "config" / "papers" / "stop_jostling" / "paper.yaml"
    path.write_text(path.read_text() + "\nmethods: {}\n")
    with pytest.raises(UserError, match=r"stop_jostling/paper\.yaml has the key methods twice"):
        load(project)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"scale": "tiny"}, "scale is 'tiny'; it can be paper, small, small_gpu, smoke"),
        ({"papers": ["hers"]}, "papers names 'hers'"),
        ({"seeds": 0}, "seeds is 0; it can be null, a number of seeds from 1, or a list"),
        ({"seeds": "{'a': 1}"}, "seeds is {'a': 1}; it can be"),
        ({"data_mirror": "no/such/folder"}, "data_mirror is no/such/folder, which is not a folder"),
        ({"recorded": "true", "scale": "smoke"}, "results/recorded/smoke has no finished runs; keep finished"),
        ({"sed": 3}, "unknown key sed; known here: scale, papers, seeds"),
        ({"device": "tpu"}, "device"),
        ({"scale": "../scales/small"}, "scale is '../scales/small'; it can be"),
        ({"seeds": 1_000_000}, "seeds is 1000000; it can be"),
        ({"recorded": True, "finished": True}, "recorded and finished are both true"),
    ],
)
def test_the_error_for_a_mistake_in_the_config_names_the_key(changes, expected):
    with pytest.raises(UserError, match=re.escape(expected)) as error:
        load(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("given", "seeds"), [("3", [1, 2, 3]), (["1", "4"], [1, 4]), ("null", [1]), ("[7]", [7])])
def test_seeds_as_snakemake_gives_them(given, seeds):
    """`--config seeds=[1,4]` arrives as a list of strings."""
    assert load(seeds=given).seeds == seeds


@pytest.mark.parametrize("section", ["experiments", "methods"])
def test_a_scale_cannot_change_experiments_that_the_paper_lacks(project, section):
    scale = project / "config" / "scales" / "smoke.yaml"
    edit(scale, lambda s: s["papers"]["stop_jostling"][section].update(shakspeare={}))
    with pytest.raises(UserError, match=rf"smoke\.yaml: papers\.stop_jostling\.{section}\.shakspeare is not in the"):
        load(project)


def test_a_scale_cannot_change_an_unknown_paper(project):
    scale = project / "config" / "scales" / "smoke.yaml"
    edit(scale, lambda s: s["papers"].update(stop_jostlin=s["papers"].pop("stop_jostling")))
    with pytest.raises(UserError, match=r"smoke\.yaml: papers names 'stop_jostlin'; did you mean 'stop_jostling'\?"):
        load(project)


def test_the_folder_of_results_need_not_be_the_project(project, tmp_path_factory, capsys):
    edit(project / "config" / "scales" / "smoke.yaml", lambda scale: scale.update(seeds=3))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    where = ["--root", str(elsewhere), "--project", str(project), "--papers", "stop_jostling"]
    assert commands.main(["runs", *where]) == 0
    assert "results/smoke/runs/shakespeare/baseline/seed3" in capsys.readouterr().out
    assert commands.main(["accept", *where]) == 0
    assert "accepted 0 training(s)" in capsys.readouterr().out


def test_a_scale_that_overrides_an_unknown_key_is_refused(project):
    scale = project / "config" / "scales" / "smoke.yaml"
    edit(scale, lambda s: s["papers"]["stop_jostling"]["experiments"]["shakespeare"]["model"].update(deep=2))
    with pytest.raises(UserError, match=r"smoke\.yaml.*unknown key experiments\.shakespeare\.model\.deep"):
        load(project)


def test_seeds_of_methods_and_papers_are_overridden_by_the_users(project):
    def change(scale):
        scale["papers"]["stop_jostling"] |= {"seeds": 2}
        scale["papers"]["stop_jostling"]["methods"]["threshold_m1"] = {"seeds": 4}

    edit(project / "config" / "scales" / "smoke.yaml", change)
    table = load(project, papers=["stop_jostling", "agg"])
    assert table.seeds_of("stop_jostling", "baseline", "shakespeare") == [1, 2]
    assert table.seeds_of("stop_jostling", "threshold_m1", "shakespeare") == [1, 2, 3, 4] == table.seeds
    assert table.seeds_of("agg", "agg", "language_model") == [1] == table.usual_seeds
    assert ("shakespeare", "threshold_m1", 4) in table.runs
    assert ("shakespeare", "baseline", 3) not in table.runs
    assert load(project, papers=["stop_jostling"], seeds=[7]).seeds == [7]
