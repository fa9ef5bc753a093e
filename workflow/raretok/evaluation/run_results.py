"""Results of evaluating a run: metric rows, arrays for figures, and data for later metrics."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Found:
    """Metric rows, arrays for figures, arrays of `measurable.npz`, and translations (plain lines) by split."""

    rows: list[dict] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    measurable: dict[str, np.ndarray] = field(default_factory=dict)
    hypotheses: dict[str, list[str]] = field(default_factory=dict)

    def add(self, more: tuple[list[dict], dict[str, np.ndarray]]) -> None:
        """Add further rows and arrays."""
        self.rows += more[0]
        self.arrays |= more[1]
