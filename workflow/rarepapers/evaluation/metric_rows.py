"""Results of evaluating a run, and rows of `metrics.json`: metric, group, split, value, number of items, signature."""

from dataclasses import dataclass, field

import numpy as np

from raretok import __version__


@dataclass
class Found:
    """Metric rows, arrays for figures, and translations (plain lines) by split."""

    rows: list[dict] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    hypotheses: dict[str, list[str]] = field(default_factory=dict)

    def add(self, more: tuple[list[dict], dict[str, np.ndarray]]) -> None:
        """Add further rows and arrays."""
        self.rows += more[0]
        self.arrays |= more[1]


def row(metric: str, group: str, split: str, value: float, n: int, sign: str = "", /, **fields: object) -> dict:
    """One entry of `metrics.json`; a value that JSON cannot hold is the string `inf`, `-inf` or `nan`.

    sign: a signature made elsewhere, as by sacrebleu; by default that of the metric and `fields`.
    """
    value = float(value)
    return {
        "metric": metric,
        "group": group,
        "split": split,
        "value": value if np.isfinite(value) else str(value),
        "n": int(n),
        "signature": sign or signature(metric, **fields),
    }


def signature(metric: str, /, **fields: object) -> str:
    """Signature of a number, like sacrebleu's: the metric, `key:value` fields and the package's version.

    >>> signature("perplexity", context=64)
    'perplexity|context:64|raretok:0.1.0'
    """
    return "|".join([metric, *(f"{key}:{value}" for key, value in fields.items()), f"raretok:{__version__}"])
