"""The Makefile: `make help`, `make clean`, and the number of cores."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCALES = sorted(path.stem for path in (ROOT / "config" / "scales").glob("*.yaml"))


def test_help_names_every_scale():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = shown.partition("SCALE=")[2].partition(",")[0].split("|")
    assert sorted(named) == SCALES


@pytest.mark.parametrize("scale", SCALES)
def test_clean_removes_only_the_results_of_its_scale(tmp_path, scale):
    for name in SCALES:
        (tmp_path / "results" / name).mkdir(parents=True)
    subprocess.run(["sh", ROOT / "envs" / "clean.sh", scale], cwd=tmp_path, capture_output=True, check=True)
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [name for name in SCALES if name != scale]


def test_zero_cores_start_no_job():
    done = subprocess.run(["sh", "envs/run.sh", "", "--cores", "0"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "raretok: no job can start on 0 cores; give CORES=1 or more, or CORES=all\n"
