"""What a figure shows: its methods, the run of which it is a picture, how many seeds its curves are of."""

import numpy as np
from matplotlib.figure import Figure

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results

Drawn = tuple[Figure, str]


def seeds_note(results: Results, methods: list[Method]) -> str:
    """How many seeds curves are the mean of."""
    seeds = max((len(results.seeds_with_arrays(method)) for method in methods), default=0)
    return f"Mean over {seeds} seeds; the band is one sample standard deviation." if seeds > 1 else "One seed."


def shown_methods(definition: Definition, item: str) -> list[Method]:
    """The methods of a figure, in the experiment that it names."""
    definition = definition.of(item)
    return [definition.method(name) for name in definition.entry("figures", item)["methods"]]


def first_run(results: Results, method: Method) -> dict[str, np.ndarray] | None:
    """The arrays of the first seed that was run."""
    runs = results.seeds_with_arrays(method)
    return runs[0][1] if runs else None
