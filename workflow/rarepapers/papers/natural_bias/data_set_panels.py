"""Panels by data set: points for the starts of the output bias, curves along training."""

import math
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rarepapers.papers.natural_bias.bias_starts import C4, NONE, PUBLISHED_TEXT, UNIGRAM, WMT14, ZERO, unigram_text
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures.language_panels import panels_over_legend
from rarepapers.reporting.figures.shown import first_run, over_seeds
from rarepapers.reporting.figures.style import METHODS, sheet
from rarepapers.reporting.results import Results
from rarepapers.reporting.statistics.over_seeds import mean_of, mean_text, number_text, standard_error

COLUMNS = 3
WIDTHS = {1: 5.5, 2: 7.5, 3: 9.0}  # inches, by the number of columns
# Each start has one colour in all figures, and its own line style and marker for print.
LOOKS = {NONE: METHODS["none"], ZERO: METHODS["zero"], UNIGRAM: METHODS["unigram"], C4: METHODS["c4"]}
SHORT = {NONE: "none", ZERO: "zero", UNIGRAM: "log-\nunigram"}
# Minimum span of a panel's axis in BLEU or chrF, as in the paper.
LEAST_SPAN = 0.5
# Differences of scores below this say nothing: such a panel starts at 0 and ends here.
MEANINGLESS = 1.0
ENDS = ((min, -1), (max, 1))


def panels_of(number: int) -> tuple[Figure, list[Axes]]:
    """A sheet with that many panels, three per row, unused places removed."""
    columns = min(COLUMNS, number)
    rows = math.ceil(number / columns)
    figure = sheet(0.4 + 2.5 * rows, WIDTHS[columns])
    return figure, _without_unused(figure.subplots(rows, columns, squeeze=False).ravel(), number)


def panels_over_strip(number: int, heights: tuple[float, ...]) -> tuple[Figure, list[list[Axes]], Axes]:
    """A sheet as of `panels_of` with one legend strip below; each place has a panel per height, below each other.

    heights: in inches. Panels of one height share the y axis. Returns the figure, the panels of each height, the strip.
    """
    columns = min(COLUMNS, number)
    rows = math.ceil(number / columns)
    figure = sheet(0.75 + sum(heights) * rows, WIDTHS[columns])
    grid, strip = panels_over_legend(figure, rows * len(heights), columns, height_ratios=heights * rows)
    kinds = [_without_unused(grid[kind :: len(heights)].ravel(), number) for kind in range(len(heights))]
    for first, *others in kinds:
        for axes in others:
            axes.sharey(first)
    return figure, kinds, strip


def _without_unused(places: np.ndarray, number: int) -> list[Axes]:
    for axes in places[number:]:
        axes.set_axis_off()
    return list(places[:number])


def title_of(definition: Definition, experiment: str) -> str:
    """An experiment's actual corpus, and below it the paper's if it differs."""
    title = definition.corpus_title(experiment)
    published = definition.title_of(experiment)
    return title if title == published else f"{title}\nin place of {published}"


def paper_experiments(definition: Definition) -> list[str]:
    """The scale's experiments on the paper's six data sets, without WMT14."""
    return [experiment for experiment in definition.settings if experiment != WMT14]


def draw_points(
    axes: Axes, methods: list[Method], values: Callable[[Method], dict[int, float]], unit: str, text: str
) -> list[int]:
    """Draw a point per method, the mean over seeds with standard error; returns the number of seeds of each.

    text: name of the text behind the start from other unigrams. The paper's axes do not start at 0, so that differences
    are visible; hence points with numbers instead of bars. Scores are never negative, and neither are their axes.
    """
    found = [(method, of) for method in methods if (of := values(method))]
    means = [mean_of(of.values()) for _, of in found]
    errors = [standard_error(of.values()) or 0.0 for _, of in found]
    names = SHORT | {C4: f"{SHORT[UNIGRAM]},\n{text}"}
    for place, ((method, of), mean, error) in enumerate(zip(found, means, errors, strict=True)):
        if not math.isfinite(mean):
            named = mean_text(of, ".2f").replace(" (", "\n(")
            axes.text(place, 0.5, named, transform=axes.get_xaxis_transform(), ha="center", va="center", fontsize=9)
            continue
        look = LOOKS[method.name] | {"linestyle": "none"}
        axes.errorbar(place, mean, error or None, capsize=4, linewidth=1.4, markersize=8, **look)
        axes.annotate(
            number_text(mean, ".2f"), (place, mean), (9, 0), textcoords="offset points", va="center", fontsize=9
        )
    drawn = [(mean, error) for mean, error in zip(means, errors, strict=True) if math.isfinite(mean)]
    low, high = (pick((mean + sign * error for mean, error in drawn), default=0.0) for pick, sign in ENDS)
    span = max(LEAST_SPAN, 1.5 * (high - low))
    floor = max(0.0, (low + high - span) / 2)
    if high < MEANINGLESS:
        floor, span = 0.0, MEANINGLESS
        note = f"below {MEANINGLESS:g} {unit}"
        axes.text(0.5, 0.98, note, transform=axes.transAxes, ha="center", va="top", color="#777777")
    # Below 0 there is no tick, only room for the point.
    axes.set_ylim(floor or -0.08 * span, floor + span)
    axes.set_xticks(range(len(found)), [names[method.name] for method, _ in found])
    axes.set_xlim(-0.5, len(found) - 0.3)
    axes.yaxis.set_major_locator(MaxNLocator(5, min_n_ticks=3))
    axes.set_ylabel(unit if axes.get_subplotspec().is_first_col() else None)
    axes.grid(False, axis="x")
    return [len(of) for _, of in found]


def points_note(seeds: list[int]) -> str:
    """Caption sentences on points and error bars."""
    over = over_seeds(seeds)
    spread = f"Mean and standard error over {over}" if over else "One seed"
    return (
        f"Points: initialisation of the output bias. {spread}. Each panel has its own scale, which spans at least "
        f"{LEAST_SPAN} and does not start at 0 unless all values are low."
    )


def in_place_of_c4(definition: Definition, experiments: list[str]) -> str:
    """Caption sentence for a scale at which the other text is not C4's."""
    texts = dict.fromkeys(unigram_text(definition, experiment) for experiment in experiments)
    texts.pop(PUBLISHED_TEXT, None)
    return f" C4's English text is replaced by {' and '.join(texts)}." if texts else ""


def training_pairs(definition: Definition, methods: list[Method], results: Results, experiments: list[str]) -> str:
    """Caption sentence on the size of each experiment's training text; experiments that were not run are left out."""
    sizes = []
    for experiment in experiments:
        runs = (first_run(results, method.within(experiment)) for method in methods)
        arrays = next((arrays for arrays in runs if arrays is not None), None)
        if arrays is not None:
            sizes.append(f"{definition.corpus_title(experiment)} {translation_metrics.training_pairs(arrays):,}")
    return f" Training pairs: {', '.join(sizes)}." if sizes else ""
