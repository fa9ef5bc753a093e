"""`raretok work` from a stage: started, and what its runs took."""

import os
import subprocess
import sys
from pathlib import Path

from gpu_stages.tables import ROOT


def work(root: Path, scale: str, workers: int, minutes: float, device: str, *more: str) -> None:
    """`raretok work` in the project's folder `root`, to its end; its lines go to standard error."""
    command = [sys.executable, "-m", "raretok", "work", "--root", str(root), "--scale", scale]
    command += ["--workers", str(workers), "--minutes", str(minutes), *more, "--config", f"device={device}"]
    # 1: some runs failed, and it says which.
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "workflow")}, check=False)
