"""Methods and runs shown in a figure, and caption sentences on seeds."""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from raretok.reporting.definition import Method
from raretok.reporting.results import Results

Drawn = tuple[Figure, str]

# Start of the caption of a figure without runs.
NOT_RUN = "Not run"
BAND = "the band is one sample standard deviation, often narrower than the line"


class NotRun(Exception):
    """A figure has nothing to show; the message gives the reason if it is not that nothing was run."""


def seeds_note(results: Results, methods: list[Method]) -> str:
    """Caption sentence on the number of seeds behind mean curves."""
    return means_note([len(results.seeds_with_arrays(method)) for method in methods], BAND)


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
