"""Panels of natural_bias along training, one per data set: divergences, validation BLEU, change of the bias."""

import numpy as np
from matplotlib.axes import Axes

from rarepapers.papers.natural_bias.bias_starts import NONE, UNIGRAM, ZERO
from rarepapers.papers.natural_bias.claims import EARLY, PRINTED_STEPS, STAYS
from rarepapers.papers.natural_bias.data_set_panels import LOOKS, panels_over_strip, paper_experiments, title_of
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures.language_panels import draw_legend, stacked
from rarepapers.reporting.figures.panels import mean_and_band
from rarepapers.reporting.figures.shown import BAND, Drawn, NotRun, Runs, gaps_note, means_note
from rarepapers.reporting.results import Results

# Reference distributions, in the colours of the nearest starts: log-unigram and zero; gold tokens have none.
REFERENCES = {"unigram": LOOKS[UNIGRAM], "uniform": LOOKS[ZERO], "empirical": LOOKS[NONE]}
# Number of marked points per curve, and the least distance between them, which leaves room for the other starts'.
MARKS, APART = 8, 3
# Looks of a part of an axis that a claim refers to, and of its end.
SHADE, LIMIT = "#EDEDED", "#999999"

Curves = dict[int, tuple[np.ndarray, np.ndarray]]  # steps and values, by seed


def divergences(definition: Definition, method: Method, results: Results) -> Drawn:
    """Divergence of one method's model from each reference by step, on a logarithmic axis."""
    runs = {experiment: results.seeds_with_arrays(method.within(experiment)) for experiment in definition.settings}
    drawn = {one: of for one, of in runs.items() if stacked(of, "divergence.steps") is not None}
    figure, (panels,), strip = _panels(definition, list(drawn), (2.5,))
    for axes, of in zip(panels, drawn.values(), strict=True):
        for name, look in REFERENCES.items():
            steps, values = stacked(of, "divergence.steps")[0], stacked(of, f"divergence.{name}")
            mean_and_band(axes, steps, values, f"from {name}", look | {"markersize": 4.5})
        # Shows step 0 too.
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set(xlabel="training step (log scale)", xlim=(-0.15, None), ylim=(0, None))
    _label(panels, "divergence (nats)")
    _draw_legend(strip, panels)
    return figure, (
        f"{method.label}; mean over positions of the validation text of KL(unigram || model), KL(uniform || model) "
        "and, for the empirical distribution, -log p(gold token). The direction of the divergence is our choice. "
        f"{means_note(map(len, drawn.values()), BAND)}"
        f"{gaps_note(_titled(definition, drawn), *(f'divergence.{name}' for name in REFERENCES))}"
    )


def validation_curves(definition: Definition, methods: list[Method], results: Results) -> Drawn:
    """Validation BLEU of each start by step, and below it the difference from the zero start, paired by seed."""
    drawn = {}
    for experiment in paper_experiments(definition):
        found = {method: _validation(results.seeds_with_arrays(method.within(experiment))) for method in methods}
        if any(found.values()):
            drawn[experiment] = {method: curves for method, curves in found.items() if curves}
    figure, (levels, differences), strip = _panels(definition, list(drawn), (2.2, 1.6))
    for above, below, (experiment, found) in zip(levels, differences, drawn.items(), strict=True):
        until = translation_metrics.scaled(definition, experiment, EARLY, PRINTED_STEPS)
        for axes in (above, below):
            # A line: a shade would look like the band of a method.
            axes.axvline(until, color=LIMIT, linewidth=1, zorder=0, label="end of the first fifth of training")
        below.axhline(0, linewidth=1.8, color=LOOKS[ZERO]["color"])
        base = next((curves for method, curves in found.items() if method.name == ZERO), {})
        for method, curves in found.items():
            steps, values = _stacked(curves)
            look = _look(method, len(steps))
            mean_and_band(above, steps, values, method.label, look)
            common = sorted(curves.keys() & base.keys())
            if common and method.name != ZERO:
                (steps, ours), (_, theirs) = (_stacked({seed: of[seed] for seed in common}) for of in (curves, base))
                length = min(ours.shape[1], theirs.shape[1])
                mean_and_band(below, steps[:length], ours[:, :length] - theirs[:, :length], None, look)
        above.set(xlim=(0, None), ylim=(0, None))
        above.tick_params(labelbottom=False)
        below.set(xlim=above.get_xlim(), xlabel="training step")
    _label(levels, "validation BLEU")
    _label(differences, "minus zero bias")
    _draw_legend(strip, levels)
    counts = [len(curves) for found in drawn.values() for curves in found.values()]
    runs = _runs(definition, {experiment: list(found) for experiment, found in drawn.items()}, results)
    return figure, (
        "BLEU of the validation text by sacrebleu; below it, the difference from zero bias with the same seed. The "
        "paper draws BLEU alone, on a logarithmic axis. The claim is about the first fifth of training, left of the "
        f'vertical line (our reading of "early"). {means_note(counts, BAND)}'
        f"{gaps_note(runs, f'curve.{translation_metrics.BLEU}.values')}"
    )


def bias_changes(
    definition: Definition, methods: list[Method], results: Results, key: str, unit: str, largest: str, text: str
) -> Drawn:
    """Change since step 0 of an observation of the output bias (`output_bias.<key>`).

    The paper draws the values, between which such changes are too small to see; their starts are in the panels.
    largest: the start whose value the claim takes as 100%.
    """
    drawn = {}
    for experiment in definition.settings:
        for method in methods:
            runs = results.seeds_with_arrays(method.within(experiment))
            steps, values = (stacked(runs, f"output_bias.{name}") for name in ("steps", key))
            if values is not None:
                drawn.setdefault(experiment, {})[method] = steps[0], values
    figure, (panels,), strip = _panels(definition, list(drawn), (2.5,))
    for axes, found in zip(panels, drawn.values(), strict=True):
        starts = {method: float(values[:, 0].mean()) for method, (_, values) in found.items()}
        for most in (STAYS * start for method, start in starts.items() if method.name == largest):
            axes.axhspan(-most, most, color=SHADE, zorder=0, label=f"±{STAYS:.0%} of the larger start")
        for method, (steps, values) in found.items():
            mean_and_band(axes, steps, values - values[:, :1], method.label, _look(method, len(steps)))
        said = ", ".join(f"{value:.{2 if value < 100 else 0}f} ({one.name})" for one, value in starts.items())
        axes.text(0.02, 0.98, f"from {said}", transform=axes.transAxes, va="top", fontsize=9, color="#555555")
        axes.set(xlabel="training step", xlim=(0, None))
        axes.margins(y=0.15)
    _label(panels, unit)
    _draw_legend(strip, panels)
    counts = [len(values) for found in drawn.values() for _, values in found.values()]
    runs = _runs(definition, {experiment: list(found) for experiment, found in drawn.items()}, results)
    return figure, (
        f"Change since step 0 of {text}; in grey, the values at step 0. The paper draws the values, between which such "
        f"changes are too small to see. {means_note(counts, BAND)}{gaps_note(runs, f'output_bias.{key}')}"
    )


def _titled(definition: Definition, drawn: dict) -> dict:
    """The same by data set's title."""
    return {title_of(definition, experiment).replace("\n", " "): found for experiment, found in drawn.items()}


def _runs(definition: Definition, methods: dict[str, list[Method]], results: Results) -> dict[str, Runs]:
    """The runs of each method in each experiment, by their names in captions."""
    return {
        f"{method.label}, {title}": results.seeds_with_arrays(method.within(experiment))
        for (title, found), experiment in zip(_titled(definition, methods).items(), methods, strict=True)
        for method in found
    }


def _panels(definition: Definition, experiments: list[str], heights: tuple[float, ...]) -> tuple:
    """`panels_over_strip` with the data sets as titles; raises NotRun if there are none."""
    if not experiments:
        raise NotRun
    figure, kinds, strip = panels_over_strip(len(experiments), heights)
    for axes, experiment in zip(kinds[0], experiments, strict=True):
        axes.set_title(title_of(definition, experiment), loc="left")
    return figure, kinds, strip


def _label(panels: list[Axes], label: str) -> None:
    for axes in panels:
        axes.set_ylabel(label if axes.get_subplotspec().is_first_col() else None)


def _draw_legend(strip: Axes, panels: list[Axes]) -> None:
    """One legend of what any panel shows."""
    handles = {one.get_label(): one for axes in panels for one in axes.get_legend_handles_labels()[0]}
    draw_legend(strip, list(handles.values()))


def _look(method: Method, points: int) -> dict:
    """A start's look, above the zero start, from which the one without a bias hardly differs.

    Each start has its markers at other points, so that those of nearly equal curves do not hide each other.
    """
    every = max(APART, points // MARKS)
    first = [*LOOKS].index(method.name) % every if points > every else 0
    look = LOOKS[method.name] | {"markevery": (first, every), "markersize": 5}
    return look if method.name == ZERO else look | {"zorder": 2.5}


def _validation(runs: list[tuple[int, dict[str, np.ndarray]]]) -> Curves:
    """Validation BLEU of the runs that translated."""
    curves = {seed: translation_metrics.curve(arrays) for seed, arrays in runs}
    return {seed: curve for seed, curve in curves.items() if curve is not None}


def _stacked(curves: Curves) -> tuple[np.ndarray, np.ndarray]:
    """Steps (k,) and values (seeds, k), cut to the shortest."""
    length = min(len(steps) for steps, _ in curves.values())
    return next(iter(curves.values()))[0][:length], np.stack([values[:length] for _, values in curves.values()])
