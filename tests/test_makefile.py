"""What `make help` says."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_help_names_every_scale():
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = shown.partition("SCALE=")[2].partition(",")[0].split("|")
    assert sorted(named) == sorted(path.stem for path in (ROOT / "config" / "scales").glob("*.yaml"))
