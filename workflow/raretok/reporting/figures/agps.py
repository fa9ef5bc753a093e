"""Figures of agps on its language model, counterparts of those that the paper has for translation.

Only metrics.json and arrays.npz are read. A picture of a single model shows the first seed.
"""

from raretok.reporting.definition import Definition
from raretok.reporting.figures.language import (
    LOOKS,
    draw_legend,
    end_of_freeze,
    freeze_line,
    panels_over_legend,
    planes_along_training,
    stacked,
)
from raretok.reporting.figures.panels import mean_and_band
from raretok.reporting.figures.shown import Drawn, first_run, seeds_note, shown_methods
from raretok.reporting.figures.style import not_run, sheet
from raretok.reporting.results import Results

GROUPS = ("high-frequent", "mid-frequent", "low-frequent")
COUNTERPART = "The paper's figure is of a translation model; this is its counterpart for the language model."


def figure1_lm(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings of the baseline in the PCA plane at four steps of training."""
    figure = sheet(13, 4.6)
    method = shown_methods(definition, item)[0]
    arrays = first_run(results, method)
    if not planes_along_training(figure, arrays, "snapshots.pca", method.label, "PCA component", GROUPS):
        return figure, f"Not run. {COUNTERPART}"
    return figure, (
        f"{COUNTERPART} {method.label}, the first seed. Centred rows of the embedding matrix on their first two "
        "principal components; every point is a word. The outermost 0.1% on each side are cut off."
    )


def figure2_lm(definition: Definition, item: str, results: Results) -> Drawn:
    """Mean inner products within groups along training, rare rows frozen until a step."""
    figure = sheet(13, 5.2)
    panels, strip = panels_over_legend(figure, 1, 1)
    axes = panels[0, 0]
    methods = shown_methods(definition, item)
    method = methods[0]
    runs = results.seeds_with_arrays(method)
    products = stacked(runs, "snapshots.inner_product")
    if products is None:
        not_run(axes, method.label)
        return figure, f"Not run. {COUNTERPART}"
    steps = next(arrays["snapshots.steps"] for _, arrays in runs if "snapshots.steps" in arrays)[: products.shape[1]]
    for group in (2, 1, 0):
        mean_and_band(axes, steps, products[:, :, group], GROUPS[group], LOOKS[group] | {"marker": None})
    step = end_of_freeze(results, method)
    if step is not None:
        freeze_line(axes, step)
    axes.set(xlabel="training step", ylabel="mean inner product within the group", xlim=(0, None))
    draw_legend(strip, axes.get_legend_handles_labels()[0])
    until = "" if step is None else f" until step {step:,}"
    return figure, (
        f"{COUNTERPART} Embeddings of rare words are frozen{until}; the paper freezes until 8k. "
        f"{seeds_note(results, methods)}"
    )
