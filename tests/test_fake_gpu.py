"""Training and evaluation on a simulated GPU, each in its own process.

Autograd counts the devices of a process once and starts a thread for each, which would keep other tests from forking.
"""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.parametrize("cases", ["training/steps_on_fake_gpu.py", "evaluation/evaluation_on_fake_gpu.py"])
def test_training_and_evaluation_on_a_simulated_gpu(cases):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(TESTS / cases)]
    result = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:]
