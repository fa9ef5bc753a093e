"""A further architecture is a module with its options beside it and one entry of config: nothing else lists models."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workflow.test_fifth_paper import FILES

ROOT = Path(__file__).parents[2]
OPTIONS = """
from dataclasses import dataclass
from typing import ClassVar

from rarepapers.core.type_check import Positive


@dataclass(frozen=True)
class RecurrentModelConfig:
    translates: ClassVar[bool] = False

    vocabulary: Positive
    width: Positive
    context: Positive
    gates: bool = True
"""
MODEL = """
from torch import nn


class RecurrentModel(nn.Module):
    def __init__(self, config, seed=None):
        super().__init__()
        self.config = config
        self.cells = (nn.GRU if config.gates else nn.RNN)(config.width, config.width)
"""
USES = """
import json, sys
from pathlib import Path
from rarepapers.core.config_files import read_yaml
from rarepapers.core.errors import UserError
from rarepapers.experiments.run_size import size_of
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import code_that_trains

try:
    run = load(read_yaml(Path("config/config.yaml")) | {"papers": ["fifth"]}).run("fifth_task", "plain", 1)
except UserError as error:
    sys.exit(str(error))
assert "torch" not in sys.modules
from rarepapers.models.building import build_model

made = build_model(run.settings["model"], 10)
print(json.dumps([type(made.cells).__name__, len(code_that_trains(run)), size_of(run.settings).width]))
"""
DECODER = "{name: decoder, layers: 1, heads: 1, width: 16, context: 16, tied: true}"


@pytest.fixture
def project(tmp_path):
    for part in ("config", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    models = tmp_path / "workflow/rarepapers/models"
    (models / "recurrent_model_config.py").write_text(OPTIONS)
    (models / "recurrent_model.py").write_text(MODEL)
    return tmp_path


def use(project, options):
    """Build an experiment's run table and model in a copy of the package."""
    paper = project / "config/papers/fifth/paper.yaml"
    paper.parent.mkdir()
    # Without the column of the metric that the page adds, too.
    text = re.sub(r"\n +norm: .*", "", FILES["config/papers/fifth/paper.yaml"])
    paper.write_text(text.replace(DECODER, f"{{name: recurrent_model, width: 8, context: 16, {options}}}"))
    scale = project / "config/scales/smoke.yaml"
    scale.write_text(scale.read_text().replace("\npapers:\n", "\npapers:\n  fifth: {}\n"))
    environment = os.environ | {"PYTHONPATH": str(project / "workflow")}
    return subprocess.run([sys.executable, "-c", USES], cwd=project, env=environment, capture_output=True, text=True)


def test_a_further_model_needs_no_list(project):
    said = use(project, "gates: false")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == ["RNN", 64, 8]


def test_its_options_are_checked_without_torch(project):
    said = use(project, "gate: false")
    assert said.returncode == 1
    assert "unknown key experiments.fifth_task.model.gate; known here: name, width, context, gates" in said.stderr
