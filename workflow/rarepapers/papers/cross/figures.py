"""Figures of the comparison of all methods (docs/comparison.md)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Affine2D, Bbox

from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures.shown import Drawn, NotRun
from rarepapers.reporting.figures.style import BLACK, GREY, PURPLE, sheet
from rarepapers.reporting.results import Results
from rarepapers.reporting.tables.method_comparison import Point, chosen_candidate, families, figure_points

# Losses up to this size, in per cent, have a linear scale, larger ones a logarithmic scale.
LINEAR = 2.0
SINGLE = {"color": BLACK, "marker": "o"}
COMBINED = {"color": PURPLE, "marker": "D"}
# The first method with a constant added to the logits of rare types after training
OFFSET = {"color": GREY, "linestyle": "-", "linewidth": 1.2, "marker": "|", "markersize": 8}
# Left edge of the column of names, as a share of the panel's width.
NAMES = 1.03
MOST_NAMES = 16  # that fit below each other without moving closer
# Height of a number beside a point, and distances from it at which a line connects the two, in typographic points.
HEIGHT, RINGS = 7.0, (16, 22, 28, 34)
DIRECTIONS = [(np.cos(angle), np.sin(angle)) for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False)]


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Gain on rare tokens against loss on frequent tokens, one panel per task."""
    entry = definition.entry(item)
    tasks = {task: name for task, name in entry["experiments"].items() if name in definition.settings}
    baseline = families(definition, entry)[0]
    known = {task: figure_points(definition, results, entry, experiment) for task, experiment in tasks.items()}
    known = {task: found for task, found in known.items() if any(point.is_drawn or point.not_finite for point in found)}
    if not known:
        raise NotRun
    figure = sheet(0.4 + 4.6 * len(known))
    panels = np.atleast_1d(figure.subplots(len(known), 1))
    lines = {
        task: offset_line(results, chosen_candidate(definition, results, baseline, tasks[task]).method)
        for task in known
    }
    numbers = set()
    for axes, (task, found) in zip(panels, known.items(), strict=True):
        shown = [point for point in found if point.is_drawn]
        numbers |= {change.seeds for point in shown for change in (point.frequent, point.rare)}
        axes.set_title(f"{task[0].upper()}{task[1:]}", loc="left", fontweight="bold")
        if lines[task] is not None:
            draw_offsets(axes, baseline["label"], *lines[task])
        draw_points(axes, shown, baseline["label"])
        write_missing(axes, found)
    figure.draw_without_rendering()  # places the panels, whose points are numbered where there is room
    for axes, found in zip(panels, known.values(), strict=True):
        write_numbers(axes, in_order(found))
    seeds = max(numbers, default=0)
    most = "" if len(numbers) == 1 else "at most "
    over = "one seed, so no intervals: inconclusive"
    if seeds > 1:
        hollow = "; hollow: one seed, inconclusive" if 1 in numbers else ""
        over = f"95% t interval over {most}{seeds} seeds{hollow}"
    about_line = (
        f"Line: {baseline['label']} with one constant added to the logits of all rare types after training; ticks: 1, "
        "2 and 3 nats. Right of it, a method costs more than this constant for the same gain. "
    )
    text = (
        f"Change of test perplexity relative to {baseline['label']}, paired by seed, both tuned on the validation "
        f"text; {over}. {about_line if any(lines.values()) else ''}Up: better for rare tokens. Right: worse for "
        f"frequent tokens, linear up to {LINEAR:g}% and logarithmic beyond. Shaded: a gain without a loss. "
        "Circles: single methods; diamonds: combinations."
    )
    odd = [f"{point.label} ({point.not_finite})" for found in known.values() for point in found if point.not_finite]
    if odd:
        text += f" Not drawn: {', '.join(odd)}."
    if any(any(point.is_drawn and is_open(point) for point in found) for found in known.values()):
        text += " Arrows: the interval leaves the axis."
    if any(point.is_provisional for found in known.values() for point in found if point.is_drawn):
        text += " Provisional: runs are missing, which could change the choice among a method's values."
    return figure, text


def offset_line(results: Results, method: Method | None) -> tuple[np.ndarray, np.ndarray] | None:
    """K constants, and the mean change of the frequent and the rare tokens' perplexity in per cent with each, K x 2."""
    arrays = [] if method is None else [arrays for _, arrays in results.seeds_with_arrays(method)]
    arrays = [one for one in arrays if "best.offsets" in one]
    if not arrays:
        return None
    curves = [one["best.offset_perplexities"][:, [0, 2]] for one in arrays]
    with np.errstate(invalid="ignore"):
        return arrays[0]["best.offsets"], 100 * (np.mean([curve / curve[0] for curve in curves], axis=0) - 1)


def draw_offsets(axes: Axes, label: str, offsets: np.ndarray, changes: np.ndarray) -> None:
    """Draw the first method with each constant for rare types; ticks mark whole nats."""
    ticks = np.flatnonzero((offsets % 1 == 0) & (offsets > 0)).tolist()
    axes.plot(changes[:, 0], gain_of(changes[:, 1]), markevery=ticks, label=f"{label} + constant", zorder=1, **OFFSET)


def gain_of(change):
    """The first method's perplexity as a multiple of a method's, from the method's change in per cent.

    Infinite for a change to 0 or below, which the interval of a change over few seeds can include.
    """
    share = np.maximum(1 + np.asarray(change, dtype=float) / 100, 0.0)
    with np.errstate(divide="ignore"):
        return 1 / share


def is_open(point: Point) -> bool:
    """Whether the interval of a drawn point's gain has no upper end."""
    return point.rare.interval is not None and np.isinf(gain_of(point.rare.interval[0]))


def draw_points(axes: Axes, shown: list[Point], first: str) -> None:
    """Draw numbered points with their intervals, and a column with the names of the numbers on the right."""
    for point in shown:
        loss, rare = point.frequent, point.rare
        gain = gain_of(rare.mean)
        look = COMBINED if "+" in point.label else SINGLE
        closed = rare.interval is not None and not is_open(point)
        if is_open(point):
            axes.update_datalim([(loss.mean, gain_of(rare.interval[1]))])
        axes.errorbar(
            loss.mean,
            gain,
            xerr=None if loss.interval is None else np.abs(np.subtract(loss.interval, loss.mean))[:, None],
            yerr=np.abs(gain_of(rare.interval) - gain)[::-1, None] if closed else None,
            linestyle="none",
            markersize=5,
            alpha=0.65,
            elinewidth=1,
            capsize=2,
            markerfacecolor="white" if has_one_seed(point) else look["color"],
            **look,
        )
    axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g}%" if value else "0")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"x{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="loss on frequent tokens", ylabel=f"gain on rare tokens: {first}'s perplexity / the method's")
    widen(axes)
    draw_open_intervals(axes, shown)
    axes.set_xticks(loss_ticks(*axes.get_xlim()))
    left, top = axes.get_xlim()[0], axes.get_ylim()[1]
    axes.fill_between([left, 0], 1, top, color="#009E73", alpha=0.08, linewidth=0)
    axes.axhline(1, color="#555555", linewidth=1)
    axes.axvline(0, color="#555555", linewidth=1)
    write_names(axes, in_order(shown))
    looks = {"single method": SINGLE}
    if any("+" in point.label for point in shown):
        looks["combination"] = COMBINED
    names = [*looks]
    handles = [Line2D([], [], linestyle="none", **look) for look in looks.values()]
    if any(map(has_one_seed, shown)):
        handles.append(Line2D([], [], linestyle="none", markerfacecolor="white", **(SINGLE | {"color": "#555555"})))
        names.append("one seed")
    lines, labels = axes.get_legend_handles_labels()
    axes.legend(handles + lines, names + labels, loc="lower left", framealpha=0.9)


def draw_open_intervals(axes: Axes, shown: list[Point]) -> None:
    """Draw intervals of gains without an upper end up to the edge, with an arrow there; the limits are final."""
    top = axes.get_ylim()[1]
    for point in filter(is_open, shown):
        color = look_of_text(point)["color"]
        low = gain_of(point.rare.interval[1])
        axes.vlines(point.frequent.mean, low, top, color=color, alpha=0.65, linewidth=1)
        axes.plot(point.frequent.mean, top, marker="^", markersize=5, color=color, alpha=0.65, clip_on=False)


def loss_ticks(left: float, right: float) -> list[float]:
    """Ticks between two losses in per cent: 0, powers of ten, and where the axis turns logarithmic."""
    largest = max(-left, right)
    sizes = [LINEAR] + [10.0**power for power in range(10) if 10.0**power <= largest]
    return [
        tick for tick in sorted({0.0} | {sign * size for size in sizes for sign in (-1, 1)}) if left <= tick <= right
    ]


def has_one_seed(point: Point) -> bool:
    """Whether a drawn point has no interval because it rests on one seed."""
    return min(point.frequent.seeds, point.rare.seeds) < 2


def write_missing(axes: Axes, found: list[Point]) -> None:
    """Write the number of methods without a point, and the reasons, into the panel's upper right corner."""
    infinite = sum(bool(point.not_finite) for point in found)
    counts = {"not finite in some seed": infinite, "not run": sum(not point.is_drawn for point in found) - infinite}
    said = [f"{words}: {number} of {len(found)} methods" for words, number in counts.items() if number]
    if said:
        axes.set_title("; ".join(said), loc="right", fontsize=9, color="#555555")


def widen(axes: Axes) -> None:
    """Widen the limits around the points so that gains and losses of both groups are visible."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(min(1.15 * left, -0.5 * LINEAR), max(1.15 * right, 0.5 * LINEAR))
    axes.set_ylim(min(low, 0.9), max(high, 1.1))


def in_order(found: list[Point]) -> list[Point]:
    """The points that are drawn, by decreasing gain: the order of their numbers."""
    return sorted((point for point in found if point.is_drawn), key=lambda point: point.rare.mean)


def look_of_text(point: Point) -> dict:
    """The look of a point's number and name."""
    return {"color": (COMBINED if "+" in point.label else SINGLE)["color"], "fontsize": 9}


def write_names(axes: Axes, ordered: list[Point]) -> None:
    """Write a list of the numbered names on the right."""
    places = np.linspace(0.98, 0.02, max(len(ordered), MOST_NAMES))
    for number, (place, point) in enumerate(zip(places, ordered, strict=False), 1):
        provisional = ", provisional" if point.is_provisional else ""
        text = f"{number}  {point.label}  x{gain_of(point.rare.mean):.2f}{provisional}"
        axes.text(NAMES, place, text, transform=axes.transAxes, va="center", **look_of_text(point))


def write_numbers(axes: Axes, ordered: list[Point]) -> None:
    """Write a number beside each point; the panel has its final place."""
    points = [(point.frequent.mean, gain_of(point.rare.mean)) for point in ordered]
    offsets = free_offsets(axes, points, drawn_lines(axes))
    for number, (point, place, offset) in enumerate(zip(ordered, points, offsets, strict=True), 1):
        look = look_of_text(point)
        line = {"arrowstyle": "-", "linewidth": 0.5, "color": look["color"], "shrinkA": 0, "shrinkB": 3}
        is_near = np.hypot(offset[0] + width_of(number) / 2, offset[1] + HEIGHT / 2) < RINGS[0] - 1
        arrow = None if is_near else line
        axes.annotate(str(number), place, offset, textcoords="offset points", arrowprops=arrow, **look)


def width_of(number: int) -> float:
    """Width of a number beside a point, in typographic points."""
    return 6.0 * len(str(number))


def cost_of(box: Bbox, taken: list[Bbox], lines: Sequence[Path]) -> tuple[int, int]:
    """How many boxes and lines a number in `box` would cover; the fewer boxes the better."""
    return box.count_overlaps(taken), sum(line.intersects_bbox(box, filled=False) for line in lines)


def drawn_lines(axes: Axes) -> list[Path]:
    """The lines of a panel, those of intervals included, in typographic points."""
    lines = [(line.get_path(), line.get_transform()) for line in axes.lines if line.get_linestyle() != "None"]
    lines += [
        (path, axes.transData)
        for bars in axes.collections
        if isinstance(bars, LineCollection)
        for path in bars.get_paths()
    ]
    points = Affine2D().scale(72 / axes.figure.dpi)
    return [(transform + points).transform_path(path) for path, transform in lines]


def free_offsets(
    axes: Axes, points: list[tuple[float, float]], lines: Sequence[Path] = ()
) -> list[tuple[float, float]]:
    """Offset of each point's number, in typographic points, as near as can be.

    It stays off all markers and earlier numbers, then off `lines`.
    """
    places = axes.transData.transform(points) * 72 / axes.figure.dpi
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in places]
    found = []
    for number, (x, y) in enumerate(places, 1):
        width = width_of(number)
        around = [(5, 3), (5, -10), (-5 - width, 3), (-5 - width, -10), (-width / 2, 6), (-width / 2, -13)]
        around += [
            (radius * right - width / 2, radius * up - HEIGHT / 2) for radius in RINGS for right, up in DIRECTIONS
        ]
        boxes = {offset: Bbox.from_bounds(x + offset[0], y + offset[1], width, HEIGHT) for offset in around}
        found.append(min(around, key=lambda offset: cost_of(boxes[offset], taken, lines)))
        taken.append(boxes[found[-1]])
    return found
