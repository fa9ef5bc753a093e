"""`rarepapers work`, started from a stage, and the times of its runs."""

import subprocess
import sys
from pathlib import Path


def work(root: Path, scale: str, workers: int, minutes: float, device: str, *more: str) -> None:
    """Run `rarepapers work` in the project's folder `root` until it ends; its lines go to standard error."""
    command = [sys.executable, "-m", "rarepapers", "work", "--root", str(root), "--scale", scale]
    command += ["--workers", str(workers), "--minutes", str(minutes), *more, "--config", f"device={device}"]
    # It names failed runs; the others are measured.
    subprocess.run(command, check=False)
