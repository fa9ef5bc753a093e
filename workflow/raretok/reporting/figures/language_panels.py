"""Panels of language models for several papers: embedding planes and curves along training."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from raretok.reporting.claims.figure_claims import group_slices
from raretok.reporting.definition import Method
from raretok.reporting.figures.panels import mean_and_band
from raretok.reporting.figures.shown import NotRun, first_run
from raretok.reporting.figures.style import FREQUENT, MEDIUM, RARE, sheet
from raretok.reporting.results import Results

LOOKS = (
    {"color": FREQUENT, "linestyle": "-", "marker": "o"},
    {"color": MEDIUM, "linestyle": "--", "marker": "s"},
    {"color": RARE, "linestyle": "-.", "marker": "^"},
)
# Maximum number of drawn points of a plane: more would hide each other and make the page large.
POINTS = 4_000
# Sentence on this in captions.
POINTS_SAID = f"Of more than {POINTS:,} types, {POINTS:,} random ones are drawn."
# Sentence on `mean_around_freeze` in captions.
GAP_SAID = "Dots: the last snapshot of the freeze and the first after it; no line joins them."
# Share of the points beyond each limit of a plane's axes, so that a few outliers do not set the scale.
OUTSIDE = 0.001


def group_colours(bounds: np.ndarray, types: int) -> np.ndarray:
    """The colour of every type, that of its group."""
    colours = np.empty(types, dtype="U7")
    for part, look in zip(group_slices(bounds), LOOKS, strict=True):
        colours[part] = look["color"]
    return colours


def scatter_groups(axes: Axes, plane: np.ndarray, bounds: np.ndarray) -> None:
    """Draw tokens in a plane (V x 2), coloured by group. The points are a bitmap inside svg and pdf."""
    plane, colours = plane.astype(float), group_colours(bounds, len(plane))
    # A fixed random order: drawn group by group, the last group would cover the others.
    order = np.random.default_rng(0).permutation(len(plane))[:POINTS]
    size = float(np.clip(12_000 / len(order), 0.8, 10))
    axes.scatter(*plane[order].T, c=colours[order], s=size, alpha=0.55, linewidth=0, rasterized=True)
    for set_limits, values in ((axes.set_xlim, plane[:, 0]), (axes.set_ylim, plane[:, 1])):
        low, high = np.quantile(values, [OUTSIDE, 1 - OUTSIDE])
        room = 0.06 * (high - low) or 1.0
        set_limits(low - room, high + room)
    # The directions and scale of a projection have no meaning, but the origin does.
    axes.axhline(0, color="#999999", linewidth=0.7, zorder=0.5)
    axes.axvline(0, color="#999999", linewidth=0.7, zorder=0.5)
    axes.tick_params(labelsize=8.5)
    axes.locator_params(nbins=5)
    axes.grid(False)


def panels_over_legend(figure: Figure, rows: int, columns: int, **share) -> tuple[np.ndarray, Axes]:
    """rows x columns panels, and a strip below them for a common legend (`draw_legend`)."""
    upper, lower = figure.subfigures(2, 1, height_ratios=[figure.get_figheight() - 0.45, 0.45])
    strip = lower.add_subplot()
    strip.set_axis_off()
    return upper.subplots(rows, columns, squeeze=False, **share), strip


def draw_legend(strip: Axes, handles: list) -> None:
    """Draw one legend of labelled `handles` in the strip below the panels, in two rows if one is too wide."""
    for columns in (len(handles), -(-len(handles) // 2)):
        legend = strip.legend(handles=handles, loc="center", ncols=columns, frameon=False, borderpad=0)
        if legend.get_window_extent().width <= strip.figure.bbox.width:
            return


def group_handles(names: tuple[str, str, str]) -> list[Line2D]:
    """Legend handles for `scatter_groups`."""
    return [
        Line2D([], [], linestyle="", marker="o", markersize=7, color=look["color"], label=name)
        for name, look in zip(names, LOOKS, strict=True)
    ]


def planes_along_training(results: Results, method: Method, key: str, axis: str, names: tuple[str, str, str]) -> Figure:
    """The first seed's snapshots in a plane (`key`: snapshots.svd or .pca), one panel each with its step as title.

    axis: name of a component. names: of the groups. Raises NotRun.
    """
    arrays = first_run(results, method) or {}
    planes = arrays.get(key, [])
    if not len(planes):
        raise NotRun
    figure = sheet(2.9)
    panels, strip = panels_over_legend(figure, 1, len(planes))
    for letter, axes, plane, step in zip("abcdefgh", panels[0], planes, arrays["snapshots.steps"], strict=False):
        scatter_groups(axes, plane, arrays["bounds"])
        axes.set_title(f"({letter}) step {int(step):,}", loc="left")
        axes.set_xlabel(f"{axis} 1")
    panels[0, 0].set_ylabel(f"{axis} 2")
    draw_legend(strip, group_handles(names))
    return figure


def step_title(letter: str, words: str, step: int, printed: int | None) -> str:
    """A panel's title: its letter, words and step, and the paper's step if that is known and another one."""
    paper = "" if printed in (None, step) else f" (paper: {printed:,})"
    return f"({letter}) {words} {step:,}{paper}"


def freeze_line(axes: Axes, step: int) -> None:
    """Draw a line at the step where the freeze of rare rows ends."""
    axes.axvline(step, color="#888888", linewidth=1.3, label="end of freezing")


def mean_around_freeze(axes: Axes, steps: np.ndarray, values: np.ndarray, step: int, label: str, look: dict) -> None:
    """`mean_and_band` with a gap between the snapshots before and after the freeze ends at `step`.

    A line across the gap would show an effect before its cause. steps: n; values: seeds x n.
    """
    for part, beside in ((steps <= step, -1), (steps > step, 0)):
        if part.any():
            dot = {"marker": "o", "markersize": 4.5, "markeredgewidth": 0, "markevery": [beside]}
            mean_and_band(axes, steps[part], values[:, part], label, look | dot)
            label = None


def stacked(runs: list[tuple[int, dict[str, np.ndarray]]], key: str) -> np.ndarray | None:
    """An array of all seeds (seeds x ...), cut to the shortest; None if no seed has it."""
    found = [arrays[key] for _, arrays in runs if key in arrays]
    if not found:
        return None
    length = min(map(len, found))
    return np.stack([values[:length].astype(float) for values in found])


def end_of_freeze(results: Results, method: Method) -> int:
    """The scaled step until which a method of the family `freeze until`, which was run, froze rare rows."""
    return results.training(method)["settings"]["method"]["gate"]["until"]
