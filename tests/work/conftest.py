"""A project with three runs of a few seconds."""

import shutil
from argparse import Namespace
from pathlib import Path

import pytest
import yaml

from rarepapers.work.work_command import table_of

ROOT = Path(__file__).parents[2]
METHODS = ("baseline", "threshold_m2", "cosreg")


@pytest.fixture
def project(tmp_path):
    """Config and package, with a scale `tiny`: three methods of stop_jostling, 1,200 steps each."""
    for part in ("config", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    smoke = yaml.safe_load((ROOT / "config/scales/smoke.yaml").read_text())["papers"]["stop_jostling"]
    smoke["experiments"]["shakespeare"]["training"].update(steps=1200, validation={"every": 400, "batches": 2})
    paper = yaml.safe_load((ROOT / "config/papers/stop_jostling/paper.yaml").read_text())
    smoke["methods"] = {name: None for name in paper["methods"] if name not in METHODS}
    tiny = {"title": "tiny", "seeds": 1, "minutes": {"train": 1, "evaluate": 1, "data": 1}}
    tiny["papers"] = {"stop_jostling": smoke}
    (tmp_path / "config/scales/tiny.yaml").write_text(yaml.safe_dump(tiny))
    return tmp_path


@pytest.fixture
def table_with(project):
    """The run table of `rarepapers work` with these choices, by default at scale tiny."""

    def table_with(**choices):
        chosen = {"root": project, "config": [], "scale": "tiny", "seeds": 1, "papers": ["stop_jostling"]}
        return table_of(Namespace(**chosen | choices), None)

    return table_with
