"""Summaries of observed output biases and predictions without context (natural_bias, figures 1, 13, 14)."""

from collections.abc import Mapping

import numpy as np

from rarepapers.metrics.calibration import log_frequencies

# Reference distributions, in the order of figure 1.
REFERENCES = ("unigram", "uniform", "empirical")


def nearest_to_unigram(observed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The `step` with the smallest observed KL(unigram || model), and the divergences from each reference there.

    observed: arrays `divergence.steps` and `divergence.<reference>`, (s,), in nats. Empty if there are none.
    """
    values = observed.get("divergence.unigram", np.empty(0))
    if not np.isfinite(values).any():
        return {}
    place = int(np.nanargmin(values))
    at = {name: float(observed[f"divergence.{name}"][place]) for name in REFERENCES}
    return {"step": float(observed["divergence.steps"][place])} | at


def divergence_at_start(observed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Divergences of the model from each reference before the first step, in nats; empty if they were not measured.

    observed: arrays `divergence.steps` and `divergence.<reference>`, (s,).
    """
    first = np.asarray(observed.get("divergence.steps", np.empty(0))) == 0
    values = {name: observed[f"divergence.{name}"][first] for name in REFERENCES if first.any()}
    return {name: float(value[0]) for name, value in values.items() if np.isfinite(value[0])}


def bias_changes(observed: Mapping[str, np.ndarray], counts: np.ndarray) -> dict[str, dict[str, float]]:
    """Change of the output bias during training: `start`, `end` and `change` of its l2 `norm` and its `divergence`.

    observed: arrays `output_bias.<name>`, (s,), the first one before the first step; divergence is KL(unigram ||
    softmax(b)). counts: of the training targets, (V,). change: the largest difference from the start, relative to the
    norm of the log-unigram bias and to KL(unigram || uniform). It is not relative to the start itself, which is 0 for
    the norm of a zero bias and for the divergence of a log-unigram bias. Empty if there are no observations.
    """
    log_unigram = log_frequencies(counts)
    scales = {
        "norm": np.linalg.norm(log_unigram),
        "divergence": np.exp(log_unigram) @ log_unigram + np.log(len(log_unigram)),
    }
    changes = {}
    for name, scale in scales.items():
        values = observed.get(f"output_bias.{name}", np.empty(0))
        values = values[np.isfinite(values)]
        if len(values):
            greatest = np.abs(values - values[0]).max()
            changes[name] = {"start": values[0], "end": values[-1], "change": greatest / scale}
    return changes
