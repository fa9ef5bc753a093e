"""Output layer, ours and others, at both sizes of the design's table: benchmarks/output_layer.py, row by row."""

import re
import subprocess
import sys

from gpu_stages.tables import ROOT

PRESETS = ("empirical", "gpt2-medium")


def main(bench) -> None:
    presets = ("small",) if bench.tiny or bench.device == "cpu" else PRESETS
    for line in printed(
        "output_layer.py", "--device", bench.device, "--presets", *presets, "--repetitions", 3 if bench.tiny else 15
    ):
        measured = row(line)
        bench.emit(**measured)


def printed(script: str, *arguments):
    """Yield lines as a script of this folder prints them; SystemExit if it fails."""
    command = [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip():
                yield line.rstrip()
    if process.returncode:
        raise SystemExit(f"{script} ended with status {process.returncode}")


def row(line: str) -> dict:
    """Parse a line of a table: its name and its columns, as numbers where possible."""
    name, *cells = re.split(r"\s{2,}", line.strip())
    try:
        return {"row": name, "values": [float(cell) for cell in cells]}
    except ValueError:
        return {"table": name, "columns": cells}
