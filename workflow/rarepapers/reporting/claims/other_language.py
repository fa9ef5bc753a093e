"""Neighbours in the other language, for translation claims of agg and agps."""

import numpy as np

from rarepapers.reporting import translation_metrics
from rarepapers.reporting.claims.evidence import Evidence
from rarepapers.reporting.claims.truths import Missing

# Words with this many equal first letters are related (our choice): happiness, happy; criminal, crimin@@.
STEM = 4


def of_other_language(evidence: Evidence, method: str) -> dict[int, np.ndarray]:
    """Number of neighbours of each query that belong to the other language, by seed (q); raises Missing."""
    return {seed: _counted(arrays) for seed, arrays in _runs(evidence, method).items()}


def _counted(arrays: dict[str, np.ndarray]) -> np.ndarray:
    pairs = zip(arrays["best.neighbour_queries"], arrays["best.neighbours"], strict=True)
    return np.array([translation_metrics.other_language(arrays, int(query))[ids].sum() for query, ids in pairs])


def of_one_stem(evidence: Evidence, method: str) -> dict[int, int]:
    """Number of neighbours of all queries with the query's stem, ignoring case, by seed; raises Missing."""
    return {seed: _related(arrays) for seed, arrays in _runs(evidence, method).items()}


def _related(arrays: dict[str, np.ndarray]) -> int:
    def stem(identity: int) -> str:
        return str(arrays["vocabulary"][identity]).lstrip(" ▁").lower()[:STEM]

    pairs = zip(arrays["best.neighbour_queries"], arrays["best.neighbours"], strict=True)
    return sum(stem(int(query)) == stem(int(identity)) for query, ids in pairs for identity in ids)


def _runs(evidence: Evidence, method: str) -> dict[int, dict[str, np.ndarray]]:
    pairs = evidence.results.seeds_with_arrays(evidence.definition.methods[method])
    found = {
        seed: arrays
        for seed, arrays in pairs
        if "source_counts" in arrays and len(arrays.get("best.neighbour_queries", ()))
    }
    if not found:
        raise Missing(f"{method} was not run (neighbours of a joint vocabulary)")
    return found
