"""Panels by data set: bars of the starts of the output bias side by side, curves along training."""

import math
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raretok.papers.natural_bias.bias_starts import C4, NONE, UNIGRAM, WMT14, ZERO, standard_error
from raretok.reporting import translation_metrics
from raretok.reporting.corpus_names import PUBLISHED_TEXT, corpus_title, data_set, unigram_text
from raretok.reporting.definition import Definition, Method
from raretok.reporting.figures.language_panels import panels_over_legend
from raretok.reporting.figures.shown import first_run, over_seeds
from raretok.reporting.figures.style import BLACK, BLUE, GREEN, ORANGE, not_run, sheet
from raretok.reporting.results import Results

COLUMNS = 3
# A start keeps its colour in all figures, and differs in print by hatch, line and marker.
LOOKS = {
    NONE: {"color": BLACK, "linestyle": ":", "marker": "o"},
    ZERO: {"color": BLUE, "linestyle": "--", "marker": "s"},
    UNIGRAM: {"color": ORANGE, "linestyle": "-", "marker": "^"},
    C4: {"color": GREEN, "linestyle": "-.", "marker": "D"},
}
HATCHES = {NONE: "", ZERO: "////", UNIGRAM: "", C4: "...."}
FILLS = {NONE: "#BBBBBB", ZERO: "#FFFFFF", UNIGRAM: ORANGE, C4: "#FFFFFF"}
SHORT = {NONE: "none", ZERO: "zero", UNIGRAM: "log-\nunigram"}
# At least so much of BLEU or chrF is between the ends of a panel's axis, as in the paper.
LEAST_SPAN = 0.5


def panels_of(number: int, height: float = 3.3, **share) -> tuple[Figure, list[Axes]]:
    """A sheet of as many panels, three a row; the places that are left over are empty."""
    columns = min(COLUMNS, max(1, number))
    rows = math.ceil(max(1, number) / columns)
    figure = sheet({1: 7.5, 2: 10}.get(columns, 13), 1.3 + height * rows)
    return figure, _first(figure.subplots(rows, columns, squeeze=False, **share), number)


def panels_with_strip(number: int) -> tuple[Figure, list[Axes], Axes]:
    """The same over a strip for one legend (`language.draw_legend`)."""
    columns = min(COLUMNS, max(1, number))
    rows = math.ceil(max(1, number) / columns)
    figure = sheet({1: 8.5, 2: 10}.get(columns, 13), 1.75 + 3.3 * rows)
    grid, strip = panels_over_legend(figure, rows, columns)
    return figure, _first(grid, number), strip


def _first(grid: np.ndarray, number: int) -> list[Axes]:
    """The first panels of a grid; the others are left empty."""
    for axes in grid.ravel()[max(1, number) :]:
        axes.set_axis_off()
    return list(grid.ravel()[: max(1, number)])


def title_of(definition: Definition, experiment: str, more: str = "") -> str:
    """The corpus that an experiment really has, and below it the paper's where that is another."""
    return data_set(definition.corpus(experiment), experiment, more, "\n")


def six(definition: Definition) -> list[str]:
    """The experiments of figures on all data sets but WMT14, those that the scale has."""
    return [experiment for experiment in definition.settings if experiment != WMT14]


def draw_bars(
    axes: Axes, methods: list[Method], values: Callable[[Method], dict[int, float]], unit: str, text: str
) -> list[int]:
    """A bar for each method: mean of its values over seeds, standard error; returns how many seeds each bar is of.

    text: what the bias of the start from other text's unigrams is of.

    The axis does not begin at 0, as in the paper, where differences would not be seen: numbers stand on the bars.
    """
    found = [(method, list(values(method).values())) for method in methods]
    means = {method.name: float(np.mean(of)) for method, of in found if of}
    if not means:
        not_run(axes, "\n".join(method.label for method in methods))
        return []
    errors = {method.name: standard_error(of) or 0.0 for method, of in found if of}
    low = min(means[name] - errors[name] for name in means)
    high = max(means[name] + errors[name] for name in means)
    span = max(LEAST_SPAN, 1.9 * (high - low))
    bottom = max(0.0, (low + high) / 2 - 0.55 * span)
    axes.set_ylim(bottom, bottom + 1.12 * span)
    for place, (method, of) in enumerate(found):
        if not of:
            axes.text(place, bottom + 0.06 * span, "not run", ha="center", color="#555555", rotation=90, va="bottom")
            continue
        mean, error = means[method.name], errors[method.name]
        look = {"facecolor": FILLS[method.name], "edgecolor": LOOKS[method.name]["color"]}
        axes.bar(place, mean - bottom, 0.62, bottom=bottom, hatch=HATCHES[method.name], linewidth=1.2, **look)
        if error:
            axes.errorbar(place, mean, error, color="#222222", capsize=4, linewidth=1.4)
        axes.annotate(f"{mean:.2f}", (place, mean + error), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    names = SHORT | {C4: f"{SHORT[UNIGRAM]},\n{text}"}
    axes.set_xticks(range(len(methods)), [names[method.name] for method in methods])
    axes.set_xlim(-0.6, len(methods) - 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(5, min_n_ticks=3))
    axes.set_ylabel(unit if axes.get_subplotspec().is_first_col() else None)
    axes.grid(False, axis="x")
    return [len(of) for _, of in found if of]


def bars_note(seeds: list[int]) -> str:
    """What bars and the lines on them are, and that the axes are cut."""
    over = over_seeds(seeds)
    spread = f"Mean and standard error over {over}" if over else "One seed"
    cut = f"the vertical axes do not begin at 0, and span at least {LEAST_SPAN}"
    return f"Bars: where the output bias starts. {spread}; {cut}."


def in_place_of_c4(definition: Definition, experiments: list[str]) -> str:
    """A sentence for a scale at which the other text is not C4's."""
    texts = dict.fromkeys(unigram_text(definition.corpus(experiment)) for experiment in experiments)
    texts.pop(PUBLISHED_TEXT, None)
    return f" In the place of C4's English text stands another, {' and '.join(texts)}." if texts else ""


def in_place_of(definition: Definition, experiments: list[str]) -> str:
    """A sentence for a scale whose corpora are others than the paper's."""
    others = [experiment for experiment in experiments if definition.corpus(experiment) != experiment]
    return " Second line of a title: the paper's data set." if others else ""


def training_pairs(definition: Definition, methods: list[Method], results: Results, experiments: list[str]) -> str:
    """A sentence with the size of each experiment's training text; nothing of those that were not run."""
    sizes = []
    for experiment in experiments:
        runs = (first_run(results, method.within(experiment)) for method in methods)
        arrays = next((arrays for arrays in runs if arrays is not None), None)
        if arrays is not None:
            sizes.append(
                f"{corpus_title(definition.corpus(experiment))} {translation_metrics.training_pairs(arrays):,}"
            )
    return f" Pairs of training: {', '.join(sizes)}." if sizes else ""
