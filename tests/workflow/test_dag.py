"""The graph of jobs: planned jobs, reruns after changes, and error messages."""

import re
import shutil
import subprocess
from collections import Counter

import pytest
import yaml
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs import tokenize

# Number of trainings with one seed at scale smoke, by the run table.
CHOICES = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | {"scale": "smoke", "seeds": 1}
MODELS = Counter(run.paper for run in load(CHOICES, ROOT).runs.values())
ALL = MODELS.total()
RERUN = ("prepare", "train", "evaluate", "table")
TABLE8 = "results/smoke/tables/stop_jostling/table8.csv"


def planned(text):
    """Jobs of a dry run by rule."""
    stats = re.findall(r"^([\w-]+) +(\d+)$", text, flags=re.MULTILINE)
    return {rule: int(count) for rule, count in stats}


def edit(path, change):
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def test_all_jobs_are_planned_from_the_root_folder(project):
    result = snakemake(project, "-n", "--quiet", "rules", "--config", "seeds=2")
    assert result.returncode == 0, result.stdout
    jobs = planned(snakemake(project, "-n", "--config", "seeds=2").stdout)
    assert jobs["train"] == jobs["evaluate"] == 2 * ALL
    papers = [yaml.safe_load((project / "config" / "papers" / name / "paper.yaml").read_text()) for name in MODELS]
    for rule in ("table", "figure"):
        assert jobs[rule] == sum(len(paper[f"{rule}s"]) for paper in papers)
    assert jobs["page"] == jobs["claims"] == 1


@pytest.mark.parametrize(
    ("target", "models"),
    [
        (TABLE8, 2),
        ("results/smoke/tables/stop_jostling/table4.csv", 0),
        ("results/smoke/figures/stop_jostling/figure4.svg", 2),
        *MODELS.items(),
    ],
)
def test_a_target_trains_only_the_runs_that_it_needs(project, target, models):
    result = snakemake(project, "-n", target)
    assert result.returncode == 0, result.stdout
    assert planned(result.stdout).get("train", 0) == models


@pytest.mark.parametrize("target", ["tables/agg/figure1.csv", "figures/agg/table1.svg"])
def test_an_item_of_the_other_kind_has_no_rule(project, target):
    result = snakemake(project, "-n", f"results/smoke/{target}")
    assert result.returncode
    assert f"No rule to produce results/smoke/{target}" in result.stdout


@pytest.mark.parametrize("run", ["shakespeare/baseline/seed01", "shakespeare/baseline/seedx", "shakespeare/bas/seed1"])
def test_a_run_that_does_not_exist_is_named(project, run):
    result = snakemake(project, "-n", f"results/smoke/runs/{run}/metrics.json")
    assert result.returncode
    assert f"there is no run {run} at scale smoke with seeds [1]" in result.stdout


def test_another_workflow_can_use_this_one_as_a_module(project):
    """As in docs/running.md."""
    page = (ROOT / "docs" / "running.md").read_text()
    (code,) = re.findall(r"<!-- module:begin -->\n```python\n(.*?)```\n<!-- module:end -->", page, flags=re.DOTALL)
    other = project / "other"
    other.mkdir()
    before = "import os, sys\nconfig['mine'] = 1\nbefore = dict(os.environ), list(sys.path)\n"
    # Snakemake itself adds the folders of included files.
    after = (
        "added = [path for path in sys.path if path not in before[1] and path.endswith(('/workflow', '/library'))]\n"
    )
    after += 'print("paths changed:", before[0] != dict(os.environ) or added != [])\n'
    code = before + code.replace("/path/to/raretok", str(project)) + after + 'print("local:", *workflow._localrules)\n'
    (other / "Snakefile").write_text(code)
    result = snakemake(other, "-n", "raretok_all")
    assert result.returncode == 0, result.stdout
    assert planned(result.stdout)["raretok_train"] == ALL
    assert "paths changed: False" in result.stdout
    # A directive `localrules` would name rules without the prefix, and downloads would start on compute nodes.
    (local,) = re.findall(r"^local: (.*)$", result.stdout, flags=re.MULTILINE)
    short = "download merge_counts definition collect cost claims agreement page"
    assert set(local.split()) == {f"raretok_{rule}" for rule in short.split()}
    assert "localrules directive" not in result.stdout


def test_a_module_from_a_url_gets_one_sentence(project):
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main"], cwd=project, check=True)
    who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    for command in (["add", "Snakefile", "workflow", "config"], [*who, "commit", "-qm", "all"], ["tag", "v1"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    other = project / "other"
    other.mkdir()
    source = f'gitfile("{project}", path="Snakefile", tag="v1")'
    (other / "Snakefile").write_text(
        f"module raretok:\n    snakefile: {source}\n    config: config\n\nuse rule * from raretok as raretok_*\n"
    )
    result = snakemake(other, "-n", "raretok_all")
    assert result.returncode
    assert result.stdout.count("raretok works as a module from a clone, not from a URL") == 1, result.stdout


def test_all_gpu_jobs_of_a_cluster_get_the_partition_of_one_line(project):
    """As docs/cluster.md has it."""
    profile = project / "workflow" / "profiles" / "slurm" / "config.yaml"
    text = profile.read_text()
    assert text.count("&gpu {gpu_percent: 0}") == 1
    profile.write_text(text.replace("&gpu {gpu_percent: 0}", "&gpu {gpu_percent: 0, slurm_partition: gpu}"))
    choices = ("--config", "device=cuda", "--", "stop_jostling", "preflight")
    result = snakemake(project, "-n", "--profile", profile.parent, *choices)
    assert result.returncode == 0, result.stdout
    jobs = re.findall(r"^ *(?:local)?rule (\w+):.*?^ *resources: (.*?)$", result.stdout, flags=re.DOTALL | re.MULTILINE)
    with_gpu = {rule: "slurm_partition=gpu" in asked for rule, asked in jobs if "gpu=1" in asked}
    assert {"preflight", "train", "evaluate"} <= with_gpu.keys()
    assert all(with_gpu.values()), with_gpu


def test_the_workflow_catalogue_finds_the_same_workflow():
    """It looks for workflow/Snakefile, which includes the other."""
    result = snakemake(ROOT, "-s", "workflow/Snakefile", "-n", "-F", TABLE8)  # -F: also if it is finished
    assert result.returncode == 0, result.stdout
    assert planned(result.stdout)["train"] == 2
    # Without a target, too: an included file gives no default target.
    assert planned(snakemake(ROOT, "-s", "workflow/Snakefile", "-n", "-F").stdout)["train"] == ALL


def test_lint_is_clean(project):
    result = snakemake(project, "--lint")
    assert result.returncode == 0, result.stdout
    assert "Congratulations" in result.stdout


def test_config_mistakes_are_one_sentence(project):
    result = snakemake(project, "-n", "--config", "scale=huge")
    assert result.returncode == 1
    assert "scale is 'huge'; it can be paper, small, small_gpu, smoke" in result.stdout
    result = snakemake(project, "-n", "--config", "sed=3")
    assert "unknown key sed" in result.stdout
    result = snakemake(project, "-n", "results/smoke/tables/stop_jostling/table99.csv")
    result = snakemake(project, "-n", "results/smoke/tables/stop_jostling/table9.csv")  # another paper has one
    assert "stop_jostling/paper.yaml has no table or figure 'table9'; it has table1, table2" in result.stdout
    result = snakemake(project, "-n", "--config", "seeds=[1,4]")
    assert planned(result.stdout)["train"] == 2 * ALL
    edit(
        project / "config" / "papers" / "stop_jostling" / "paper.yaml",
        lambda paper: paper["methods"]["cwt"].update(los={"name": "x"}),
    )
    result = snakemake(project, "-n")
    assert "config/papers/stop_jostling/paper.yaml: unknown key methods.cwt.los" in result.stdout


@pytest.fixture(scope="module")
def finished(project_at):
    """A project in which the two models of table 8 are trained and the table is made."""
    folder = project_at("with a space")
    result = snakemake(folder, "--cores", "2", TABLE8)
    assert result.returncode == 0, result.stdout
    assert (folder / TABLE8).exists()
    return folder


def reasons(folder, *arguments):
    result = snakemake(folder, "-n", TABLE8, *arguments)
    assert result.returncode == 0, result.stdout
    return planned(result.stdout)


def test_a_second_start_has_no_jobs(finished):
    assert "Nothing to be done" in snakemake(finished, "--cores", "2", TABLE8).stdout


def test_touching_and_moving_files_reruns_nothing(finished, tmp_path):
    moved = shutil.copytree(finished, tmp_path / "moved")
    for path in (moved / "workflow").rglob("*.py"):
        path.touch()
    assert reasons(moved) == {}


def test_results_of_another_machine_are_accepted(finished, tmp_path):
    moved = shutil.copytree(finished, tmp_path / "moved", ignore=shutil.ignore_patterns(".snakemake"))
    assert reasons(moved) == {}


@pytest.mark.slow
def test_the_plan_is_written_and_a_new_one_reruns_nothing(finished, tmp_path):
    plan = "results/smoke/plan.txt"
    text = (finished / plan).read_text()
    assert text.startswith(f"Scale smoke (smoke scale, synthetic data), seeds 1: 2 of {ALL} models to train")
    changed = shutil.copytree(finished, tmp_path / "changed")
    (changed / plan).write_text("another one\n")
    assert reasons(changed) == {}
    (changed / plan).unlink()
    assert reasons(changed) == {}
    assert "Nothing to be done" in snakemake(changed, "--cores", "2", TABLE8).stdout
    assert not (changed / plan).exists()
    # A second seed trains only that seed.
    assert reasons(changed, "--config", "seeds=2")["train"] == 2


def test_preflight_errors_come_before_any_job(project):
    result = snakemake(project, "--cores", "2", TABLE8, "--config", "device=cuda")
    assert result.returncode == 1
    assert "device is cuda, but torch sees no GPU here; use device=auto or device=cpu" in result.stdout
    assert not (project / "resources").exists()
    (project / "empty").mkdir()
    choices = ("--config", "scale=small", "data_mirror=empty")
    result = snakemake(project, "--cores", "2", "results/small/tables/stop_jostling/table8.csv", *choices)
    assert "the data mirror empty lacks 1 of 1 files, such as input.txt of tiny_shakespeare" in result.stdout
    result = snakemake(project, "--cores", "2", "preflight", "--config", "device=cpu")
    assert result.returncode == 0, result.stdout
    assert f"{ALL} of {ALL} models to train" in result.stdout


def reworded(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_comments_and_code_of_other_jobs_rerun_nothing(finished, tmp_path):
    changed = shutil.copytree(finished, tmp_path / "changed")
    package = changed / "workflow/rarepapers"
    for path in package.rglob("*.py"):
        text = path.read_text()
        path.write_text(
            (text.replace('"""', '"""Said anew: ', 1) if text.startswith('"""') else text) + "\n# a comment\n"
        )
    reworded(package / "models/beam_search.py", "import torch\n", "import torch\n\nUNUSED = 1 + 1\n")
    reworded(package / "papers/agg/figures.py", "\n\n\n", "\n\n\nUNUSED = 1 + 1\n\n\n")
    assert reasons(changed) == {}


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_layout_of_a_shell_line_reruns_nothing(finished, tmp_path, profile):
    """Nor where its output goes; `code` in the params covers the program."""
    changed = shutil.copytree(finished, tmp_path / "changed")
    rule = changed / "workflow/rules/train.smk"
    reworded(rule, "rarepapers train ", "rarepapers  train ")
    reworded(rule, ">>{log:q} 2>&1", "&>>{log:q}")
    assert reasons(changed, "--workflow-profile", f"workflow/profiles/{profile}") == {}


def test_another_way_to_align_aligns_again(project):
    """The way is a default in the program, so that no shell line has a setting which params do not."""
    links = "results/smoke/alignments/synthetic_translation_bpe/train.links"
    profile = ("--workflow-profile", "workflow/profiles/default")
    assert snakemake(project, "--cores", "1", links, *profile).returncode == 0
    reworded(project / "workflow/rules/align.smk", "rarepapers align ", "rarepapers  align ")
    assert planned(snakemake(project, "-n", links, *profile).stdout) == {}
    command = project / "workflow/rarepapers/data/alignment/align_command.py"
    reworded(command, 'SYMMETRISATION = "grow-diag-final-and"', 'SYMMETRISATION = "intersect"')
    assert planned(snakemake(project, "-n", links, *profile).stdout) == {"align": 1, "total": 1}


@pytest.mark.parametrize(
    ("file", "old", "new", "again"),
    [
        ("data/characters/prepare.py", "2 * len", "3 * len", {"prepare": 1, "train": 2, "evaluate": 2, "table": 1}),
        ("training/schedule.py", " * ", " + ", {"train": 2, "evaluate": 2, "table": 1}),
        ("../../library/raretok/metrics/perplexity.py", " / ", " * ", {"evaluate": 2, "table": 1}),
        ("reporting/tables/table_text.py", " + ", " - ", {"table": 1}),
    ],
)
def test_an_operator_reruns_what_it_computes(finished, tmp_path, file, old, new, again):
    changed = shutil.copytree(finished, tmp_path / "changed")
    reworded(changed / "workflow/rarepapers" / file, old, new)
    found = reasons(changed)
    assert {rule: number for rule, number in found.items() if rule in RERUN} == again


def test_changed_labels_retrain_nothing(finished, tmp_path):
    changed = shutil.copytree(finished, tmp_path / "changed")
    edit(
        changed / "config/papers/stop_jostling/paper.yaml",
        lambda paper: paper["methods"]["dut_m1"].update(label="DUT, renamed"),
    )
    # Printed rows are found by label.
    numbers = changed / "config/papers/stop_jostling/numbers.csv"
    numbers.write_text(numbers.read_text().replace("Proposed (DUT, margin=1)", "DUT, renamed"))
    assert "train" not in reasons(changed)
    assert reasons(changed).get("table") == 1


def test_a_changed_method_retrains_only_its_runs(finished, tmp_path):
    changed = shutil.copytree(finished, tmp_path / "changed")
    edit(
        changed / "config/papers/stop_jostling/paper.yaml",
        lambda paper: paper["methods"]["dut_m1"]["loss"].update(margin=1.25),
    )
    assert reasons(changed)["train"] == 1


def test_other_words_for_the_same_seeds_rerun_nothing(finished):
    """seeds: null means 1 at scale smoke."""
    assert reasons(finished, "--config", "seeds=1") == reasons(finished, "--config", "seeds=[1]") == {}
    more = reasons(finished, "--config", "seeds=2")
    assert (more["definition"], more["train"], more["table"]) == (1, 2, 1)


def test_a_deleted_file_of_a_corpus_is_made_again_and_no_run_is_trained_again(finished, tmp_path):
    changed = shutil.copytree(finished, tmp_path / "changed")
    tokens = changed / "results/smoke/data/synthetic_characters/train.npy"
    tokens.unlink()
    # Finished runs need no data.
    assert reasons(changed) == {}
    metrics = next(changed.glob("results/smoke/runs/shakespeare/*/seed1/metrics.json"))
    metrics.unlink()
    done = snakemake(changed, "--cores", "2", "--", metrics.relative_to(changed))
    assert done.returncode == 0, done.stdout
    assert tokens.exists()
    log = (changed / f"logs/smoke/train/shakespeare/{metrics.parents[1].name}/seed1.txt").read_text()
    assert log.rstrip().endswith("was finished before; its files are in place again")


def test_rules_declare_all_files_of_every_kind_of_corpus(project):
    table = load(CHOICES, project)
    corpora = ("characters", "language", "translation_bpe", "translation", "translation_reverse")
    folders = [f"results/smoke/data/synthetic_{corpus}" for corpus in corpora]
    done = snakemake(project, "--cores", "2", "--", *(f"{folder}/manifest.json" for folder in folders))
    assert done.returncode == 0, done.stdout
    for corpus, folder in zip(corpora, folders, strict=True):
        declared = {"manifest.json", *tokenize.file_names(table, f"synthetic_{corpus}")}
        if "translation" in corpus:
            declared |= set(tokenize.piece_names(table, f"synthetic_{corpus}"))
        assert {path.name for path in (project / folder).iterdir()} == declared
    for name in ("domain.second.source.txt", "tokenizer.model"):
        (project / folder / name).unlink()
        again = planned(snakemake(project, "-n", f"{folder}/{name}").stdout)
        assert again == {"reverse_pairs_synthetic_translation_reverse": 1, "total": 1}


def test_mirror_and_hardware_retrain_nothing(finished):
    assert reasons(finished, "--config", "data_mirror=config", "device=cpu", "checkpoint_seconds=5") == {}
