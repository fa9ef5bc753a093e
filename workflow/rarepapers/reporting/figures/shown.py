"""Methods and runs shown in a figure, and caption sentences on seeds."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.figure import Figure

from rarepapers.reporting.definition import Method
from rarepapers.reporting.results import Results
from rarepapers.reporting.statistics.over_seeds import not_finite

Drawn = tuple[Figure, str]
Runs = list[tuple[int, dict[str, np.ndarray]]]  # seed and arrays

# Start of the caption of a figure without runs.
NOT_RUN = "Not run"
BAND = "the band is one sample standard deviation, often narrower than the line"


class NotRun(Exception):
    """A figure has nothing to show; the message gives the reason if it is not that nothing was run."""


def seeds_note(results: Results, methods: list[Method], *keys: str) -> str:
    """Caption sentences on the number of seeds behind mean curves of the arrays `keys`, and on gaps of these curves."""
    runs = {method.label: results.seeds_with_arrays(method) for method in methods}
    return means_note(map(len, runs.values()), BAND) + gaps_note(runs, *keys)


def gaps_note(runs: Mapping[str, Runs], *keys: str) -> str:
    """Caption sentence on the seeds that leave gaps in mean curves (`panels.mean_and_band`); runs: by label."""
    worst = {
        label: {seed: _worst([arrays[key] for key in keys if key in arrays]) for seed, arrays in pairs}
        for label, pairs in runs.items()
    }
    named = _named(worst)
    return f" Gaps, where a seed is not finite: {named}." if named else ""


def not_drawn_note(means: Mapping[str, Mapping[int, float]]) -> str:
    """Caption sentence on means without a point because a seed is not finite; means: values by seed, by label."""
    named = _named(means)
    return f" Not drawn: {named}." if named else ""


def _named(means: Mapping[str, Mapping[int, float]]) -> str:
    return "; ".join(f"{label}, {seeds}" for label, values in means.items() if (seeds := not_finite(values)))


def _worst(arrays: list[np.ndarray]) -> float:
    """NaN if a value is, infinity if one is, else 0."""
    if any(np.isnan(values).any() for values in arrays):
        return math.nan
    return math.inf if any(np.isinf(values).any() for values in arrays) else 0.0


def means_note(counts: Iterable[int], spread: str = "") -> str:
    """Caption sentence on the number of seeds behind means, see `over_seeds`. spread: what shows their spread."""
    over = over_seeds(counts)
    if not over:
        return "One seed."
    return f"Mean over {over}; {spread}." if spread else f"Mean over {over}."


def over_seeds(counts: Iterable[int]) -> str:
    """`3 seeds`, or `each method's seeds, at most 3` if methods differ; empty if no method has two seeds.

    counts: number of seeds of each method, 0 if it was not run.
    """
    known = set(counts) - {0}
    most = max(known, default=0)
    if most < 2:
        return ""
    return f"{most} seeds" if len(known) == 1 else f"each method's seeds, at most {most}"


def with_arrays(results: Results, methods: list[Method], key: str) -> list[Method]:
    """The methods with the array `key` in some run; others get no panel. Raises NotRun if no method has it."""
    found = [one for one in methods if any(key in arrays for _, arrays in results.seeds_with_arrays(one))]
    if not found:
        raise NotRun
    return found


def first_run(results: Results, method: Method) -> dict[str, np.ndarray] | None:
    """The arrays of the first finished seed."""
    runs = results.seeds_with_arrays(method)
    return runs[0][1] if runs else None
