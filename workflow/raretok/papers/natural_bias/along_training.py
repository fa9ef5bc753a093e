"""Panels of natural_bias along training, one per data set: divergences, validation BLEU, norm of the bias."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from raretok.papers.natural_bias.bias_starts import NONE, UNIGRAM, ZERO
from raretok.papers.natural_bias.data_set_panels import LOOKS, measured_in, panels_of, paper_experiments, title_of
from raretok.reporting import translation_metrics
from raretok.reporting.definition import Definition, Method
from raretok.reporting.figures.language_panels import draw_legend, stacked
from raretok.reporting.figures.panels import mean_and_band
from raretok.reporting.figures.shown import BAND, Drawn, means_note
from raretok.reporting.results import Results

# Reference distributions, in the colours of the nearest starts: log-unigram and zero; gold tokens have none.
REFERENCES = {"unigram": LOOKS[UNIGRAM], "uniform": LOOKS[ZERO], "empirical": LOOKS[NONE]}
# On a logarithmic axis, BLEU of 0 is drawn at this value.
LEAST_BLEU = 0.1
# Number of marked points per curve.
MARKS = 8


def divergences(definition: Definition, method: Method, results: Results) -> Drawn:
    """Divergence of one method's model from each reference by step, on a logarithmic axis."""
    experiments = measured_in(
        list(definition.settings),
        [method],
        lambda one: stacked(results.seeds_with_arrays(one), "divergence.steps") is not None,
    )
    figure, panels, strip = panels_of(len(experiments), over_legend=True)
    seeds = []
    for axes, experiment in zip(panels, experiments, strict=False):
        axes.set_title(title_of(definition, experiment), loc="left")
        runs = results.seeds_with_arrays(method.within(experiment))
        steps = stacked(runs, "divergence.steps")
        for name, look in REFERENCES.items():
            mean_and_band(axes, steps[0], stacked(runs, f"divergence.{name}"), f"from {name}", look, markersize=4.5)
        # Shows step 0 too.
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set(xlabel="training step (log scale)", ylabel="divergence (nats)", xlim=(-0.15, None), ylim=(0, None))
        seeds.append(len(runs))
    return _with_legend(
        definition,
        experiments,
        figure,
        panels,
        strip,
        seeds,
        (
            f"{method.label}; mean over positions of the validation text of KL(unigram || model), KL(uniform || model) "
            "and, for the empirical distribution, -log p(gold token). The direction of the divergence is our choice."
        ),
    )


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
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
        axes.tick_params(axis="y", which="minor", labelsize=9)
        axes.set(xlabel="training step", ylabel="validation BLEU (log scale)", xlim=(0, None))

    text = f"BLEU of the validation text by sacrebleu; values below {LEAST_BLEU:g} are drawn at {LEAST_BLEU:g}."
    return _starts(definition, paper_experiments(definition), methods, results, measured, finish, text)


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

    return _starts(definition, list(definition.settings), methods, results, measured, finish, text)


def _starts(
    definition: Definition,
    experiments: list[str],
    methods: list[Method],
    results: Results,
    measured: Callable[[list], tuple[np.ndarray, np.ndarray] | None],
    finish: Callable[[Axes], None],
    text: str,
) -> Drawn:
    """One panel per experiment that was run, with one curve per start.

    measured: steps (k,) and values (seeds, k) of a method's runs, None without runs. finish: called last on each panel
    with a curve.
    """
    experiments = measured_in(experiments, methods, lambda one: measured(results.seeds_with_arrays(one)) is not None)
    figure, panels, strip = panels_of(len(experiments), over_legend=True)
    seeds = []
    for axes, experiment in zip(panels, experiments, strict=False):
        axes.set_title(title_of(definition, experiment), loc="left")
        for method in methods:
            found = measured(results.seeds_with_arrays(method.within(experiment)))
            if found is None:
                continue
            steps, values = found
            look = LOOKS[method.name] | {"markevery": max(1, len(steps) // MARKS)}
            mean_and_band(axes, steps, values, method.label, look, markersize=5)
            seeds.append(len(values))
        finish(axes)
    return _with_legend(definition, experiments, figure, panels, strip, seeds, text)


def _with_legend(
    definition: Definition,
    experiments: list[str],
    figure: Figure,
    panels: list[Axes],
    strip: Axes,
    seeds: list[int],
    text: str,
) -> Drawn:
    """The figure with one legend for all panels, and its caption."""
    handles = {line.get_label(): line for axes in panels for line in axes.get_legend_handles_labels()[0]}
    for axes in panels[1:]:
        axes.set_ylabel(axes.get_ylabel() if axes.get_subplotspec().is_first_col() else None)
    draw_legend(strip, list(handles.values()))
    return figure, f"{text} {means_note(seeds, BAND)}"
