"""Validation curves of BLEU and chrF, and the area under them (natural_bias, 4.1: ALC)."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError

# Split in the history of each curve; its value is in the column `loss`.
CURVES = {"bleu": "valid_bleu", "chrf": "valid_chrf"}


def read_curve(history: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps (k,) and values (k,) of the rows of `split` in a run's history.csv, sorted by step.

    Two empty arrays if there are none; raises UserError if the file cannot be read.
    """
    try:
        with open(history, encoding="utf-8", newline="") as file:
            rows = [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file) if row["split"] == split]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"{history} is not a history of validations ({error}); train the run again") from None
    rows.sort()
    steps, values = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.empty(0), np.empty(0))
    return steps.astype(np.int64), values.astype(np.float64)


def area(steps: Sequence[int], values: Sequence[float], end: int | None = None) -> tuple[float, int]:
    """Mean height of a curve over steps 0 to `end` by the trapezoidal rule, and the end itself.

    This is the area divided by the interval, so it has the unit of the values. If step 0 was not measured, the curve
    starts there with 0, since an untrained model translates nothing. It is linear between measurements, and ends at
    `end`, or at the last measurement if that is earlier or `end` is None. NaN without a measurement after step 0.
    """
    steps, values = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if not len(steps) or steps[-1] <= 0:
        return float("nan"), 0
    if steps[0] > 0:
        steps, values = np.append(0.0, steps), np.append(0.0, values)
    last = int(steps[-1]) if end is None else min(end, int(steps[-1]))
    inside = steps < last
    steps, values = np.append(steps[inside], last), np.append(values[inside], np.interp(last, steps, values))
    return float(np.trapezoid(values, steps) / last), last
