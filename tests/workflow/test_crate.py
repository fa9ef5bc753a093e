"""`make crate`, with a stand-in for Python that records its arguments, because the plugin is optional."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# First says whether the plugin can be imported; then records Snakemake's arguments and the file `raretok`.
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit {missing}
printf '%s\\n' "$@" >asked
cat raretok >packed
exit {status}
"""


def crate(folder, config="", arguments=(), missing=0, status=0):
    """Run `envs/crate.sh` in a folder."""
    for name in ("envs/crate.sh", "envs/read_config.sh", "config/config.yaml", "workflow/rarepapers/__main__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(PYTHON.format(missing=missing, status=status))
    python.chmod(0o755)
    command = ["sh", "envs/crate.sh", config, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})


def test_without_the_plugin_a_sentence_says_how_to_get_it(tmp_path):
    done = crate(tmp_path, missing=1)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install '.[provenance]'" in done.stderr
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("config", "scale"), [("", "smoke"), ("seeds=2 scale=small_gpu", "small_gpu")])
def test_it_writes_a_crate_of_the_scale(tmp_path, config, scale):
    done = crate(tmp_path, config, ["--verbose"])
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[asked.index("--reporter") + 1] == "rocrate"
    assert asked[asked.index("--report-rocrate-filename") + 1] == f"raretok-{scale}"
    assert "--verbose" in asked
    assert asked[asked.index("--config") + 1 :] == config.split() if config else "--config" not in asked
    assert done.stdout == f"raretok: the crate is raretok-{scale}.zip\n"


@pytest.mark.parametrize("status", [0, 1])
def test_a_file_for_the_jobs_command_is_packed_and_removed(tmp_path, status):
    done = crate(tmp_path, status=status)
    assert done.returncode == status
    assert (tmp_path / "packed").read_text() == (ROOT / "workflow/rarepapers/__main__.py").read_text()
    assert not (tmp_path / "raretok").is_symlink()


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "raretok").write_text("mine")
    done = crate(tmp_path)
    assert done.returncode == 1
    assert "a file or folder named raretok is in the way" in done.stderr
    assert (tmp_path / "raretok").read_text() == "mine"
