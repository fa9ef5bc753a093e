"""One constant on the logits of all rare types, matched to a method: what any gain on rare tokens costs at least."""

from typing import NamedTuple

import numpy as np

# Columns of `best.offset_perplexities` (docs/results.md).
FREQUENT, RARE = 0, 2


class Matched(NamedTuple):
    """The constant in nats with which the baseline has a method's rare perplexity, and the perplexities with it."""

    nats: float
    perplexities: np.ndarray  # frequent, medium, rare, all


def matched_constant(arrays: dict[str, np.ndarray], rare: float) -> Matched | None:
    """The constant with which the baseline's arrays have the perplexity `rare`; None if none of the measured ones does.

    Log-perplexities are linear between measured constants.
    """
    logs = np.log(arrays["best.offset_perplexities"])
    if not logs[:, RARE].min() <= np.log(rare) <= logs[0, RARE]:
        return None
    nats = np.interp(-np.log(rare), -logs[:, RARE], arrays["best.offsets"])
    return Matched(float(nats), np.exp([np.interp(nats, arrays["best.offsets"], column) for column in logs.T]))
