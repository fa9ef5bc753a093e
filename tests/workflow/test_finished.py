"""The report of finished runs, with recorded runs as the finished ones."""

import os
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from snakemake.cli import parse_args
from tests.workflow.running import snakemake

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.experiments import run_table
from rarepapers.metrics.translation_tests import digest
from rarepapers.reporting.collect import read_item
from rarepapers.reporting.definition import definition_of
from rarepapers.rule_inputs import report
from rarepapers.rule_inputs.workflow_start import left_out

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "results" / "recorded" / "small" / "runs"
FINISHED = ("shakespeare/baseline/seed1", "shakespeare/threshold_m1/seed1", "language_model/agg/seed1")
CHOICES = {"scale": "small", "finished": True}


@pytest.fixture
def half(project):
    """A project with three finished runs of scale small."""
    for run in FINISHED:
        shutil.copytree(RECORDED / run, project / "results" / "small" / "runs" / run)
    return project


def table(folder, **changes):
    config = yaml.safe_load((folder / "config" / "config.yaml").read_text())
    return run_table.load(config | CHOICES | changes, folder)


def test_only_existing_files_are_inputs(half):
    finished = table(half)
    assert report.metrics(finished) == [f"results/small/runs/{run}/metrics.json" for run in FINISHED]
    assert report.comparisons(finished) == []
    assert report.gpt2_measured(finished) == []


def test_a_run_of_other_settings_counts_as_missing(half):
    set_hash(half / "results/small/runs" / FINISHED[1] / "metrics.json")
    finished = table(half)
    assert report.metrics(finished) == [f"results/small/runs/{run}/metrics.json" for run in (FINISHED[0], FINISHED[2])]
    shown = report.measurements(finished, SimpleNamespace(paper="stop_jostling", item="table1"))
    assert {str(Path(path).parent) for path in shown} == {f"results/small/runs/{FINISHED[0]}"}
    assert left_out(report.outdated(finished)) == (
        f"left out, made with other settings than the config has now: results/small/runs/{FINISHED[1]}; "
        "without finished=true or recorded=true they are made again"
    )
    definition = definition_of(report.definition(finished, "stop_jostling"))
    results = read_item(half / "results/small", definition, "table1")
    assert set(results.metrics["method"]) == {"baseline"}
    assert results.trainings(definition.methods["threshold_m1"]) == {}
    # Without `finished`, it is trained again, and nothing is left out.
    assert report.outdated(table(half, finished=False)) == []


@pytest.mark.parametrize(("change", "current"), [({"window": 4096}, False), ({"comet": "a-model"}, True)])
def test_so_does_a_run_of_another_evaluation_except_for_comet(half, change, current):
    path = half / "results/small/runs" / FINISHED[2] / "metrics.json"
    content = read_json(path)
    content["evaluation"]["settings"] |= change
    write_json(path, content)
    assert report.outdated(table(half)) == ([] if current else [str(path.parent.relative_to(half))])


def test_paired_tests_of_runs_with_other_settings_are_not_shown(project):
    for part in ("runs/iwslt14_de-en", "comparisons/iwslt14_de-en"):
        shutil.copytree(RECORDED.parent / part, project / "results/small" / part)
    first = "results/small/comparisons/iwslt14_de-en/seed1.json"
    compared = report.comparisons(table(project))
    assert first in compared
    set_hash(project / "results/small/runs/iwslt14_de-en/zero/seed1/metrics.json")
    assert report.comparisons(table(project)) == [path for path in compared if path != first]


def set_hash(path, value="0" * run_table.HASH_DIGITS):
    """Set a finished run's hash to that of other settings, or of today's."""
    content = read_json(path)
    content["training"]["hash"] = value
    write_json(path, content)


def test_finished_seeds_are_of_the_papers_own_experiments(half):
    """`baseline` is also a method of agps, and MLE is trained in two experiments of agg."""
    results = half / "results" / "small" / "runs"
    shutil.copytree(results / FINISHED[0], results / "shakespeare" / "baseline" / "seed23")
    shutil.copytree(results / FINISHED[0], results / "shakespeare" / "baseline" / "seed1.before")
    shutil.copytree(results / FINISHED[2], results / "language_model" / "mle" / "seed24")
    finished = table(half)
    assert 23 in finished.seeds_of("stop_jostling", "baseline", "shakespeare")
    assert 23 not in finished.seeds_of("agps", "baseline", "agps_language_model")
    assert 24 in finished.seeds_of("agg", "mle", "language_model")
    assert 24 not in finished.seeds_of("agg", "mle", "empirical")
    definition = definition_of(report.definition(finished, "agg"))
    seeds = {item: definition.of(item).methods["mle"].seeds for item in ("table1", "table3", "figure5")}
    assert seeds == {"table1": (1, 2, 3), "table3": (1, 2, 3, 24), "figure5": (1, 2, 3, 24)}


def test_the_command_for_a_file_works(half):
    """Without `--`, Snakemake would read the file as a value of --config."""
    file = "results/small/tables/agg/table3.csv"
    _, read = parse_args(shlex.split(f"{report.command(table(half, seeds=[1, 2]))} {file}")[1:])
    assert (read.config, read.targets) == (["scale=small", "seeds=[1,2]", "finished=true"], [file])


def test_without_finished_runs_there_is_an_error(project):
    with pytest.raises(UserError, match=r"results/small has no finished runs; leave out finished=true"):
        table(project)
    shutil.copytree(RECORDED / FINISHED[0], project / "results/small/runs" / FINISHED[0])
    report.check_measured(table(project))
    with pytest.raises(UserError, match="no finished runs of the chosen papers"):
        report.check_measured(table(project, papers=["agg"]))


def test_recorded_runs_have_the_settings_of_the_config():
    recorded = table(ROOT, finished=False, recorded=True)
    assert report.outdated(recorded) == []
    assert len(report.metrics(recorded)) == len(list(RECORDED.glob("*/*/*/metrics.json")))


def test_recorded_comparisons_are_of_the_recorded_translations():
    compared = list((RECORDED.parent / "comparisons").glob("*/*.json"))
    assert compared
    for path in compared:
        for method, known in read_json(path)["hypotheses"].items():
            folder = RECORDED / path.parent.name / method / path.stem
            assert known == digest(read_json(folder / "hypotheses.json")["test"]), folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_report_shows_three_runs_and_names_the_missing_ones(half):
    result = snakemake(half, "--cores", 2, "--config", "scale=small", "finished=true")
    assert result.returncode == 0, result.stdout
    assert "rule train:" not in result.stdout
    results = half / "results" / "small"
    shown = pd.read_csv(results / "metrics.csv")
    assert set(shown["method"]) == {"baseline", "threshold_m1", "agg"}
    verdicts = pd.read_csv(results / "claims.csv")["verdict"]
    assert "not run" in set(verdicts)
    assert "threshold_m2" in (results / "report" / "stop_jostling.html").read_text()
    # The same command shows another run once it has finished.
    run = "shakespeare/threshold_m2/seed1"
    shutil.copytree(RECORDED / run, results / "runs" / run)
    again = snakemake(half, "--cores", 2, "--config", "scale=small", "finished=true", "--", "results/small/metrics.csv")
    assert again.returncode == 0, again.stdout
    assert "threshold_m2" in set(pd.read_csv(results / "metrics.csv")["method"])


def test_rendering_leaves_recorded_files_as_they_are(project):
    """Whether it succeeds or fails, since another folder gets its files."""
    recorded, target = project / "results/recorded/small", "results/rendered/small/tables/stop_jostling/table1.csv"
    for run in FINISHED:
        shutil.copytree(RECORDED / run, recorded / "runs" / run)
    (recorded / "tables/stop_jostling").mkdir(parents=True)
    (recorded / "tables/stop_jostling/table1.csv").write_text("of an earlier rendering\n")
    before = {path: path.read_bytes() for path in recorded.rglob("*.*")}
    config = ("--cores", 1, "--config", "scale=small", "recorded=true", "papers=[stop_jostling]", "--", target)
    made = snakemake(project, *config)
    assert made.returncode == 0, made.stdout
    assert "0.0" in (project / target).read_text()
    (project / "workflow/rarepapers/reporting/tables/table_command.py").write_text("raise SystemExit(1)\n")
    assert snakemake(project, *config).returncode == 1
    assert not (project / target).exists()
    assert {path: path.read_bytes() for path in recorded.rglob("*.*")} == before


def test_only_a_report_of_all_recorded_runs_shows_the_readme():
    recorded = {"finished": False, "recorded": True}
    assert report.readme(table(ROOT, **recorded)) == ["README.md"]
    assert report.readme(table(ROOT, **recorded, papers=["agg", "agps"])) == []
    assert report.readme(table(ROOT, **recorded, seeds=1)) == []
    assert report.readme(table(ROOT, finished=False)) == []


def test_a_report_in_another_folder_does_not(tmp_path):
    (tmp_path / "results" / "recorded").mkdir(parents=True)
    (tmp_path / "results" / "recorded" / "small").symlink_to(RECORDED.parent)
    recorded = run_table.load(table(ROOT, finished=False, recorded=True).config, tmp_path, project=ROOT)
    assert report.metrics(recorded)
    assert report.readme(recorded) == []
    # As the Snakefile finds itself.
    assert report.readme(run_table.load(recorded.config, ROOT, project=Path(os.path.relpath(ROOT)))) == ["README.md"]
