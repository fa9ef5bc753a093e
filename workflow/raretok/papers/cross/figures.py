"""Figures of the comparison of all methods (docs/comparison.md)."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from raretok.reporting.definition import Definition, Method
from raretok.reporting.figures.shown import Drawn, NotRun
from raretok.reporting.figures.style import BLACK, GREY, PURPLE, sheet
from raretok.reporting.results import Results
from raretok.reporting.tables.method_comparison import Point, chosen_candidate, families, figure_points

# Changes up to this size, in per cent, have a linear scale, larger ones a logarithmic scale.
LINEAR = 2.0
SINGLE = {"color": BLACK, "marker": "o"}
COMBINED = {"color": PURPLE, "marker": "D"}
# The first method with a constant added to the logits of rare types after training
OFFSET = {"color": GREY, "linestyle": "-", "linewidth": 1.2, "marker": "|", "markersize": 8}
# Left edge of the column of names, as a share of the panel's width.
NAMES = 1.03
MOST_NAMES = 16  # that fit below each other without moving closer


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Gain on rare tokens against loss on frequent tokens, one panel per task."""
    entry = definition.entry(item)
    tasks = {task: name for task, name in entry["experiments"].items() if name in definition.settings}
    baseline = families(definition, entry)[0]
    known = {task: figure_points(definition, results, entry, experiment) for task, experiment in tasks.items()}
    known = {task: found for task, found in known.items() if any(point.is_drawn for point in found)}
    if not known:
        raise NotRun
    figure = sheet(0.4 + 4.6 * len(known))
    panels = np.atleast_1d(figure.subplots(len(known), 1))
    numbers, has_line = set(), False
    for axes, (task, found) in zip(panels, known.items(), strict=True):
        shown = [point for point in found if point.is_drawn]
        numbers |= {change.seeds for point in shown for change in (point.frequent, point.rare)}
        axes.set_title(f"{task[0].upper()}{task[1:]}", loc="left", fontweight="bold")
        changes = offset_changes(results, chosen_candidate(definition, results, baseline, tasks[task]).method)
        if changes is not None:
            draw_offsets(axes, baseline["label"], changes)
            has_line = True
        draw_points(axes, shown)
        write_missing(axes, found)
    seeds = max(numbers, default=0)
    over = {1: "one seed, so no intervals: inconclusive"}
    most = "" if len(numbers) == 1 else "at most "
    over = over.get(seeds, f"95% t interval over {most}{seeds} seeds")
    line = (
        f"Line: {baseline['label']} with one constant added to the logits of all rare types after training; ticks: 1, "
        "2 and 3 nats. Right of it, a method costs more than this constant for the same gain. "
    )
    text = (
        f"Change of test perplexity relative to {baseline['label']}, paired by seed, both tuned on the validation "
        f"text; {over}. {line if has_line else ''}Up: better for rare tokens. Right: worse for frequent tokens. "
        f"Shaded: a gain without a loss. Beyond {LINEAR:g}% the scales are logarithmic. Circles: single methods; "
        "diamonds: combinations."
    )
    return figure, text


def offset_changes(results: Results, method: Method | None) -> np.ndarray | None:
    """Mean change of the frequent and the rare tokens' perplexity in per cent with each constant, K x 2."""
    arrays = [] if method is None else [arrays for _, arrays in results.seeds_with_arrays(method)]
    curves = [one["best.offset_perplexities"][:, [0, 2]] for one in arrays if "best.offset_perplexities" in one]
    return 100 * (np.mean([curve / curve[0] for curve in curves], axis=0) - 1) if curves else None


def draw_offsets(axes: Axes, label: str, changes: np.ndarray) -> None:
    """Draw the first method with each constant for rare types; constants are multiples of a quarter of a nat."""
    ticks = [*range(4, len(changes), 4)]
    axes.plot(changes[:, 0], -changes[:, 1], markevery=ticks, label=f"{label} + constant", zorder=1, **OFFSET)


def draw_points(axes: Axes, shown: list[Point]) -> None:
    """Draw numbered points with their intervals, and a column with the names of the numbers on the right."""
    for point in shown:
        loss, gain = point.frequent, point.rare
        look = COMBINED if "+" in point.label else SINGLE
        axes.errorbar(
            loss.mean,
            -gain.mean,
            xerr=None if loss.interval is None else np.abs(np.subtract(loss.interval, loss.mean))[:, None],
            yerr=None if gain.interval is None else np.abs(np.subtract(gain.interval, gain.mean))[::-1, None],
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
    lines, labels = axes.get_legend_handles_labels()
    axes.legend(handles + lines, names + labels, loc="lower left", framealpha=0.9)


def write_missing(axes: Axes, found: list[Point]) -> None:
    """Write the number of methods without a point, and the reasons, into the panel's upper right corner."""
    infinite = sum(point.is_infinite for point in found)
    counts = {"infinite in some seed": infinite, "not run": sum(not point.is_drawn for point in found) - infinite}
    said = [f"{words}: {number} of {len(found)} methods" for words, number in counts.items() if number]
    if said:
        axes.set_title("; ".join(said), loc="right", fontsize=9, color="#555555")


def widen(axes: Axes) -> None:
    """Widen the limits around the points so that both signs of both changes are visible."""
    for limits, set_limits in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
        set_limits(min(1.15 * limits[0], -0.5 * LINEAR), max(1.15 * limits[1], 0.5 * LINEAR))


def write_names(axes: Axes, ordered: list[Point]) -> None:
    """Write a number beside each point, and a list of the numbered names on the right."""
    places = np.linspace(0.98, 0.02, max(len(ordered), MOST_NAMES))
    for number, (place, point) in enumerate(zip(places, ordered, strict=False), 1):
        look = {"color": (COMBINED if "+" in point.label else SINGLE)["color"], "fontsize": 9}
        at = (point.frequent.mean, -point.rare.mean)
        axes.annotate(str(number), at, (5, 3), textcoords="offset points", **look)
        text = f"{number}  {point.label}  {-point.rare.mean:+.1f}%"
        axes.text(NAMES, place, text, transform=axes.transAxes, va="center", **look)
