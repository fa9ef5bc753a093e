"""Expected token counts of two languages made from one text."""

import numpy as np


def expected_counts(counts: np.ndarray, low_resource_probability: float) -> np.ndarray:
    """Expected count of each token in the training text of both languages.

    A block of text becomes the low-resource language (every id raised by the number of types) with
    `low_resource_probability` (Turumtaev 2025, section 4.1), so the two versions of a character share its count.

    `counts`: (types,) occurrences in the text. Returns (2 x types,) float64: high-resource ids, then low-resource ids.
    """
    return np.concatenate([counts * (1 - low_resource_probability), counts * low_resource_probability])
