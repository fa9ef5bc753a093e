"""The programs of examples/: they run, and the code of docs/losses.md is theirs."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from test_huggingface import example

FOLDER = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
# What a program needs beyond torch, and the last line that it prints.
LINES = {
    "constant_for_rare_types.py": r" +AGG( +\d+\.\d){4}",
    "with_accelerate.py": "resumed equals unbroken: True",
    "with_nanogpt.py": "resumed equals unbroken: True",
    "with_trainer.py": "resumed equals unbroken: True",
    "with_trl.py": r"steps with the method: 64 of 64",
}


def regions():
    """(mark, code) of all files."""
    for name in PROGRAMS:
        text = (FOLDER / name).read_text(encoding="utf-8")
        for _, mark, code in re.findall(r"^( *)# \[(\w+)\]\n(.*?)^\1# \[end\]$", text, flags=re.MULTILINE | re.DOTALL):
            yield mark, textwrap.dedent(code).strip("\n") + "\n"


@pytest.mark.parametrize(("mark", "code"), list(regions()))
def test_the_documentation_shows_the_code_of_the_examples(mark, code):
    assert example(mark) == code


def test_every_program_is_tested_and_named_in_the_documentation():
    assert list(LINES) == PROGRAMS
    page = (FOLDER.parents[1] / "docs/losses.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\.\./library/examples/(\w+\.py)", page)) == set(PROGRAMS)


def run(*command):
    """The last line that a program prints, and its seconds of CPU time, on one thread."""
    before, environment = os.times(), os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=FOLDER.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout.rstrip().splitlines()[-1], seconds


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_in_a_minute(name):
    line, seconds = run(sys.executable, f"examples/{name}")
    assert re.fullmatch(LINES[name], line)
    assert seconds < 60


@pytest.mark.slow
def test_two_processes_with_sharded_weights_resume_exactly():
    line, seconds = run(
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "examples/with_accelerate.py"
    )
    assert line == LINES["with_accelerate.py"]
    assert seconds < 120
