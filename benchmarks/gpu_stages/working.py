"""`raretok work` from a stage: started, and what its runs took."""

import subprocess
import sys
from pathlib import Path


def work(root: Path, scale: str, workers: int, minutes: float, device: str, *more: str) -> None:
    """`raretok work` in the project's folder `root`, to its end; its lines go to standard error."""
    command = [sys.executable, "-m", "raretok", "work", "--root", str(root), "--scale", scale]
    command += ["--workers", str(workers), "--minutes", str(minutes), *more, "--config", f"device={device}"]
    # Where runs fail it says which; those that did not are measured.
    subprocess.run(command, check=False)
