"""Training and evaluation on a GPU that is not there, each in a process of its own.

Autograd counts the devices of a process once, and then has a thread for each, with which other tests could not fork.
"""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.parametrize("cases", ["training/steps_on_fake_gpu.py", "evaluation/evaluation_on_fake_gpu.py"])
def test_cases_of_their_own_process(cases):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(TESTS / cases)]
    result = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:]
