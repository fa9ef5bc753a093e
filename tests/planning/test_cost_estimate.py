"""Cost estimates: sizes of models and runs before they exist, and their tables."""

import re
from pathlib import Path

import pytest
import torch

from rarepapers.__main__ import main
from rarepapers.core.config_files import read_yaml
from rarepapers.core.files import read_json
from rarepapers.experiments.run_size import size_of, snapshots_of, training_of, types_at_most
from rarepapers.experiments.run_table import load
from rarepapers.machine import processor
from rarepapers.models.building import build_model
from rarepapers.planning.cost_estimate import costs_of, data_bytes
from rarepapers.rule_inputs.required_files import needed_files

ROOT = Path(__file__).parents[2]


def table_of(scale, **choices):
    return load(read_yaml(ROOT / "config/config.yaml") | {"scale": scale} | choices, ROOT)


@pytest.fixture(scope="module")
def paper():
    return table_of("paper", seeds=1)


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_estimated_sizes_equal_those_of_the_models(scale):
    seen = set()
    for run in table_of(scale, seeds=1).runs.values():
        settings, size = run.settings, size_of(run.settings)
        small = settings["model"]["width"] < 512
        if str(settings["model"]) in seen or not small:
            continue
        seen.add(str(settings["model"]))
        with torch.device("meta"):  # shapes without numbers
            built = build_model(settings["model"], types_at_most(settings), seed=1)
        parameters = sum(parameter.numel() for parameter in built.parameters())
        assert size.parameters == pytest.approx(parameters, rel=0.05, abs=1000)  # biases and norms are left out
        assert size.flops >= 6 * (parameters - 2 * size.types * size.width)
    assert seen


def test_numbers_of_steps_and_tokens(paper):
    training = training_of(paper.run("language_model", "agg", 1).settings)
    assert (training.steps, training.passes, training.tokens) == (50_000, 8, 4_096)
    training = training_of(paper.run("wmt14_de-en", "zero", 1).settings)
    assert training.total == 50_000 * 32_768


def test_snapshots_are_counted(paper):
    assert snapshots_of(paper.run("empirical", "mle", 1).settings) == 4
    assert snapshots_of(paper.run("empirical", "freeze_until_7k", 1).settings) == 40
    assert snapshots_of(paper.run("language_model", "agg", 1).settings) == 0


def test_recorded_trainings_have_the_estimated_size():
    """The weights of recorded runs are not kept, but some records have the number of parameters."""
    for path in (ROOT / "results/recorded/small").glob("runs/*/*/*/metrics.json"):
        run = read_json(path)["training"]
        if "parameters" in run:
            assert size_of(run["settings"]).parameters == pytest.approx(run["parameters"], rel=0.05)


def test_disk_estimates_cover_runs_and_texts(paper):
    costs = {cost.run.name: cost for cost in costs_of(paper)}
    mle = costs["empirical/mle/seed1"]
    assert mle.bytes == pytest.approx(2 * 4 * 44.6e6 + 4 * 50_264 * 512 * 2, rel=0.05)
    assert costs["empirical/freeze_until_7k/seed1"].bytes > mle.bytes + 35 * 50_264 * 512 * 2
    # The archives of WMT14 alone are 1.7 GB
    assert 2e9 < data_bytes(needed_files(paper)) < 60e9
    assert data_bytes([]) == 0


def test_states_hold_checkpoints_validated_weights_and_snapshots(paper):
    """Two checkpoints of 12 bytes per parameter during a write, and 4 for each further copy of the weights."""
    costs = {cost.run.name: cost for cost in costs_of(paper)}
    for name, copies in (("language_model/agg", 2), ("agps_translation_big/translator", 6)):
        cost = costs[f"{name}/seed1"]
        size = size_of(cost.run.settings)
        snapshots = 2 * size.types * size.width * snapshots_of(cost.run.settings)
        assert cost.state == cost.parameters * (2 * 12 + 4 * copies) + snapshots
    assert costs["empirical/freeze_until_7k/seed1"].state > 40 * 50_264 * 512 * 2


def test_the_cost_table_of_the_documentation_is_up_to_date(capsys):
    options = ["--papers", "stop_jostling", "agg", "agps", "natural_bias", "--seeds", "5", "--markdown"]
    assert main(["plan", "--root", str(ROOT), "--scale", "paper", *options]) == 0
    printed = capsys.readouterr().out.strip()
    part = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"<!-- plan:begin -->\n(.*?)\n<!-- plan:end -->", part, flags=re.DOTALL)
    assert written == printed, "stale; insert: python -m rarepapers plan --scale paper " + " ".join(options)


def test_every_table_names_unmeasured_machines(capsys):
    for options in (["--markdown"], []):
        assert main(["plan", "--root", str(ROOT), "--scale", "paper", "--papers", "agg", *options]) == 0
        printed = capsys.readouterr().out
        assert "A40: not measured; 6.6 times H100's (data sheets: " in printed
        assert "A100: not measured" in printed
        assert "H100: 3 measured rows" in printed


def test_runs_and_rows_can_be_printed(capsys):
    options = ["--root", str(ROOT), "--scale", "small", "--papers", "stop_jostling"]
    assert main(["plan", *options, "--device", "cpu", "--runs"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"(\d+) of \1 models", printed)
    first = table_of("small", papers=["stop_jostling"], seeds=1).runs
    assert len(re.findall(r"^shakespeare/\S+/seed1 ", printed, flags=re.MULTILINE)) == len(first)
    recorded = ROOT / "results" / "recorded" / "small"
    assert main(["plan", "--measured", str(recorded)]) == 0
    records = [read_json(path)["training"] for path in recorded.glob("runs/*/*/*/metrics.json")]
    alone = [record for record in records if "same_as" not in record and record.get("together", 1) == 1]
    assert capsys.readouterr().out.count('"machine": ') == len(alone)
    assert main(["plan", *options, "--device", "B200"]) == 2
    assert "has no machine 'B200'" in capsys.readouterr().err


def test_the_plan_is_in_the_precision_of_this_processor(tmp_path, monkeypatch, capsys):
    options = ["plan", "--root", str(ROOT), "--scale", "small", "--seeds", "1", "--device", "cpu", "--papers"]
    hours = {}
    for flags in ("avx512_bf16", "avx2"):
        (tmp_path / "cpuinfo").write_text(f"model name\t: A 1\ncpu family\t: 2\nmodel\t: 3\nflags\t: {flags}\n")
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
        for paper in ("agg", "stop_jostling"):
            assert main([*options, paper]) == 0
            printed = capsys.readouterr().out
            # Columns: models, parameters and tokens with their units, hours.
            hours[flags, paper] = float(
                re.search(rf"^{paper} +\S+ +\S+ \S+ +\S+ \S+ +(\S+) ", printed, re.MULTILINE)[1]
            )
            lacks = (
                "in float32 on this processor, A 1 (family 2, model 3), which lacks bfloat16, and take 3 times as long"
            )
            assert (lacks in printed) == (flags == "avx2")
    assert hours["avx2", "agg"] == pytest.approx(3 * hours["avx512_bf16", "agg"], rel=0.1)
    # Characters are trained in float32 everywhere.
    assert hours["avx2", "stop_jostling"] == hours["avx512_bf16", "stop_jostling"]
