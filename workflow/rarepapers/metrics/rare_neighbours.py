"""Share of rare tokens among the neighbours of all rare tokens (agg, table 13 and its claim)."""

import numpy as np
import torch

# Number of cosines in memory at a time.
COSINES = 2**24


def rare_share(embeddings: torch.Tensor, first_rare: int, k: int, known: np.ndarray | None = None) -> tuple[float, int]:
    """Share of rare tokens among the k nearest neighbours of every rare token, and the number of neighbours.

    embeddings: W (V x d), float32, on the device to compute on. first_rare: ids from there on are rare. known: types
    that can be queries and neighbours (V booleans, from `neighbours.occurring`); by default all. Neighbours are by
    cosine, without the token itself; a row of length 0 has cosine 0 with every row. k is limited to the number of other
    types. Computed a few rows at a time, never V x V. NaN if W is not finite or no rare type is known.
    """
    w = torch.nn.functional.normalize(embeddings.float(), dim=1)
    if known is None:
        known = np.ones(len(w), dtype=bool)
    asked = first_rare + np.flatnonzero(known[first_rare:])
    k = min(k, max(0, int(known.sum()) - 1))
    slots = len(asked) * k
    if not slots or not torch.isfinite(w).all():
        return float("nan"), slots
    masked = torch.from_numpy(~known).to(w.device)
    queries = torch.from_numpy(asked).to(w.device)
    hits = 0
    for own in queries.split(max(1, COSINES // len(w))):
        cosines = w[own] @ w.T
        cosines.scatter_(1, own[:, None], float("-inf"))
        cosines.masked_fill_(masked, float("-inf"))
        hits += int((cosines.topk(k, dim=1).indices >= first_rare).sum())
    return hits / slots, slots
