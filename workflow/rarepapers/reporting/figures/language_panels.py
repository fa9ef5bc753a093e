"""Panels of language models for several papers: embedding planes and curves along training."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rarepapers.reporting.claims.figure_claims import group_slices
from rarepapers.reporting.definition import Method
from rarepapers.reporting.figures.panels import mean_and_band
from rarepapers.reporting.figures.shown import NotRun, first_run
from rarepapers.reporting.figures.style import BLACK, FREQUENT, MEDIUM, RARE, sheet
from rarepapers.reporting.results import Results

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
# Look of a group's mean.
MEAN = {"s": 50, "edgecolor": BLACK, "linewidth": 1.2, "zorder": 3}
# Sentence on `scatter_groups` in captions.
PLANE_SAID = (
    f"{POINTS_SAID} Large, with a black edge: each group's mean. Signs of components are chosen so that the rarest "
    "group's mean is at the right and above. The outermost 0.1% on each side are not shown."
)
# Share of the points beyond each limit of a plane's axes, so that a few outliers do not set the scale.
OUTSIDE = 0.001


def group_colours(bounds: np.ndarray, types: int) -> np.ndarray:
    """The colour of every type, that of its group."""
    colours = np.empty(types, dtype="U7")
    for part, look in zip(group_slices(bounds), LOOKS, strict=True):
        colours[part] = look["color"]
    return colours


def scatter_groups(axes: Axes, plane: np.ndarray, bounds: np.ndarray) -> None:
    """Draw tokens in a plane (V x 2), coloured by group, and each group's mean. The points are a bitmap in svg and pdf.

    The sign of a component is arbitrary; it is chosen so that the rare group's mean is not negative.
    """
    plane, colours = plane.astype(float), group_colours(bounds, len(plane))
    plane = plane * np.where(plane[group_slices(bounds)[2]].mean(0) < 0, -1, 1)
    # A fixed random order: drawn group by group, the last group would cover the others.
    order = np.random.default_rng(0).permutation(len(plane))[:POINTS]
    size = float(np.clip(12_000 / len(order), 0.8, 10))
    axes.scatter(*plane[order].T, c=colours[order], s=size, alpha=0.55, linewidth=0, rasterized=True)
    for part, look in zip(group_slices(bounds), LOOKS, strict=True):
        axes.scatter(*plane[part].mean(0), color=look["color"], marker=look["marker"], **MEAN)
    for set_limits, values in ((axes.set_xlim, plane[:, 0]), (axes.set_ylim, plane[:, 1])):
        low, high = np.quantile(values, [OUTSIDE, 1 - OUTSIDE])
        room = 0.06 * (high - low) or 1.0
        set_limits(low - room, high + room)
    # The directions of a projection have no meaning, but the origin does.
    axes.axhline(0, color="#999999", linewidth=0.7, zorder=0.5)
    axes.axvline(0, color="#999999", linewidth=0.7, zorder=0.5)
    axes.tick_params(labelsize=8.5)
    axes.locator_params(nbins=5)
    axes.grid(False)


def share_limits(panels: Sequence[Axes]) -> None:
    """Give panels in a row the same limits, which include those of each."""
    limits = np.array([[axes.get_xlim(), axes.get_ylim()] for axes in panels])
    for axes in panels:
        axes.set(xlim=(limits[:, 0, 0].min(), limits[:, 0, 1].max()))
        axes.set(ylim=(limits[:, 1, 0].min(), limits[:, 1, 1].max()))
        axes.tick_params(labelleft=axes is panels[0])


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
    """Legend handles for points in the colours of groups."""
    return [
        Line2D([], [], linestyle="", marker="o", markersize=7, color=look["color"], label=name)
        for name, look in zip(names, LOOKS, strict=True)
    ]


def mean_handles(names: tuple[str, str, str]) -> list[Line2D]:
    """Legend handles for the groups of `scatter_groups`, with the look of their means."""
    handles = group_handles(names)
    for handle, look in zip(handles, LOOKS, strict=True):
        handle.set(marker=look["marker"], markersize=8, markeredgecolor=BLACK)
    return handles


def planes_along_training(
    results: Results, method: Method, key: str, axis: str, names: tuple[str, str, str], printed: Sequence[int] = ()
) -> Figure:
    """The first seed's snapshots in a plane (`key`: snapshots.svd or .pca), one panel each with its step as title.

    axis: name of a component. names: of the groups. printed: the paper's step of each panel. Raises NotRun.
    """
    arrays = first_run(results, method) or {}
    planes = arrays.get(key, [])
    if not len(planes):
        raise NotRun
    figure = sheet(2.9)
    panels, strip = panels_over_legend(figure, 1, len(planes))
    # A short training can have fewer snapshots, because equal steps are one.
    of_paper = printed if len(printed) == len(planes) else [None] * len(planes)
    steps = map(int, arrays["snapshots.steps"])
    for letter, axes, plane, step, known in zip("abcdefgh", panels[0], planes, steps, of_paper, strict=False):
        scatter_groups(axes, plane, arrays["bounds"])
        axes.set_title(step_title(letter, "step", step, known), loc="left", fontsize=9.5)
        axes.set_xlabel(f"{axis} 1")
    panels[0, 0].set_ylabel(f"{axis} 2")
    share_limits(panels[0])
    draw_legend(strip, mean_handles(names))
    return figure


def step_title(letter: str, words: str, step: int, printed: int | None) -> str:
    """A panel's title: its letter, words and step, and the paper's step if that is known and another one."""
    return f"({letter}) {words} {step_and_papers(step, printed)}"


def step_and_papers(step: int, printed: int | None) -> str:
    """`30 (paper: 1,000)`: a step, and the paper's if that is known and another one."""
    paper = "" if printed in (None, step) else f" (paper: {printed:,})"
    return f"{step:,}{paper}"


def freeze_line(axes: Axes, step: int) -> None:
    """Draw a line at the step where the freeze of rare rows ends, below the curves and their dots."""
    axes.axvline(step, color="#888888", linewidth=1.3, zorder=1.5, label="end of freezing")


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
