"""Share of rare tokens among the neighbours of all rare tokens (agg, table 13 and its claim)."""

import torch

# Cosines held at a time.
COSINES = 2**24


def rare_share(embeddings: torch.Tensor, first_rare: int, k: int) -> tuple[float, int]:
    """Share of rare tokens among the k nearest of every rare token, itself excluded, and the number of neighbours.

    embeddings: W (V x d), on the device to compute on; float32. first_rare: rows from there on are rare. Nearest by
    cosine; a row of length 0 has 0 with every row. k is cut to V - 1. Computed a few rows at a time, never V x V.
    NaN when W holds a value that is not finite.
    """
    w = torch.nn.functional.normalize(embeddings.float(), dim=1)
    k = min(k, len(w) - 1)
    rare = len(w) - first_rare
    if not torch.isfinite(w).all():
        return float("nan"), rare * k
    hits = 0
    for start in range(first_rare, len(w), max(1, COSINES // len(w))):
        rows = w[start : start + max(1, COSINES // len(w))]
        cosines = rows @ w.T
        own = torch.arange(start, start + len(rows), device=w.device)
        cosines.scatter_(1, own[:, None], float("-inf"))
        hits += int((cosines.topk(k, dim=1).indices >= first_rare).sum())
    return (hits / (rare * k) if rare * k else float("nan")), rare * k
