"""Rows of `metrics.json`: one number, of which metric, group and split, over how many items, computed how."""

import numpy as np


def row(metric: str, group: str, split: str, value: float, n: int, sign: str) -> dict:
    """One entry of `metrics.json`; a value that JSON cannot hold is the string `inf`, `-inf` or `nan`."""
    value = float(value)
    return {
        "metric": metric,
        "group": group,
        "split": split,
        "value": value if np.isfinite(value) else str(value),
        "n": int(n),
        "signature": sign,
    }
