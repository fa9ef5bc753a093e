"""Panels of natural_bias along training, one per data set: divergences, validation BLEU, norm of the bias."""

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from raretok.papers.natural_bias.bias_starts import NONE, UNIGRAM, ZERO
from raretok.papers.natural_bias.data_set_panels import LOOKS, panels_of, paper_experiments, title_of
from raretok.reporting import translation_metrics
from raretok.reporting.definition import Definition, Method
from raretok.reporting.figures.language_panels import draw_legend, stacked
from raretok.reporting.figures.panels import mean_and_band
from raretok.reporting.figures.shown import BAND, Drawn, NotRun, means_note
from raretok.reporting.results import Results

# Reference distributions, in the colours of the nearest starts: log-unigram and zero; gold tokens have none.
REFERENCES = {"unigram": LOOKS[UNIGRAM], "uniform": LOOKS[ZERO], "empirical": LOOKS[NONE]}
# On a logarithmic axis, BLEU of 0 is drawn at this value.
LEAST_BLEU = 0.1
# Number of marked points per curve.
MARKS = 8

Curve = tuple[str, dict, np.ndarray, np.ndarray]  # label, look, steps (k,), values (seeds, k)


def divergences(definition: Definition, method: Method, results: Results) -> Drawn:
    """Divergence of one method's model from each reference by step, on a logarithmic axis."""

    def curves(experiment: str) -> list[Curve]:
        runs = results.seeds_with_arrays(method.within(experiment))
        steps = stacked(runs, "divergence.steps")
        if steps is None:
            return []
        values = {name: stacked(runs, f"divergence.{name}") for name in REFERENCES}
        return [
            (f"from {name}", look | {"markersize": 4.5}, steps[0], values[name]) for name, look in REFERENCES.items()
        ]

    def finish(axes: Axes) -> None:
        # Shows step 0 too.
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set(xlabel="training step (log scale)", ylabel="divergence (nats)", xlim=(-0.15, None), ylim=(0, None))

    text = (
        f"{method.label}; mean over positions of the validation text of KL(unigram || model), KL(uniform || model) "
        "and, for the empirical distribution, -log p(gold token). The direction of the divergence is our choice."
    )
    return _along_training(definition, list(definition.settings), curves, finish, text)


def validation_curves(definition: Definition, methods: list[Method], results: Results) -> Drawn:
    """Validation BLEU of each start by step."""

    def measured(runs):
        curves = [found for _, arrays in runs if (found := translation_metrics.curve(arrays)) is not None]
        if not curves:
            return None
        length = min(len(steps) for steps, _ in curves)
        return curves[0][0][:length], np.stack([np.maximum(values[:length], LEAST_BLEU) for _, values in curves])

    def finish(axes):
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(axis="y", which="minor", labelsize=9)
        axes.set(xlabel="training step", ylabel="validation BLEU (log scale)", xlim=(0, None))

    text = f"BLEU of the validation text by sacrebleu; values below {LEAST_BLEU:g} are drawn at {LEAST_BLEU:g}."
    curves = partial(_of_starts, methods, results, measured)
    return _along_training(definition, paper_experiments(definition), curves, finish, text)


def bias_curves(
    definition: Definition, methods: list[Method], results: Results, key: str, unit: str, text: str
) -> Drawn:
    """An observation of the output bias (`output_bias.<key>`) by step."""

    def measured(runs):
        steps, values = stacked(runs, "output_bias.steps"), stacked(runs, f"output_bias.{key}")
        return None if steps is None or values is None else (steps[0], values)

    def finish(axes):
        axes.set(xlabel="training step", ylabel=unit, xlim=(0, None))
        axes.margins(y=0.1)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))

    curves = partial(_of_starts, methods, results, measured)
    return _along_training(definition, list(definition.settings), curves, finish, text)


def _of_starts(
    methods: list[Method],
    results: Results,
    measured: Callable[[list], tuple[np.ndarray, np.ndarray] | None],
    experiment: str,
) -> list[Curve]:
    """One curve per start; `measured`: steps (k,) and values (seeds, k) of a method's runs, None without runs."""
    curves = []
    for method in methods:
        found = measured(results.seeds_with_arrays(method.within(experiment)))
        if found is not None:
            look = LOOKS[method.name] | {"markevery": max(1, len(found[0]) // MARKS), "markersize": 5}
            curves.append((method.label, look, *found))
    return curves


def _along_training(
    definition: Definition,
    experiments: list[str],
    curves: Callable[[str], list[Curve]],
    finish: Callable[[Axes], None],
    text: str,
) -> Drawn:
    """One panel per experiment that has `curves`, with one legend for all; `finish` is called last on each panel."""
    drawn = {experiment: found for experiment in experiments if (found := curves(experiment))}
    if not drawn:
        raise NotRun
    figure, panels, strip = panels_of(len(drawn), over_legend=True)
    for axes, (experiment, found) in zip(panels, drawn.items(), strict=True):
        axes.set_title(title_of(definition, experiment), loc="left")
        for label, look, steps, values in found:
            mean_and_band(axes, steps, values, label, look)
        finish(axes)
    handles = {line.get_label(): line for axes in panels for line in axes.get_legend_handles_labels()[0]}
    for axes in panels[1:]:
        axes.set_ylabel(axes.get_ylabel() if axes.get_subplotspec().is_first_col() else None)
    draw_legend(strip, list(handles.values()))
    seeds = [len(values) for found in drawn.values() for *_, values in found]
    return figure, f"{text} {means_note(seeds, BAND)}"
