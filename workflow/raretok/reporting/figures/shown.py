"""What a figure shows: its methods, the run of which it is a picture, how many seeds its curves are of."""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results

Drawn = tuple[Figure, str]

BAND = "the band is one sample standard deviation"


def seeds_note(results: Results, methods: list[Method]) -> str:
    """How many seeds curves are the mean of."""
    return means_note([len(results.seeds_with_arrays(method)) for method in methods], BAND)


def means_note(counts: Iterable[int], spread: str = "") -> str:
    """How many seeds means are over, see `over_seeds`. spread: what shows how far seeds differ."""
    over = over_seeds(counts)
    if not over:
        return "One seed."
    return f"Mean over {over}; {spread}." if spread else f"Mean over {over}."


def over_seeds(counts: Iterable[int]) -> str:
    """`3 seeds`, in other words where methods differ; empty where none has two.

    counts: of each method its seeds, 0 where it was not run.
    """
    known = set(counts) - {0}
    most = max(known, default=0)
    if most < 2:
        return ""
    return f"{most} seeds" if len(known) == 1 else f"the seeds of each method, {most} at most"


def shown_methods(definition: Definition, item: str) -> list[Method]:
    """The methods of a figure, in the experiment that it names."""
    definition = definition.of(item)
    return [definition.method(name) for name in definition.entry("figures", item)["methods"]]


def with_arrays(results: Results, methods: list[Method], key: str) -> list[Method]:
    """Those of which some run has the array `key`: only they get a panel."""
    return [one for one in methods if any(key in arrays for _, arrays in results.seeds_with_arrays(one))]


def first_run(results: Results, method: Method) -> dict[str, np.ndarray] | None:
    """The arrays of the first seed that was run."""
    runs = results.seeds_with_arrays(method)
    return runs[0][1] if runs else None
