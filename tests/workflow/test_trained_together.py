"""Runs trained together under Snakemake: few jobs, and no needless training."""

import shutil

import pytest
from tests.workflow.running import snakemake
from tests.workflow.test_dag import MODELS, TABLE8, edit, planned

from rarepapers.core.files import read_json

RUNS = "results/smoke/runs/shakespeare"
TOGETHER = "together=16"


def jobs(folder, *arguments):
    """Jobs of a dry run by rule, those of stacks counted under `together`."""
    result = snakemake(folder, "-n", *arguments)
    assert result.returncode == 0, result.stdout
    found = planned(result.stdout)
    stacks = [name for name in found if name.startswith("train_together_")]
    return {name: number for name, number in found.items() if name not in stacks} | {"together": len(stacks)}


@pytest.mark.slow
def test_few_jobs_train_the_runs_of_one_shape(project):
    found = jobs(project, "stop_jostling", "--config", "seeds=5", "together=64")
    # Many tied methods, the untied ones and the monolingual one, each with five seeds.
    assert 3 <= found["together"] <= 5 * MODELS["stop_jostling"] // 32
    assert found["train"] == found["evaluate"] == 5 * MODELS["stop_jostling"]
    assert jobs(project, "--config", "together=64")["together"] == 3  # two of this paper, one of `cross`
    assert jobs(project, "stop_jostling")["together"] == 0


def test_lint_is_clean(project):
    result = snakemake(project, "--lint", "--config", "together=64")
    assert "Congratulations" in result.stdout


def test_mistakes_are_one_sentence(project):
    result = snakemake(project, "-n", "--config", "together=0")
    assert "together" in result.stdout
    assert "Traceback" not in result.stdout


@pytest.fixture(scope="module")
def finished(project_at):
    """A project with a finished table 8, whose two models were trained together with four others."""
    folder = project_at("together")
    result = snakemake(folder, "--cores", "2", TABLE8, "--config", TOGETHER)
    assert result.returncode == 0, result.stdout
    return folder


def stacked(folder):
    """The runs of table 8's stack."""
    return list(folder.glob("results/smoke/state/shakespeare/*/seed1/*/finished/training.json"))


@pytest.mark.slow
def test_runs_trained_together_have_all_files(finished):
    for method in ("dut_m1", "dut_m2"):
        record = read_json(finished / RUNS / method / "seed1" / "training.json")
        assert record["together"] == len(stacked(finished)) > 2
        assert record["steps"] == 300


@pytest.mark.slow
def test_a_second_start_has_no_jobs(finished, tmp_path):
    done = {"together": 0}
    assert jobs(finished, TABLE8, "--config", TOGETHER) == done
    # Other stacks of the same runs, each run alone, and more seeds.
    assert jobs(finished, TABLE8, "--config", "together=8") == done
    assert jobs(finished, TABLE8) == done
    assert jobs(finished, TABLE8, "--config", TOGETHER, "seeds=2")["train"] == 2
    # Results of another machine, without state and without Snakemake's records.
    moved = shutil.copytree(finished, tmp_path / "moved", ignore=shutil.ignore_patterns(".snakemake", "state"))
    assert jobs(moved, TABLE8, "--config", TOGETHER) == done
    assert jobs(moved, TABLE8) == done
    for path in (finished / "workflow").rglob("*.py"):
        path.touch()
    assert jobs(finished, TABLE8, "--config", TOGETHER) == done


@pytest.mark.slow
def test_runs_trained_alone_are_unchanged(finished, tmp_path):
    """One run is trained alone; then its stack is trained for another run."""
    folder = shutil.copytree(
        finished, tmp_path / "alone", ignore=shutil.ignore_patterns(".snakemake", "results", "logs")
    )
    record = f"{RUNS}/dut_m1/seed1/training.json"
    assert snakemake(folder, "--cores", "2", record).returncode == 0
    before = (folder / record).stat().st_mtime
    assert jobs(folder, record, "--config", TOGETHER) == {"together": 0}
    found = jobs(folder, TABLE8, "--config", TOGETHER)
    assert (found["train"], found["together"]) == (1, 1)
    result = snakemake(folder, "--cores", "2", f"{RUNS}/dut_m2/seed1/training.json", "--config", TOGETHER)
    assert result.returncode == 0, result.stdout
    assert (folder / record).stat().st_mtime == before
    assert jobs(folder, record, "--config", TOGETHER) == {"together": 0}
    assert read_json(folder / RUNS / "dut_m2/seed1/training.json")["together"] == len(stacked(finished)) - 1


@pytest.mark.slow
def test_only_a_changed_method_is_trained(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "changed")
    edit(
        folder / "config/papers/stop_jostling/paper.yaml",
        lambda paper: paper["methods"]["dut_m1"]["loss"].update(margin=1.25),
    )
    found = jobs(folder, TABLE8, "--config", TOGETHER)
    assert (found["train"], found["together"]) == (1, 1)
    result = snakemake(folder, "--cores", "2", f"{RUNS}/dut_m1/seed1/training.json", "--config", TOGETHER)
    assert result.returncode == 0, result.stdout
    logs = [path.read_text() for path in folder.glob("logs/smoke/train/together/*.txt")]
    (log,) = [text for text in logs if "training 1 runs together" in text]
    assert "shakespeare/dut_m2 seed 1 is finished" in log


@pytest.mark.slow
def test_changed_code_trains_the_stack_again(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "edited")
    loss = folder / "library/raretok/methods/threshold.py"
    loss.write_text(loss.read_text() + "\nUNUSED = 1\n")
    found = jobs(folder, TABLE8, "--config", TOGETHER)
    assert (found["train"], found["together"]) == (2, 1)
