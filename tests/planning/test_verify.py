"""`rarepapers verify` on recorded results, with copies of recorded runs instead of trained ones."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from rarepapers.__main__ import main
from rarepapers.machine import processor
from rarepapers.planning import verify

ROOT = Path(__file__).parents[2]
RECORDED = Path("results/recorded/small/runs")
# A claim about two methods with several recorded seeds, and one with one seed.
KEY = ("accuracy", "LR", "valid@best")
SEVERAL, SINGLE = "stop_jostling.t1.se_acc", "stop_jostling.f4.tail"


@pytest.fixture
def root(tmp_path):
    """A project's folder with only recorded results."""
    (tmp_path / "results").mkdir()
    for part in ("config", "results/recorded"):
        (tmp_path / part).symlink_to(ROOT / part)
    return tmp_path


@pytest.fixture
def trained(monkeypatch):
    """Replace training by copies of recorded runs: the requested runs, and a factor for their metrics."""

    class Trained:
        targets, factor = (), 1.0

        def make(self, words, root):
            self.targets = words[words.index("--") + 1 :]
            for target in self.targets:
                folder = (root / target).parent
                recorded = sorted((root / RECORDED / folder.parent.relative_to(root / "results/small/runs")).iterdir())
                shutil.copytree(recorded[-1], folder)
                self.change(folder)

        def change(self, folder):
            path = folder / "metrics.json"
            content = json.loads(path.read_text())
            content["training"]["seed"] = int(folder.name.removeprefix("seed"))
            if content["training"]["method"].endswith("_se"):
                for metric in content["metrics"]:
                    metric["value"] = metric["value"] and metric["value"] * self.factor
            path.write_text(json.dumps(content))

    trained = Trained()
    monkeypatch.setattr(verify, "make_runs", trained.make)
    return trained


def test_a_new_seed_like_the_others_is_inside_the_interval(root, trained, capsys):
    assert main(["verify", SEVERAL, "--root", str(root)]) == 0
    printed = capsys.readouterr().out
    methods = {target.split("/")[-3] for target in trained.targets}
    assert methods == {"threshold_m1", "threshold_m1_se"}
    seeds = {target.split("/")[-2] for target in trained.targets}
    assert len(seeds) == 1
    assert not list((ROOT / RECORDED).glob(f"shakespeare/threshold_m1*/{seeds.pop()}"))
    assert "inside the 95% prediction interval" in printed
    assert "1 of 1 inside" in printed


def accuracy(root, run):
    """LR accuracy of the best checkpoint of a run."""
    metrics = json.loads((root / "results/small/runs" / run / "metrics.json").read_text())["metrics"]
    (found,) = [one["value"] for one in metrics if (one["metric"], one["group"], one["split"]) == KEY]
    return found


def test_a_different_new_seed_is_outside_the_interval(root, trained, capsys):
    trained.factor = 1.5
    assert main(["verify", SEVERAL, "--root", str(root), "--seed", "40"]) == 0
    printed = capsys.readouterr().out
    assert all("/seed40/" in target for target in trained.targets)
    matrix, separated = (accuracy(root, f"shakespeare/{name}/seed40") for name in ("threshold_m1", "threshold_m1_se"))
    assert f"seed 40: x{separated / matrix:.3g}" in printed
    assert separated / matrix > 1.4
    assert "outside the 95% prediction interval" in printed
    assert "0 of 1 inside" in printed


def test_a_claim_about_a_figure_reads_the_new_arrays(root, trained, capsys):
    assert main(["verify", SINGLE, "--root", str(root), "--seed", "40"]) == 0
    printed = capsys.readouterr().out
    assert len(trained.targets) == 2
    assert "seed 40: " in printed


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_a_comparison_across_precisions_is_named(root, trained, capsys, precision, monkeypatch):
    def change(folder):
        path = folder / "metrics.json"
        content = json.loads(path.read_text())
        content["training"] |= {"seed": int(folder.name.removeprefix("seed")), "precision": precision}
        path.write_text(json.dumps(content))

    trained.change = change
    claim = next(claim for claim in language_claims() if claim.startswith("agg."))
    assert main(["verify", claim, "--root", str(root), "--seed", "40"]) == 0
    printed = capsys.readouterr().out
    assert "Recorded in bfloat16 on AMD EPYC, 1 thread(s)." in printed
    assert f"new runs: {precision} on AMD EPYC, 1 thread(s); recorded: bfloat16 on AMD EPYC" in printed
    assert ("compares across precisions" in printed) == (precision == "float32")


def test_a_processor_without_bfloat16_is_named_with_its_price(root, monkeypatch, capsys, tmp_path):
    claim = next(claim for claim in language_claims() if claim.startswith("agg."))
    minutes = []
    for flags in ("avx512_bf16", "avx2"):
        (tmp_path / "cpuinfo").write_text(f"model name\t: A 1\ncpu family\t: 2\nmodel\t: 3\nflags\t: {flags}\n")
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
        assert main(["verify", claim, "--root", str(root), "--seed", "40", "--dry-run"]) == 0
        printed = capsys.readouterr().out
        lacks = "This processor, A 1 (family 2, model 3), lacks bfloat16: its CPU would train in float32" in printed
        assert lacks == (flags == "avx2")
        minutes.append(int(re.search(r"(\d+) core-minute", printed)[1]))
    assert minutes[1] == pytest.approx(3 * minutes[0], abs=3)


def language_claims():
    """Decided claims of the recorded scale."""
    recorded = pd.read_csv(ROOT / "results/recorded/small/claims.csv", dtype=str, keep_default_na=False)
    decided = recorded[recorded["verdict"].str.contains("reproduced|holds|fails")]
    return [row["id"] for _, row in decided.iterrows() if row["measured_by"] == "table"]


def test_a_dry_run_prints_runs_and_cost(root, monkeypatch, capsys):
    monkeypatch.setattr(verify, "make_runs", lambda *_: pytest.fail("trained"))
    assert main(["verify", SEVERAL, "--root", str(root), "--dry-run", "--seed", "7"]) == 0
    printed = capsys.readouterr().out
    assert "2 runs at scale small" in printed
    assert "core-" in printed
    assert "shakespeare/threshold_m1_se/seed7" in printed


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("stop_jostling.t1.se_ac", "did you mean stop_jostling.t1.se_acc"),
        (
            "stop_jostling.t9.none",
            "there is no claim stop_jostling.t9.none; config/papers/stop_jostling/claims.csv has them all",
        ),
        ("none", "an id begins with its paper (agg, agps"),
        ("natural_bias.f12.ood", "claims nothing that runs could decide"),
        ("agg.t7.gain_big", "no run of scale small decides agg.t7.gain_big: translation_big is left out"),
    ],
)
def test_mistakes_are_refused(root, claim, reason, capsys):
    assert main(["verify", claim, "--root", str(root)]) == 2
    printed = capsys.readouterr().err
    assert reason in printed
    assert len(printed) < 400


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("stop_jostling.lemma3", "(holds)\nmathematics, computed again without training"),
        ("agg.t3.human_sum", "(fails)\nprinted arithmetic, computed again without training"),
    ],
)
def test_claims_without_experiments_are_recomputed(root, claim, verdict, capsys):
    assert main(["verify", claim, "--root", str(root)]) == 0
    assert verdict in capsys.readouterr().out


def test_a_claim_that_was_not_run_has_no_interval(root, capsys):
    recorded = pd.read_csv(root / "results/recorded/small/claims.csv", dtype=str, keep_default_na=False)
    waiting = recorded[(recorded["verdict"] == "not run") & (recorded["runs"] != "")]
    if waiting.empty:
        pytest.skip("every claim has runs")
    claim = waiting.iloc[0]
    assert main(["verify", claim["id"], "--root", str(root), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "there is no interval to compare" in printed
    missing = {name.rpartition("/")[0] for name in claim["runs"].split()}
    assert missing <= set(re.findall(r"  (\S*)/seed\d+", printed))


def test_missing_recorded_results_are_one_sentence(root, capsys):
    (root / "results" / "recorded").unlink()
    assert main(["verify", SEVERAL, "--root", str(root)]) == 2
    assert "results/recorded/small has no finished runs" in capsys.readouterr().err


def test_a_failure_of_snakemake_is_one_sentence(root):
    with pytest.raises(verify.UserError, match="did not finish"):
        verify.make_runs(["no_such_module"], root)


def test_ctrl_c_waits_for_snakemake(tmp_path):
    """Snakemake gets the signal too and needs time to unlock the folder; it must not be killed."""
    (tmp_path / "slow.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def stop(*_):\n    time.sleep(1); pathlib.Path('unlocked').touch(); sys.exit(1)\n"
        "signal.signal(signal.SIGINT, stop)\npathlib.Path('ready').touch()\ntime.sleep(60)\n"
    )
    program = "from pathlib import Path; from rarepapers.planning.verify import make_runs; "
    program += f"make_runs(['slow'], Path({str(tmp_path)!r}))"
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "workflow"), str(tmp_path)])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "ready").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert "the same command continues" in process.communicate(timeout=30)[1]
    assert (tmp_path / "unlocked").exists()
