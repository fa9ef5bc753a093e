"""The Makefile: `make help`, `make clean`, what CONFIG may be, the number of cores, and the last line of `make`."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCALES = sorted(path.stem for path in (ROOT / "config" / "scales").glob("*.yaml"))


def test_help_names_every_scale():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = shown.partition("SCALE=")[2].partition(",")[0].split("|")
    assert sorted(named) == SCALES


def test_help_has_every_target_of_users():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), flags=re.M)
    own = {"environment-test", "environment-report", "without-config", "cores", "attacks"}
    assert set(re.findall(r"^  (\S+) ", shown, flags=re.M)) == set(phony.replace("\\", "").split()) - own


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("SACLE=small", "SACLE is no variable of make; you may mean SCALE"),
        ("scale=small", "scale is no variable of make; write SCALE=..."),
        ("seeds=3", "seeds is a key of the config; write CONFIG='seeds=...'"),
        ("COLOUR=red", "COLOUR is no variable of make; known are ARGS CONFIG CORES MIRROR N PYTHON SCALE"),
        ("CORES=-1", "CORES is '-1'; it can be all, or a number from 1 on"),
        ("CORES=1.5", "CORES is '1.5'; it can be all, or a number from 1 on"),
        ("torture N=0", "N is '0'; it must be a number of attacks, from 1 on"),
    ],
)
def test_a_misspelt_word_is_refused(words, sentence):
    # Below another make, as in CI, make would also print the directories that it enters.
    command = ["make", "--no-print-directory", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"raretok: {sentence}" in done.stderr


def test_a_program_that_is_no_python_is_refused(project):
    environment = os.environ | {"PYTHON": "/bin/true"}
    done = subprocess.run(["sh", "envs/setup.sh"], cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "/bin/true does not start, or is no Python" in done.stderr


@pytest.mark.parametrize("scale", SCALES)
def test_clean_removes_only_the_results_of_its_scale(project, scale):
    subprocess.run(["make", "clean", f"SCALE={scale}"], cwd=project, capture_output=True, check=True)
    assert left(project) == [name for name in SCALES if name != scale]


def test_clean_removes_the_scale_of_the_config_and_no_other(project):
    """Also if its name is a longer one, or quoted."""
    scales, choices = project / "config" / "scales", project / "config" / "config.yaml"
    for name, value in (("small2", "small2"), ("small-v2", '"small-v2" # mine'), ("smoke", "'smoke'")):
        shutil.copy(scales / "small.yaml", scales / f"{name}.yaml")
        (project / "results" / name).mkdir(exist_ok=True)
        choices.write_text(re.sub("^scale: .*$", f"scale: {value}", choices.read_text(), flags=re.M))
        subprocess.run(["make", "clean"], cwd=project, capture_output=True, check=True)
        assert name not in left(project)
    assert left(project) == [name for name in SCALES if name != "smoke"]


@pytest.mark.parametrize("scale", ["other", "../smoke", "."])
def test_clean_refuses_what_is_no_scale(project, scale):
    done = subprocess.run(["make", "clean", f"SCALE={scale}"], cwd=project, capture_output=True, text=True)
    assert done.returncode
    assert f"SCALE is '{scale}'; it can be one of: {' '.join(SCALES)}" in done.stderr
    assert left(project) == SCALES


# CONFIG of make, and the arguments that Snakemake gets.
CONFIGS = [
    ("seeds=[1,4] papers=[agg]", ["seeds=[1,4]", "papers=[agg]"]),
    ("'seeds=[1, 4]' data_mirror=\"/my mirror\"", ["seeds=[1, 4]", "data_mirror=/my mirror"]),
]


@pytest.mark.parametrize(("config", "words"), CONFIGS)
def test_config_is_split_like_a_shell_does(project, config, words):
    done = subprocess.run(["sh", "envs/run.sh", config, "--cores", "1"], cwd=project, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == repr(["-m", "snakemake", "--cores", "1", "--config", *words])


def test_a_blank_without_quotes_is_refused(project):
    done = subprocess.run(["sh", "envs/run.sh", "seeds=[1, 4]"], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "CONFIG has '4]', which is no KEY=VALUE; quote a value with blanks" in done.stderr


def test_config_belongs_into_config(project):
    for option, status in (("--config seeds=1", 2), ("-C seeds=1", 2), ("--configfile my.yaml", 0)):
        done = subprocess.run(["sh", "envs/run.sh", "", *option.split()], cwd=project, capture_output=True)
        assert done.returncode == status, option


@pytest.mark.parametrize("target", ["record", "clean"])
def test_config_is_refused_where_it_has_no_effect(project, target):
    done = subprocess.run(
        ["make", "--no-print-directory", target, "CONFIG=scale=small seeds=1"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"raretok: CONFIG has no effect on {target}; give SCALE alone\n" in done.stderr
    assert left(project) == SCALES


@pytest.mark.parametrize(
    ("options", "made", "named"),
    [
        ("--cores all", False, True),
        ("--cores all --dryrun", False, False),
        ("--cores all --list-rules", False, False),
        ("--cores all --forcerun page", True, True),
    ],
)
def test_the_report_is_named_if_it_was_asked_for_or_made(project, options, made, named):
    """Without options also if it was up to date; with options, Snakemake may only have listed something."""
    report = project / "results" / "smoke" / "report" / "index.html"
    report.parent.mkdir()
    report.touch()
    os.utime(report, (0, 0))
    if made:
        python = project / ".venv" / "bin" / "python"
        python.write_text(f"#!/bin/sh\nsleep 0.1; touch {shlex.quote(str(report))}\n")
    command = ["sh", "envs/run.sh", "scale=smoke", *options.split()]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert ("raretok: the report is results/smoke/report/index.html\n" in done.stdout) == named


def left(project):
    return sorted(path.name for path in (project / "results").iterdir())


@pytest.fixture
def project(tmp_path):
    """The scripts with a Python that prints its arguments, and empty results of all scales."""
    for part in ("envs", "config"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in SCALES:
        (tmp_path / "results" / name).mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / ".venv" / "complete-run").touch()
    python.write_text(f"#!{sys.executable}\nimport sys; print(sys.argv[1:])\n")
    python.chmod(0o755)
    return tmp_path


def test_zero_cores_start_no_job():
    done = subprocess.run(["sh", "envs/run.sh", "", "--cores", "0"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "raretok: no job can start on 0 cores; give CORES=1 or more, or CORES=all\n"
