"""What training observed of the output bias and of predictions without context (natural_bias, figures 1, 13, 14)."""

from collections.abc import Mapping

import numpy as np

# References of the model's divergences, in the order of figure 1.
REFERENCES = ("unigram", "uniform", "empirical")
# What is observed of the bias: its l2 norm, and KL(unigram || softmax(b)).
OF_BIAS = ("norm", "divergence")


def nearest_to_unigram(observed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Where KL(unigram || model) is least along training: the `step`, and the divergences from each reference there.

    observed: arrays `divergence.steps` and `divergence.<reference>`, (s,), in nats. Nothing where there are none.
    """
    values = observed.get("divergence.unigram", np.empty(0))
    if not np.isfinite(values).any():
        return {}
    place = int(np.nanargmin(values))
    names = ("steps", *REFERENCES)
    at = {name: float(observed[f"divergence.{name}"][place]) for name in names}
    return {"step": at.pop("steps")} | at


def bias_changes(observed: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """How far the bias goes from where it started: for each of `OF_BIAS`, `start`, `end` and `change`.

    observed: arrays `output_bias.<name>`, (s,), the first before the first update. change: the greatest difference
    from the start over training, relative to it; inf where that is 0 and anything changes. Nothing where there are
    none.
    """
    changes = {}
    for name in OF_BIAS:
        values = observed.get(f"output_bias.{name}", np.empty(0))
        values = values[np.isfinite(values)]
        if len(values):
            start, greatest = float(values[0]), float(np.abs(values - values[0]).max())
            with np.errstate(divide="ignore", invalid="ignore"):
                change = float(np.divide(greatest, abs(start))) if greatest else 0.0
            changes[name] = {"start": start, "end": float(values[-1]), "change": change}
    return changes
