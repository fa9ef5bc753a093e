"""The figures of agg (Yu et al. 2022): one function each, which returns the figure and its caption.

They read only metrics.json and arrays.npz. Figures of a single model show the first seed.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from rarepapers.papers.agg.claims import ALPHAS
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures import language_panels
from rarepapers.reporting.figures.panels import mean_and_band
from rarepapers.reporting.figures.shown import Drawn, NotRun, first_run, not_drawn_note, seeds_note, with_arrays
from rarepapers.reporting.figures.style import BASE, BLACK, GREY, METHODS, SKY, look_of, not_run, sheet
from rarepapers.reporting.results import Results, summarise
from rarepapers.reporting.statistics.over_seeds import mean_text
from rarepapers.reporting.tables.cells import derived_remark

GROUPS = ("frequent", "medium", "rare")
COSINE = "cosine of rare and frequent (right)"
PROJECTION = (
    "Rows of the embedding matrix, not centred, on its first two right singular vectors; each point is a token. "
    f"{language_panels.PLANE_SAID}"
)


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings of MLE in the SVD plane at four steps of training."""
    method = definition.methods_of(item)[0]
    figure = language_panels.planes_along_training(
        results, method, "snapshots.svd", "SVD component", GROUPS, definition.entry(item)["printed_steps"]
    )
    return figure, f"{method.label}, first seed. {PROJECTION}"


def figure2(definition: Definition, item: str, results: Results) -> Drawn:
    """I(W) of rare and frequent tokens and their mean cosine when rare tokens are frozen until a step."""
    figure = sheet(3.6)
    methods = with_arrays(results, definition.methods_of(item), "snapshots.isotropy_sign_free")
    panels, strip = language_panels.panels_over_legend(figure, 1, len(methods), sharey=True)
    panels = panels[0]
    drawn = []
    entry = definition.entry(item)
    printed = dict(zip(entry["methods"], entry["printed_steps"], strict=True))
    for letter, axes, method in zip("abc", panels, methods, strict=False):
        runs = results.seeds_with_arrays(method)
        isotropy = language_panels.stacked(runs, "snapshots.isotropy_sign_free")
        cosine = language_panels.stacked(runs, "snapshots.cosine_rare_frequent")
        steps = next(arrays["snapshots.steps"] for _, arrays in runs if "snapshots.steps" in arrays)
        steps = steps[: isotropy.shape[1]]
        step = language_panels.end_of_freeze(results, method)
        for group in (2, 0):
            name, look = f"I(W), {GROUPS[group]}", language_panels.LOOKS[group]
            language_panels.mean_around_freeze(axes, steps, isotropy[:, :, group], step, name, look)
        axes.set_title(language_panels.step_title(letter, "until step", step, printed[method.name]), loc="left")
        axes.set(xlabel="training step", ylim=(0, 1.02), xlim=(0, None))
        right = axes.twinx()
        look = {"color": BLACK, "linestyle": ":"}
        language_panels.mean_around_freeze(right, steps, cosine[:, : len(steps)], step, COSINE, look)
        right.grid(False)
        language_panels.freeze_line(axes, step)
        drawn.append((axes, right))
    panels[0].set_ylabel("I(W)")
    limits = np.array([right.get_ylim() for _, right in drawn])
    for _, right in drawn:
        right.set_ylim(limits.min(), limits.max())
        right.tick_params(right=False, labelright=False)
    last = drawn[-1][1]
    last.tick_params(right=True, labelright=True)
    last.spines["right"].set_visible(True)
    last.set_ylabel("mean cosine")
    language_panels.draw_legend(strip, [handle for axes in drawn[0] for handle in axes.get_legend_handles_labels()[0]])
    return figure, (
        "Left axis: I(W) (1 is isotropic). Right axis: mean cosine of all pairs of a rare and a frequent embedding. "
        f"{language_panels.GAP_SAID} "
        f"{seeds_note(results, methods, 'snapshots.isotropy_sign_free', 'snapshots.cosine_rare_frequent')}"
    )


def figure3(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings of MLE and AGG in the SVD plane, and their singular values."""
    figure = sheet(3.6)
    methods = with_arrays(results, definition.methods_of(item), "best.svd")
    panels, strip = language_panels.panels_over_legend(figure, 1, len(methods) + 1)
    panels = panels[0]
    for letter, axes, method in zip("ab", panels, methods, strict=False):
        arrays = first_run(results, method)
        language_panels.scatter_groups(axes, arrays["best.svd"], arrays["bounds"])
        accuracy = results.per_seed(method, "separability", "svd")
        said = f", separable {mean_text(accuracy, '.2f')}" if accuracy else ""
        axes.set_title(f"({letter}) {method.label}{said}", loc="left")
        axes.set(xlabel="SVD component 1", ylabel="SVD component 2" if letter == "a" else None)
    language_panels.share_limits(panels[:-1])
    curves = panels[-1]
    for method in methods:
        values = language_panels.stacked(results.seeds_with_arrays(method), "best.singular_values")
        values = values / values[:, :1]
        look = look_of(method) | {"marker": None}
        mean_and_band(curves, np.arange(1, values.shape[1] + 1), values, method.label, look)
    curves.set_title("(c) singular values", loc="left")
    curves.set(xlabel="index", ylabel="singular value / largest", ylim=(0, 1.02))
    curves.legend(frameon=False, loc="upper right")
    language_panels.draw_legend(strip, language_panels.mean_handles(GROUPS))
    return figure, (
        f"{PROJECTION} Separable: balanced accuracy of the best linear classifier of rare against frequent tokens in "
        "the plane, mean over seeds; 0.5 is chance. Points are from the first seed. (c): "
        + seeds_note(results, methods, "best.singular_values").replace("Mean", "mean").replace("One", "one")
        + _derived(definition, results, methods)
    )


def figure4(definition: Definition, item: str, results: Results) -> Drawn:
    """The size of the rare group at each of the first steps."""
    figure = sheet(3.4)
    axes = figure.subplots()
    methods = with_arrays(results, definition.methods_of(item), "rare_types.sizes")
    method = methods[0]
    runs = results.seeds_with_arrays(method)
    sizes = language_panels.stacked(runs, "rare_types.sizes")
    look = {"color": METHODS["agg"]["color"], "linestyle": "-"}
    mean = mean_and_band(axes, np.arange(1, sizes.shape[1] + 1), sizes, None, look)
    types = len(next(arrays["counts"] for _, arrays in runs if "counts" in arrays))
    axes.set(xlabel="training step", ylabel="tokens in the rare group", ylim=(0, None), xlim=(0, sizes.shape[1]))
    (printed,) = definition.entry(item)["printed_steps"]
    steps = language_panels.step_and_papers(sizes.shape[1], printed)
    axes.set_title(f"up to step {steps}", loc="left")
    end = (sizes.shape[1], mean[-1])
    axes.plot(*end, marker="o", clip_on=False, **look)
    # Below the curve, which falls towards its end.
    axes.annotate(f"{mean[-1]:,.0f} of {types:,}", end, (-8, -14), textcoords="offset points", ha="right")
    share = axes.secondary_yaxis("right", functions=(lambda y: 100 * y / types, lambda y: y * types / 100))
    share.set_ylabel("% of the vocabulary")
    return figure, (
        f"{method.label}: tokens seen fewer than alpha times per step, averaged over the last K steps, or over all "
        "steps before step K. Counts are whole numbers: the curve jumps where alpha times the steps so far passes one. "
        f"{seeds_note(results, methods, 'rare_types.sizes')}{_derived(definition, results, methods)}"
    )


def figure5(definition: Definition, item: str, results: Results) -> Drawn:
    """Perplexity, Uniq and I(W) of rare, of non-rare and of all tokens against alpha (deviations, A23)."""
    figure = sheet(7.4)
    panels, strip = language_panels.panels_over_legend(figure, 3, 3, sharex=True)
    methods = definition.methods_of(item)
    swept = [method for method in methods if method.name in ALPHAS]
    if sum(bool(results.per_seed(method, "perplexity", "total")) for method in swept) < 2:
        raise NotRun("a curve needs two values of alpha")
    reference = next((method for method in methods if method.name not in ALPHAS), None)
    columns = (("perplexity", "perplexity"), ("uniq", "Uniq"), ("isotropy_sign_free", "I(W)"))
    rows = (
        ("rare", "rare tokens", language_panels.LOOKS[2] | {"linestyle": "-"}),
        ("nonrare", "non-rare tokens", {"color": SKY, "linestyle": "-", "marker": "s"}),
        ("total", "all tokens", BASE),
    )
    for row, (group, name, look) in zip(panels, rows, strict=True):
        for letter, axes, (metric, title) in zip("abc", row, columns, strict=True):
            _against_alpha(axes, results, swept, reference, metric, group, name, look)
            if group == "rare":
                axes.set_title(f"({letter}) {title}", loc="left")
        row[0].set_ylabel(name)
    seeds = {method: len(results.per_seed(method, "perplexity", "total")) for method in methods}
    for axes in panels[-1]:
        axes.set_xlabel("alpha, as printed; n seeds")
        alphas = {ALPHAS[method.name]: seeds[method] for method in swept}
        axes.set_xticks([*alphas], [f"{alpha:g}\nn={number}" for alpha, number in alphas.items()])
    handles = [handle for axes in panels[:, 0] for handle in axes.get_legend_handles_labels()[0]]
    # The bars of AGG come before the line of MLE.
    language_panels.draw_legend(strip, sorted(handles, key=lambda handle: isinstance(handle, Line2D)))
    named = {
        f"{method.label}, {title} of {name}": results.per_seed(method, metric, group)
        for method in methods
        for group, name, _ in rows
        for metric, title in columns
    }
    derived = [
        f"{training['derived']['alpha']:.3g} for {ALPHAS[method.name]:g}"
        for method in swept
        if (training := results.training(method)) and (training.get("derived") or {}).get("alpha")
    ]
    scaled = "" if definition.comparable or not derived else f" Alphas of this scale: {', '.join(derived)}."
    band = f" and the grey band of {reference.label}" if reference and seeds[reference] > 1 else ""
    lone = ", none for one seed" if 1 in seeds.values() else ""
    line = f" {reference.label}: n={seeds[reference]}." if reference and seeds[reference] else ""
    return figure, (
        "Rare, non-rare (frequent and medium) and all tokens, each on its own scale; (a) and (b): test text. "
        "The paper's panels show rare and all tokens, its text discusses non-rare ones. Means over n seeds; bars"
        f"{band}: one sample standard deviation{lone}.{line}{scaled}{not_drawn_note(named)}"
    )


def _against_alpha(
    axes: Axes,
    results: Results,
    swept: list[Method],
    reference: Method | None,
    metric: str,
    group: str,
    tokens: str,
    look: dict,
) -> None:
    """Draw one panel; `tokens`: the group's name in the legend."""
    points = {ALPHAS[method.name]: summarise(results.per_seed(method, metric, group)) for method in swept}
    points = {alpha: summary for alpha, summary in points.items() if summary}
    line = summarise(results.per_seed(reference, metric, group)) if reference else None
    if line and not line.not_finite:
        label, mean, deviation, *_ = reference.label if group == "total" else None, *line
        axes.axhline(mean, color=GREY, linestyle=(0, (5, 2)), linewidth=1.4, label=label)
        if deviation is not None:
            axes.axhspan(mean - deviation, mean + deviation, color=GREY, alpha=0.2, linewidth=0)
    if not points:
        not_run(axes, "AGG")
        return
    alphas = sorted(points)
    axes.errorbar(
        alphas,
        # Nothing is drawn for NaN: a mean that is not finite, the deviation of one seed.
        [np.nan if points[alpha].not_finite else points[alpha].mean for alpha in alphas],
        [np.nan if points[alpha].spread is None else points[alpha].spread for alpha in alphas],
        capsize=3,
        linewidth=1.8,
        label=f"AGG, {tokens}",
        **look,
    )
    axes.margins(x=0.08, y=0.15)


def _derived(definition: Definition, results: Results, methods: list[Method]) -> str:
    found = [(method.label, derived_remark(definition, results.training(method))) for method in methods]
    return "".join(f" {label}: {remark}." for label, remark in found if remark)
