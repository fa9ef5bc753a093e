"""The picture of docs/losses.md is up to date."""

import re
import runpy
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_is_up_to_date():
    script = runpy.run_path(str(DOCS / "losses.py"))
    drawn, shown = script["picture"](), (DOCS / "losses.svg").read_text(encoding="utf-8")
    assert re.sub(r"[\d.]+", "", drawn) == re.sub(r"[\d.]+", "", shown), "out of date; run python docs/losses.py"
    # Another processor may round a tenth of a pixel differently.
    numbers = [[float(number) for number in re.findall(r"\d+\.\d+", text)] for text in (drawn, shown)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.11)
    z, pushes = script["LOGITS"], {name: script["pushes"](parts) for name, (parts, _) in script["CURVES"].items()}
    assert (pushes["threshold, margin 2"][z < -2] == 0).all()
    ratio = pushes["unlikelihood, type in the context"] / pushes["cross-entropy"]
    torch.testing.assert_close(ratio, torch.full_like(ratio, 2.0))
