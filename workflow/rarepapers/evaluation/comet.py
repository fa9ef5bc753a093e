"""COMET of translations by the program comet-score of unbabel-comet (Rei et al. 2020).

unbabel-comet pins old versions of common packages, so it belongs in an environment of its own:

    python -m venv comet && comet/bin/pip install unbabel-comet "setuptools<81"
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.evaluation.decoding import Decoding
from rarepapers.evaluation.metric_rows import row
from raretok import __version__

PROGRAM = "comet-score"


def comet_rows(
    model: str,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    decoding: Decoding,
    split: str,
    device: str,
) -> list[dict]:
    """Mean COMET of the sentences by `model`, a name of the Hugging Face hub or the path of a checkpoint.

    device: `cpu` or `cuda`. Raises UserError if the program is missing or fails: an evaluation without COMET would look
    finished, and the workflow would not repeat it once the program is there.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise UserError(
            f"comet={model} needs {PROGRAM} on PATH; docs/results.md says how to install it; comet=null leaves it out"
        )
    with TemporaryDirectory() as name:
        texts = {"-s": sources, "-t": hypotheses, "-r": references}
        paths = {flag: Path(name) / f"text{flag}" for flag in texts}
        for flag, lines in texts.items():
            paths[flag].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        result = Path(name) / "scores.json"
        words = [word for flag, path in paths.items() for word in (flag, str(path))]
        gpus = str(int(device != "cpu"))
        command = [program, *words, "--model", model, "--quiet", "--gpus", gpus, "--to_json", str(result)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not result.exists():
            reason = (done.stderr.strip().splitlines() or ["it wrote no scores"])[-1]
            raise UserError(f"{PROGRAM} --model {model} failed: {reason}; comet=null leaves COMET out")
        (scored,) = read_json(result).values()
    values = [float(sentence["COMET"]) for sentence in scored]
    if len(values) != len(hypotheses):
        raise UserError(f"{PROGRAM} scored {len(values)} of {len(hypotheses)} translations of {split}")
    made = f"{decoding.described}|model:{model}|checkpoint:{split.partition('@')[2]}"
    return [row("comet", "", split, np.mean(values), len(values), f"comet|{made}|raretok:{__version__}")]
