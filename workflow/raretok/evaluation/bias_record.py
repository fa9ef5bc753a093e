"""What training observed of the output bias and of predictions without context (natural_bias, figures 1, 13, 14)."""

from collections.abc import Mapping

import numpy as np

from raretok.metrics.calibration import log_frequencies

# References of the model's divergences, in the order of figure 1.
REFERENCES = ("unigram", "uniform", "empirical")


def nearest_to_unigram(observed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Where KL(unigram || model) is least along training: the `step`, and the divergences from each reference there.

    observed: arrays `divergence.steps` and `divergence.<reference>`, (s,), in nats. Nothing where there are none.
    """
    values = observed.get("divergence.unigram", np.empty(0))
    if not np.isfinite(values).any():
        return {}
    place = int(np.nanargmin(values))
    at = {name: float(observed[f"divergence.{name}"][place]) for name in REFERENCES}
    return {"step": float(observed["divergence.steps"][place])} | at


def divergence_at_start(observed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Divergences of the model from each reference before the first update, in nats; nothing where none was measured.

    observed: arrays `divergence.steps` and `divergence.<reference>`, (s,).
    """
    first = np.asarray(observed.get("divergence.steps", np.empty(0))) == 0
    values = {name: observed[f"divergence.{name}"][first] for name in REFERENCES if first.any()}
    return {name: float(value[0]) for name, value in values.items() if np.isfinite(value[0])}


def bias_changes(observed: Mapping[str, np.ndarray], counts: np.ndarray) -> dict[str, dict[str, float]]:
    """How far the bias goes from where it started: `start`, `end` and `change` of its l2 `norm` and its `divergence`.

    observed: arrays `output_bias.<name>`, (s,), the first before the first update; divergence is
    KL(unigram || softmax(b)). counts: of the training targets, (V,). change: the greatest difference from the start
    over training, as a share of what lies between knowing nothing and the unigram distribution: of the norm of the
    log-unigram bias, and of KL(unigram || uniform). A share of the start itself would be one of 0, for the norm of a
    bias that starts from zero and for the divergence of one that starts from the unigram distribution. Nothing where
    there are no observations.
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
