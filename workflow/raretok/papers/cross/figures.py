"""Figures of the comparison of all methods (docs/comparison.md)."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from raretok.reporting.definition import Definition
from raretok.reporting.figures.shown import Drawn
from raretok.reporting.figures.style import BLUE, ORANGE, not_run, sheet
from raretok.reporting.results import Results
from raretok.reporting.tables.method_comparison import Point, families, points

# Changes up to this size, in per cent, are drawn to a linear scale, larger ones to a logarithmic one.
LINEAR = 2.0
SINGLE = {"color": BLUE, "marker": "o"}
COMBINED = {"color": ORANGE, "marker": "D"}
# From the left edge of a name to its point.
LEADER = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
# Of a panel's width: where the column of names begins.
NAMES = 1.03


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """What every method gains on rare tokens against what it loses on frequent ones, a panel a task."""
    entry = definition.entry("figures", item)
    tasks = {task: name for task, name in entry["experiments"].items() if name in definition.settings}
    first = families(definition, entry)[0]["label"]
    figure = sheet(10, 1.2 + 5.4 * len(tasks))
    panels = np.atleast_1d(figure.subplots(len(tasks), 1))
    numbers = set()
    for axes, (task, experiment) in zip(panels, tasks.items(), strict=True):
        found = points(definition, results, entry, experiment)
        shown = [point for point in found if point.is_drawn]
        numbers |= {change.seeds for point in shown for change in (point.frequent, point.rare)}
        axes.set_title(f"{task[0].upper()}{task[1:]}", loc="left", fontweight="bold")
        if shown:
            draw_points(axes, shown)
            write_missing(axes, found)
        else:
            not_run(axes, f"{first} and a method to hold against it")
    seeds = max(numbers, default=0)
    over = {0: "nothing was run", 1: "one seed, so no intervals: inconclusive"}
    most = "" if len(numbers) == 1 else "at most "
    over = over.get(seeds, f"95% t interval over {most}{seeds} seeds")
    text = (
        f"Change of test perplexity against {first}, both tuned alike on the validation text, seed by seed; {over}. "
        "Up: better for rare tokens. Right: worse for frequent ones. Shaded: a gain that costs nothing. "
        f"Beyond {LINEAR:g}% the scales are logarithmic. Circles: one change; diamonds: combinations."
    )
    return figure, text


def draw_points(axes: Axes, shown: list[Point]) -> None:
    """Points with their intervals, and their names in a column on the right, in the points' order, joined by lines."""
    for point in shown:
        loss, gain = point.frequent, point.rare
        look = COMBINED if "+" in point.label else SINGLE
        axes.errorbar(
            loss.mean,
            -gain.mean,
            xerr=None if loss.lower is None else [[loss.mean - loss.lower], [loss.upper - loss.mean]],
            yerr=None if gain.lower is None else [[gain.upper - gain.mean], [gain.mean - gain.lower]],
            linestyle="none",
            markersize=6,
            elinewidth=1,
            capsize=2,
            markerfacecolor="white" if point.is_provisional else look["color"],
            **look,
        )
    for scale in (axes.set_xscale, axes.set_yscale):
        scale("symlog", linthresh=LINEAR, linscale=1.0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:+g}%" if value else "0")
    axes.set(xlabel="loss on frequent tokens", ylabel="gain on rare tokens")
    widen(axes)
    left, top = axes.get_xlim()[0], axes.get_ylim()[1]
    axes.fill_between([left, 0], 0, top, color="#009E73", alpha=0.08, linewidth=0)
    axes.axhline(0, color="#555555", linewidth=1)
    axes.axvline(0, color="#555555", linewidth=1)
    write_names(axes, sorted(shown, key=lambda point: point.rare.mean))
    handles = [Line2D([], [], linestyle="none", **look) for look in (SINGLE, COMBINED)]
    names = ["one change", "combination"]
    if any(point.is_provisional for point in shown):
        handles.append(Line2D([], [], linestyle="none", markerfacecolor="white", **(SINGLE | {"color": "#555555"})))
        names.append("provisional: runs are missing")
    axes.legend(handles, names, loc="lower left", framealpha=0.9)


def write_missing(axes: Axes, found: list[Point]) -> None:
    """How many methods have no point, and why, at the panel's upper right."""
    infinite = sum(point.is_infinite for point in found)
    counts = {"infinite in some seed": infinite, "not run": sum(not point.is_drawn for point in found) - infinite}
    said = [f"{words}: {number} of {len(found)} methods" for words, number in counts.items() if number]
    if said:
        axes.set_title("; ".join(said), loc="right", fontsize=9, color="#555555")


def widen(axes: Axes) -> None:
    """Room around what is drawn, and both signs of both changes in sight."""
    for limits, set_limits in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
        set_limits(min(1.15 * limits[0], -0.5 * LINEAR), max(1.15 * limits[1], 0.5 * LINEAR))


def write_names(axes: Axes, ordered: list[Point]) -> None:
    """A name a line, from the top; thin lines lead to the points."""
    places = np.linspace(0.98, 0.02, len(ordered)) if len(ordered) > 1 else [0.5]
    for place, point in zip(places, ordered, strict=True):
        colour = (COMBINED if "+" in point.label else SINGLE)["color"]
        axes.annotate(
            f"{point.label}  {-point.rare.mean:+.1f}%",
            xy=(point.frequent.mean, -point.rare.mean),
            xytext=(NAMES, place),
            textcoords="axes fraction",
            va="center",
            fontsize=10,
            color=colour,
            annotation_clip=False,
            arrowprops=LEADER,
        )
