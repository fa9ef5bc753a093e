"""Metrics of snapshots of the output matrix along training (agg figures 1, 2; agps figures 1, 2)."""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from rarepapers.core.errors import UserError
from rarepapers.metrics.projection import plane
from raretok.metrics.group_statistics import Groups
from raretok.metrics.isotropy import SIGN_FREE, isotropy
from raretok.metrics.mean_similarity import mean_cosine_between, mean_inner_product

PREFIX = "step"
# With more snapshots than this, projections (V x 2 each) are not kept, because no figure has as many panels.
PLANES = 8


def measure_snapshots(path: Path, groups: Groups) -> dict[str, np.ndarray]:
    """Arrays of the s snapshots in the safetensors file `path` (tensors `step000500`, V x d); empty without snapshots.

    steps (s), isotropy_sign_free (s x 3 groups), cosine_rare_frequent (s), inner_product (s x 3) and, for at most
    `PLANES` snapshots, svd and pca (s x V x 2, float32); all with the prefix `snapshots.`. One snapshot is in memory at
    a time. Raises UserError if the file cannot be read.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            names = sorted(file.keys())
            measured = [_measure(file.get_tensor(name), groups, len(names) <= PLANES) for name in names]
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} holds no readable snapshots; train the run again: {error}") from None
    if not names:
        return {}
    steps = np.array([int(name.removeprefix(PREFIX)) for name in names], dtype=np.int64)
    arrays = {key: np.stack([one[key] for one in measured]) for key in measured[0]}
    return {f"snapshots.{key}": array for key, array in {"steps": steps, **arrays}.items()}


def _measure(embeddings: np.ndarray, groups: Groups, planes: bool) -> dict[str, np.ndarray]:
    """Metrics of one snapshot, V x d."""
    w = embeddings.astype(np.float64)
    first, _, third = groups.parts
    measured = {
        SIGN_FREE: np.array([isotropy(w[part]) for part in groups.parts]),
        "cosine_rare_frequent": np.array(mean_cosine_between(w[third], w[first])),
        "inner_product": np.array([mean_inner_product(w[part]) for part in groups.parts]),
    }
    if planes:
        measured |= {
            "svd": plane(w, centred=False).astype(np.float32),
            "pca": plane(w, centred=True).astype(np.float32),
        }
    return measured
