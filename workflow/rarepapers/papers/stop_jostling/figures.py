"""The figures of Stop Jostling (Turumtaev 2025): one function each, which returns the figure and its caption.

They read only metrics.csv and arrays.npz. Figures of a single model show the first seed.
"""

from functools import partial

import numpy as np

from rarepapers.metrics.clusters import figure_order, mask
from rarepapers.metrics.neighbours import cosines
from rarepapers.papers.stop_jostling import schematic
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures.language_panels import draw_legend, panels_over_legend
from rarepapers.reporting.figures.panels import draw_mask, draw_plane, language_ticks, mean_and_band
from rarepapers.reporting.figures.shown import BAND, Drawn, NotRun, first_run, not_drawn_note, seeds_note
from rarepapers.reporting.figures.style import HIGH, LOW, figure_text, look_of, not_run, sheet, symbol_ticks
from rarepapers.reporting.results import Printed, Results
from rarepapers.reporting.statistics.over_seeds import not_finite

PPL_LIMIT = 15  # as in the authors' notebook
LEAST_DRAWN = 1e-12  # probability below which figure 4 shows no bar


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Schematic drawing of the three kinds of gradient step of an embedding."""
    figure = sheet(3.2)
    schematic.draw(list(figure.subplots(1, 3)))
    return figure, (
        "A training position moves embeddings in three ways. Thick arrows are gradient steps: in 2 and 3 they are "
        "parallel to the hidden state; in 1 the hidden state's own arrow is the effect of the others. Cross-entropy "
        "pushes all non-targets away from the hidden state at every position. Thresholding drops the logits far "
        "below the target's (shaded), so only rivals are pushed. A schematic drawing, the same at every scale."
    )


def figure2(definition: Definition, item: str, results: Results) -> Drawn:
    """Expected frequencies of the characters of both languages."""
    figure = sheet(3.8)
    axes = figure.subplots()
    method = definition.methods_of(item)[0]
    run = first_run(results, method)
    if run is None:
        raise NotRun
    share = definition.settings[method.experiment]["corpus"]["low_resource_probability"]
    order = np.argsort(-run["counts"], kind="stable")
    places = np.arange(len(order))
    ends = []
    # A block becomes the low-resource language with this probability (section 4.1): both versions share the count.
    for shift, part, name, look in (
        (-0.22, 1 - share, "high-resource", {"color": HIGH}),
        (0.22, share, "low-resource", {"color": LOW}),
    ):
        heights = run["counts"][order] * part
        axes.bar(places + shift, heights, 0.44, bottom=0, label=f"{name} ({part:.0%})", **look)
        ends.append(f"{name} {heights[0]:,.1f} to {heights[-1]:,.2f}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="character, sorted by frequency", ylabel="expected frequency in training text (log scale)")
    symbol_ticks(axes, [chr(run["symbols"][k]) for k in order])
    axes.legend(frameon=False, loc="upper right")
    return figure, (
        f"A block of text is in the low-resource language with probability {share:g}. Expected frequencies of the most "
        f"and the least frequent character: {'; '.join(ends)}. The paper prints 150,209.5 to 0.98 and 3,065.5 to 0.02."
    )


def figure3(definition: Definition, item: str, results: Results) -> Drawn:
    """Ratio of Average and Average of Ratio of every low-resource character."""
    figure = sheet(5.6)
    panels = figure.subplots(2, 1, sharex=True)
    methods = definition.methods_of(item)
    ticks = None
    for axes, key, title in zip(
        panels,
        ("gradients.ratio_of_average", "gradients.average_of_ratio"),
        ("Ratio of Average", "Average of Ratio"),
        strict=True,
    ):
        axes.axhline(1, color="#555555", linewidth=1)
        for method in methods:
            look = look_of(method)
            runs = [arrays for _, arrays in results.seeds_with_arrays(method) if key in arrays]
            if not runs:
                continue
            order = np.argsort(-runs[0]["counts"], kind="stable")
            ticks = [chr(runs[0]["symbols"][k]) for k in order]
            values = np.stack([arrays[key][len(order) :][order] for arrays in runs])
            mean_and_band(axes, np.arange(len(order)), values, method.label, look, markersize=4)
        axes.set(ylabel="aligned / marginalising\ngradient norm")
        axes.grid(False, axis="x")
        axes.set_title(title, loc="left")
        axes.set_ylim(bottom=0)
    if not ticks:
        raise NotRun
    panels[0].legend(frameon=False, loc="upper right")
    panels[1].set_xlabel("low-resource character, sorted by frequency")
    symbol_ticks(panels[1], ticks)
    return figure, (
        "Below 1, marginalising gradients from positions with other targets outweigh the aligned gradients. "
        "In Average of Ratio, steps with zero marginal gradient use its mean norm (the paper's rule, a lower bound). "
        + seeds_note(results, methods, "gradients.ratio_of_average", "gradients.average_of_ratio")
    )


def figure4(definition: Definition, item: str, results: Results) -> Drawn:
    """The next-token distribution at one position, baseline and proposed."""
    figure = sheet(3.8)
    axes = figure.subplots()
    methods = definition.methods_of(item)
    runs = [first_run(results, method) for method in methods]
    if None in runs:
        raise NotRun
    position, rule = _example(*runs)
    symbols = [chr(point) for point in runs[0]["symbols"]]
    target = int(runs[0]["best.example_targets.HR"][position])
    distributions = [run["best.examples.HR"][position][: len(symbols)] for run in runs]
    distributions = [part / part.sum() for part in distributions]
    order = np.argsort(-distributions[0], kind="stable")
    places = np.arange(len(order))
    for shift, method, values in zip((-0.22, 0.22), methods, distributions, strict=True):
        axes.bar(places + shift, values[order], 0.44, label=method.label, color=look_of(method)["color"])
    axes.set_yscale("log")
    lowest = max(min(values[values > 0].min() for values in distributions) / 2, LEAST_DRAWN)
    axes.set_ylim(lowest, 3)
    cut = any((values < lowest).any() for values in distributions)
    place = int(np.flatnonzero(order == target)[0])
    highest = max(values[target] for values in distributions)
    numbers = ", ".join(
        f"{values[target]:.2f} by {method.label}" for method, values in zip(methods, distributions, strict=True)
    )
    said = f"target {figure_text(symbols[target])}: {numbers}"
    axes.annotate(said, (place, highest), (0, 6), textcoords="offset points", ha="left")
    symbol_ticks(axes, [symbols[k] for k in order])
    axes.set(xlabel="character, sorted by the baseline's probability", ylabel="probability (log scale)")
    axes.legend(frameon=False, loc="upper right")
    return figure, (
        f"Stored validation position {position + 1} of {len(runs[0]['best.example_targets.HR'])}: {rule}. "
        "Renormalised over the high-resource language's characters, as in the authors' notebook. First seed."
        + (f" Probabilities below {lowest:.0e} have no bar." if cut else "")
    )


def _example(baseline: dict, proposed: dict) -> tuple[int, str]:
    """The position to show, and the rule that selects it, which does not depend on how the plot looks."""
    targets = baseline["best.example_targets.HR"]
    n = len(baseline["symbols"])
    first = [run["best.examples.HR"][:, :n].argmax(1) == targets for run in (baseline, proposed)]
    for hits, rule in (
        (first[0] & first[1], "the first where both models rank the target first"),
        (first[1], "the first where the proposed model ranks the target first (there is none for both)"),
    ):
        if hits.any():
            return int(hits.argmax()), rule
    return 0, "the first one (the proposed model ranks no target first)"


def figure5(definition: Definition, item: str, results: Results) -> Drawn:
    """Expected clusters, and cosine similarities of the embeddings of two models."""
    figure = sheet(3.3)
    panels = figure.subplots(1, 3)
    methods = definition.methods_of(item)
    runs = [first_run(results, method) for method in methods]
    known = next((run for run in runs if run is not None), None)
    if known is None:
        raise NotRun
    symbols = [chr(point) for point in known["symbols"]]
    order = figure_order(symbols)
    draw_mask(panels[0], mask(symbols)[np.ix_(order, order)])
    matrices = [None if run is None else cosines(run["best.embeddings"])[np.ix_(order, order)] for run in runs]
    drawn = None
    for axes, method, matrix in zip(panels[1:], methods, matrices, strict=True):
        axes.set_title(method.label, loc="left")
        if matrix is None:
            not_run(axes, method.label)
            continue
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
        language_ticks(axes, len(symbols))
        drawn = axes
    # Inside the axes' place, so as high as the matrix.
    place = drawn.inset_axes([1.04, 0, 0.05, 1])
    figure.colorbar(image, cax=place, ticks=[-1, -0.5, 0, 0.5, 1], label="cosine similarity")
    return figure, (
        "Characters are sorted by language, by NA (no letters), UC (upper case), LC (lower case), and alphabetically. "
        "ID: same character; T: its version in the other language; C: its other case; T+C: both. "
        "HR, LR: high-resource and low-resource language. The two similarity panels share one scale. First seed."
    )


def figure6(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings in the plane of their first two principal components."""
    figure = sheet(7.2)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    methods = definition.methods_of(item)
    low, high, drawn = np.full(2, np.inf), np.full(2, -np.inf), None
    for axes, method in zip(panels, methods, strict=True):
        axes.set_title(method.label, loc="left")
        run = first_run(results, method)
        if run is None:
            not_run(axes, method.label)
            continue
        draw_plane(axes, run["best.pca"], run["counts"])
        axes.set(xlabel="first principal component" if axes is panels[1] else None, ylabel="second principal component")
        axes.set_aspect("equal")
        low, high = np.minimum(low, run["best.pca"].min(0)), np.maximum(high, run["best.pca"].max(0))
        drawn = axes
    if drawn is None:
        raise NotRun
    # Equal limits and aspect in both panels, so that distances are comparable.
    margin = 0.05 * (high - low).max()
    drawn.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    panels[1].legend(*drawn.get_legend_handles_labels(), loc="lower left", frameon=False)
    return figure, (
        "Crosses: the five rarest characters of each language. Both panels have the same limits. First seed."
    )


def figureS1(definition: Definition, item: str, results: Results) -> Drawn:
    """Accuracy of low-resource tokens in every seed, and against how near the two versions of a character are."""
    figure = sheet(3.8)
    (panels,), strip = panels_over_legend(figure, 1, 2, sharey=True, width_ratios=(3, 2))
    by_seed, by_cosine = panels
    methods = definition.methods_of(item)
    handles, seeds = [], set()
    for method, shift in zip(methods, np.linspace(-0.2, 0.2, len(methods)), strict=True):
        found = results.per_seed(method, "accuracy", "LR")
        cosines = results.per_seed(method, "mask_cosine", "T")
        seeds |= found.keys()
        # Another reading of a row has the row's look, but is hollow.
        look = look_of(method) | {"linestyle": ""} | ({"markerfacecolor": "white"} if method.reading else {})
        handles += by_seed.plot([seed + shift for seed in found], list(found.values()), label=method.label, **look)
        by_cosine.plot([cosines[seed] for seed in found], list(found.values()), **look)
    if not seeds:
        raise NotRun
    half = definition.tables["readings-S1"]["decides"]["reach"]
    for axes in panels:
        axes.axhline(half, color="#555555", linewidth=0.8, linestyle="--")
    note = {"transform": by_seed.get_yaxis_transform(), "ha": "right", "va": "top"}
    by_seed.text(0.995, half, "halfway between the printed numbers", **note)
    for method in methods:
        if not method.reading and (printed := _printed(definition, results, method, "Accuracy", "LR")):
            for axes in panels:
                axes.axhline(printed.value, color=look_of(method)["color"], linewidth=1, linestyle=":")
            look = {"color": look_of(method)["color"], "transform": by_cosine.get_yaxis_transform()}
            by_cosine.text(0.995, printed.value, f"printed: {printed.text}", **note | look)
    by_seed.set(xlabel="seed", ylabel="accuracy of low-resource tokens", xticks=sorted(seeds))
    by_seed.grid(visible=False, axis="x")
    by_cosine.set(xlabel="mean cosine of a character's two versions")
    draw_legend(strip, handles)
    return figure, (
        "One point per run, at margin 1. The paper prints one seed (dotted lines), lower without separated embeddings "
        "than with them. If the method made the difference, its points would lie above the dashed line in most seeds "
        "and the others' below. Right: the same runs, by the cosine of a character's embeddings in the two languages."
        f"{_about_readings(results, methods)}"
        f"{not_drawn_note({method.label: results.per_seed(method, 'accuracy', 'LR') for method in methods})}"
    )


def _about_readings(results: Results, methods: list[Method]) -> str:
    """Caption sentences on the listing's reading of separated embeddings, and on its seeds if they are fewer."""
    numbers = {method: len(results.per_seed(method, "accuracy", "LR")) for method in methods}
    counts = [number for method, number in numbers.items() if method.reading == "listing"]
    if not any(counts):
        return ""
    more = "; only the other methods were extended to more seeds" if max(counts) < max(numbers.values()) else ""
    return (
        " [listing]: separation as in the paper's printed code, where embeddings without a gradient still move. With "
        f"tied embeddings its update is the one without separation{more}."
    )


def _printed(definition: Definition, results: Results, method: Method, column: str, group: str) -> Printed | None:
    """The paper's number of a method, from the first table that prints it; None if there is none."""
    keys = ((table, method.printed_label, column, group) for table in definition.tables)
    return next((results.printed[key] for key in keys if key in results.printed), None)


def _temperature(definition: Definition, item: str, results: Results, group: str) -> Drawn:
    figure = sheet(4.2)
    axes = figure.subplots()
    methods = definition.methods_of(item)
    minima = []
    for method in methods:
        look = look_of(method)
        runs = dict(results.seeds_with_arrays(method))
        if not runs:
            continue
        of_seed = {seed: arrays[f"best.perplexity.{group}"] for seed, arrays in runs.items()}
        diverged = not_finite({seed: 0.0 if np.isfinite(of).any() else of[0] for seed, of in of_seed.items()})
        if diverged:
            axes.plot([], [], label=f"{method.label}, {diverged}", **look)
            continue
        line = look | {"marker": ""}
        temperatures, curves = next(iter(runs.values()))["temperatures"], np.array(list(of_seed.values()))
        # As in the tables: means of each seed's lowest perplexity and of its T.
        lowest, place = np.nanmin(curves, 1).mean(), temperatures[np.nanargmin(curves, 1)].mean()
        # Near T = 0 seeds differ by orders of magnitude, and the band would cross the figure.
        mean = curves.mean(0)
        curves[:, mean > 100 * np.nanmin(mean)] = np.nan
        mean_and_band(axes, temperatures, curves, None, line)
        minima.append(lowest)
        axes.plot(
            place,
            lowest,
            color=look["color"],
            marker=look["marker"],
            markersize=9,
            markeredgecolor="white",
            zorder=5,
        )
        numbers = f"{method.label}, {len(curves)} seed{'s' * (len(curves) > 1)}\n{lowest:.2f} at {place:.2f}"
        printed = [_printed(definition, results, method, column, group) for column in ("PPL_best", "T_best")]
        if all(printed):
            numbers += f" (paper: {printed[0].text} at {printed[1].text})"
        axes.plot([], [], label=numbers, **look)
    if not minima:
        raise NotRun
    # The authors' limit, unless it would hide a minimum.
    limit = max(PPL_LIMIT, 1.25 * max(minima))
    axes.set(xlim=(0, 2), ylim=(0.85 * min(minima), limit))
    axes.set(xlabel="temperature T", ylabel="perplexity of softmax(z / T)")
    # Beside the axes: at the top of the figure it would lie on the title.
    beside = {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "borderpad": 0.9}
    axes.legend(title="lowest perplexity and its T", alignment="left", frameon=False, **beside)
    return (
        figure,
        f"Markers: mean over seeds of the lowest perplexity and its T. Perplexities above {limit:.0f} are cut off. "
        f"Where there are several seeds, {BAND}.",
    )


figure7, figure8 = (partial(_temperature, group=group) for group in ("HR", "LR"))
