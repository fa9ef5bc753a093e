"""The figures of agps (Yu et al.): one function each, which returns the figure and its caption.

Functions named `_lm` draw the language model's counterparts of the paper's translation figures. They read only
metrics.json and arrays.npz. Figures of a single model show the first seed.
"""

from functools import partial

import numpy as np

from raretok.core.special_types import SEPARATOR
from raretok.metrics.type_language import TARGET, language_of
from raretok.reporting import translation_metrics
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import Definition, Method
from raretok.reporting.figures import language_panels
from raretok.reporting.figures.shown import Drawn, NotRun, first_run, seeds_note, with_arrays
from raretok.reporting.figures.style import sheet
from raretok.reporting.results import Results
from raretok.reporting.tables.neighbour_table import visible_text

GROUPS = ("high-frequency", "mid-frequency", "low-frequency")
COUNTERPART = "The paper's figure shows a translation model; this is its counterpart for the language model."
PLANE = (
    "Rows of the embedding matrix, centred, projected on their first two principal components; each point is a type. "
    f"{language_panels.PLANE_SAID}"
)
STEPS_SAID = "The steps are our choice: those of the paper's figure are missing in our copy of it."
# Figures 5 to 7: share of the types in a window of the running mean; number of special types, which are not words.
WINDOW, SPECIAL = 0.05, 4
# Maximum number of types drawn per panel of cosines; the line uses all types.
DRAWN = 4_000
DRAWN_SAID = f"Of more than {DRAWN:,} types a random {DRAWN:,} are drawn."


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings of the baseline in the PCA plane at four steps of training."""
    method = definition.methods_of(item)[0]
    figure = language_panels.planes_along_training(results, method, "snapshots.pca", "PCA component", GROUPS)
    return figure, f"{_corpus(definition, method)}, {method.label}, first seed. {PLANE} {STEPS_SAID}"


def _counterpart(draw, definition: Definition, item: str, results: Results) -> Drawn:
    """The language model's counterpart of a translation figure."""
    figure, text = draw(definition, item, results)
    return figure, f"{text} {COUNTERPART}"


def _corpus(definition: Definition, method: Method) -> str:
    return corpus_title(definition.corpus(method.experiment))


def _planes(definition: Definition, item: str, results: Results) -> Drawn:
    """One panel per method with its S(w), all with the same axes so that widths are comparable."""
    methods = with_arrays(results, definition.methods_of(item), "best.pca")
    figure = sheet(3.8)
    panels, strip = language_panels.panels_over_legend(figure, 1, len(methods))
    for letter, axes, method in zip("abc", panels[0], methods, strict=False):
        arrays = first_run(results, method)
        language_panels.scatter_groups(axes, arrays["best.pca"], arrays["bounds"])
        cosine = list(results.per_seed(method, "mean_cosine", "total").values())
        said = f", S(w) {np.mean(cosine):.3f}" if cosine else ""
        axes.set_title(f"({letter}) {method.label}{said}", loc="left")
        axes.set_xlabel("PCA component 1")
    panels[0, 0].set_ylabel("PCA component 2")
    language_panels.share_limits(panels[0])
    language_panels.draw_legend(strip, language_panels.mean_handles(GROUPS))
    return figure, (
        f"{_corpus(definition, methods[0])}. {PLANE} Points are from the first seed; S(w), the mean cosine of all "
        "pairs, is a mean over seeds. Table 1 has the paper's S(w)."
    )


def _cosines(definition: Definition, item: str, results: Results, query: int) -> Drawn:
    """One panel per method: cosine of every type with one query, by frequency rank."""
    methods = with_arrays(results, definition.methods_of(item), "best.query_cosines")
    figure = sheet(3.5)
    panels, strip = language_panels.panels_over_legend(figure, 1, len(methods), sharex=True, sharey=True)
    word = said_of_query = ""
    for letter, axes, method in zip("abc", panels[0], methods, strict=False):
        arrays = first_run(results, method)
        if len(arrays["best.query_cosines"]) <= query:
            continue
        word, said_of_query = _query(definition, arrays, query)
        rho = list(_of_query(results, method, arrays, query).values())
        said = f", Spearman {np.mean(rho):+.2f}" if rho else ""
        axes.set_title(f"({letter}) {method.label}{said}", loc="left")
        _draw_cosines(axes, arrays, query)
        axes.set_xlabel("index by decreasing frequency")
    if not word:
        raise NotRun
    panels[0, 0].set_ylabel(f"cosine with “{word}”")
    means = [axes.get_legend_handles_labels()[0] for axes in panels[0]]
    handles = [*language_panels.group_handles(GROUPS), *max(means, key=len)[:1]]
    language_panels.draw_legend(strip, handles)
    return figure, (
        f"{_corpus(definition, methods[0])}, query {said_of_query}. Points: types that occur in training, sorted by "
        f"their frequency on the target side; the first seed's. {DRAWN_SAID} Line: running mean over {WINDOW:.0%} of "
        "the types. "
        "Spearman's correlation of index and cosine, mean over seeds: above 0, rare words are nearer."
    )


def _query(definition: Definition, arrays: dict[str, np.ndarray], query: int) -> tuple[str, str]:
    """One of a run's queries, and the caption's words on it: its language, and the paper's query if that differs."""
    identity = int(arrays["best.neighbour_queries"][query])
    word = visible_text(str(arrays["vocabulary"][identity])).removeprefix("␣")
    side = "target" if language_of(arrays["source_counts"], arrays["counts"])[identity] == TARGET else "source"
    # A type without the separator ends a word, of which it can be a part.
    part = " or the end of one" if any(str(name).endswith(SEPARATOR) for name in arrays["vocabulary"]) else ""
    printed = definition.tables["table10"]["queries"][query]
    paper = "" if word == printed else f" (the paper translates En-De and has “{printed}”)"
    return word, f"“{word}”, a {side} word{part}{paper}"


def _of_query(results: Results, method: Method, arrays: dict[str, np.ndarray], query: int) -> dict[int, float]:
    """Spearman's correlation by seed for one of a run's queries."""
    name = str(arrays["vocabulary"][int(arrays["best.neighbour_queries"][query])])
    return translation_metrics.rank_correlations(results, method).get(name, {})


def _draw_cosines(axes, arrays: dict[str, np.ndarray], query: int) -> None:
    """Draw the types that occur, except the query, in their groups' colours, and a running mean."""
    cosines = arrays["best.query_cosines"][query].astype(float)
    occurs = arrays["counts"] + arrays["source_counts"] > 0
    occurs[[*range(SPECIAL), int(arrays["best.neighbour_queries"][query])]] = False
    colours = language_panels.group_colours(arrays["bounds"], len(cosines))
    places = np.flatnonzero(occurs)
    drawn = np.random.default_rng(0).permutation(places)[:DRAWN]
    size = float(np.clip(12_000 / len(drawn), 1.2, 14))
    axes.scatter(drawn, cosines[drawn], c=colours[drawn], s=size, alpha=0.55, linewidth=0, rasterized=True)
    width = max(3, round(WINDOW * len(places)))
    if len(places) >= width:
        means = np.convolve(cosines[places], np.full(width, 1 / width), mode="valid")
        first = width // 2
        every = max(1, width // 8)  # as smooth to the eye, with a fraction of the points in the svg
        axes.plot(
            places[first : first + len(means) : every],
            means[::every],
            color="#000000",
            linewidth=1.6,
            label="running mean",
        )
    axes.axhline(0, color="#999999", linewidth=0.7, zorder=0.5)
    axes.grid(False)


def figure2(definition: Definition, item: str, results: Results) -> Drawn:
    """Mean inner products within groups along training, with rare rows frozen until a step."""
    figure = sheet(3.6)
    panels, strip = language_panels.panels_over_legend(figure, 1, 1)
    axes = panels[0, 0]
    methods = with_arrays(results, definition.methods_of(item), "snapshots.inner_product")
    method = methods[0]
    runs = results.seeds_with_arrays(method)
    products = language_panels.stacked(runs, "snapshots.inner_product")
    steps = next(arrays["snapshots.steps"] for _, arrays in runs if "snapshots.steps" in arrays)[: products.shape[1]]
    step = language_panels.end_of_freeze(results, method)
    for group in (2, 1, 0):
        look = language_panels.LOOKS[group]
        language_panels.mean_around_freeze(axes, steps, products[:, :, group], step, GROUPS[group], look)
    language_panels.freeze_line(axes, step)
    axes.set(xlabel="training step", ylabel="mean inner product within the group", xlim=(0, None))
    language_panels.draw_legend(strip, axes.get_legend_handles_labels()[0])
    (printed,) = definition.entry(item)["printed_steps"]
    paper = "" if printed == step else f" (in the paper until step {printed:,})"
    return figure, (
        f"{_corpus(definition, method)}. Embeddings of rare words are frozen until step {step:,}{paper}. "
        f"{_trained_anyway(results, method)}{language_panels.GAP_SAID} {seeds_note(results, methods)}"
    )


def _trained_anyway(results: Results, method: Method) -> str:
    """Caption sentence on the rare words that the freeze leaves out, which the record of a run counts."""
    derived = results.training(method)["derived"]
    rare, frozen = derived.get("rare_types", 0), derived.get("frozen_types", 0)
    if rare == frozen:
        return ""
    return (
        f"Source and target share the embeddings: of {rare:,} rare words, {rare - frozen:,} are frequent source words "
        "and train from the start, so the low-frequency curve rises before the line. "
    )


figure1_lm, figure2_lm = partial(_counterpart, figure1), partial(_counterpart, figure2)
figure3 = figure4 = _planes
figure5, figure6, figure7 = (partial(_cosines, query=query) for query in range(3))
