"""The figures of agps (Yu et al.): one function each, which returns the figure and its caption.

Functions named `_lm` draw the language model's counterparts of the paper's translation figures. They read only
metrics.json and arrays.npz. Figures of a single model show the first seed.
"""

from functools import partial

import numpy as np

from rarepapers.core.special_types import SEPARATOR
from rarepapers.metrics.type_language import TARGET, language_of
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.claims.figure_claims import group_slices
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures import language_panels
from rarepapers.reporting.figures.shown import Drawn, NotRun, first_run, seeds_note, with_arrays
from rarepapers.reporting.figures.style import figure_text, sheet
from rarepapers.reporting.results import Results
from rarepapers.reporting.statistics.over_seeds import deviation_of, mean_text

GROUPS = ("high-frequency", "mid-frequency", "low-frequency")
COUNTERPART = "The paper's figure shows a translation model; this is its counterpart for the language model."
PLANE = (
    "Rows of the embedding matrix, centred, projected on their first two principal components; each point is a type. "
    f"{language_panels.PLANE_SAID}"
)
STEPS_SAID = "The steps are our choice: those of the paper's figure are missing in our copy of it."
# Figures 5 to 7: share of the types in a window of the running mean; number of special types, which are not words.
WINDOW, SPECIAL = 0.05, 4
MINUS = "\N{MINUS SIGN}"
# Figure 2: if a group's range of values is over this many times that of each other one, a panel shows these alone.
HIDDEN = 5
# Maximum number of types drawn per panel of cosines; the line uses all types.
DRAWN = 4_000
DRAWN_SAID = f"Of more than {DRAWN:,} types a random {DRAWN:,} are drawn."


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Embeddings of the baseline in the PCA plane at four steps of training."""
    method = definition.methods_of(item)[0]
    figure = language_panels.planes_along_training(results, method, "snapshots.pca", "PCA component", GROUPS)
    low = _without_target(first_run(results, method))
    return figure, f"{_corpus(definition, method)}, {method.label}, first seed. {PLANE} {low}{STEPS_SAID}"


def _counterpart(draw, definition: Definition, item: str, results: Results) -> Drawn:
    """The language model's counterpart of a translation figure."""
    figure, text = draw(definition, item, results)
    return figure, f"{text} {COUNTERPART}"


def _corpus(definition: Definition, method: Method) -> str:
    return definition.corpus_title(method.experiment)


def _without_target(arrays: dict[str, np.ndarray]) -> str:
    """Caption sentence on low-frequency types that never occur on the target side, if they are more than half of them.

    Empty for a language model, whose runs have no counts of a source side. Claims on such a group decide nothing
    (`claims.with_low_words`).
    """
    if "source_counts" not in arrays:
        return ""
    low = group_slices(arrays["bounds"])[2]
    never = arrays["counts"][low] == 0
    types, number, source = len(never), int(never.sum()), int((arrays["source_counts"][low][never] > 0).sum())
    if 2 * number <= types:
        return ""
    if number == types:
        return f"None of the {types:,} low-frequency types occurs on the target side; {source:,} occur in the source. "
    return f"{number:,} of the {types:,} low-frequency types never occur on the target side. "


def _planes(definition: Definition, item: str, results: Results) -> Drawn:
    """One panel per method with its S(w), all with the same axes so that widths are comparable."""
    methods = with_arrays(results, definition.methods_of(item), "best.pca")
    figure = sheet(3.8)
    panels, strip = language_panels.panels_over_legend(figure, 1, len(methods))
    for letter, axes, method in zip("abc", panels[0], methods, strict=False):
        arrays = first_run(results, method)
        language_panels.scatter_groups(axes, arrays["best.pca"], arrays["bounds"])
        cosine = results.per_seed(method, "mean_cosine", "total")
        said = f", S(w) {mean_text(cosine, '.3f')}" if cosine else ""
        axes.set_title(f"({letter}) {method.label}{said}", loc="left")
        axes.set_xlabel("PCA component 1")
    panels[0, 0].set_ylabel("PCA component 2")
    language_panels.share_limits(panels[0])
    language_panels.draw_legend(strip, language_panels.mean_handles(GROUPS))
    return figure, (
        f"{_corpus(definition, methods[0])}. {PLANE} Points are from the first seed; S(w), the mean cosine of all "
        f"pairs, is a mean over seeds. {_without_target(first_run(results, methods[0]))}"
        f"{_printed_cosines(definition, methods, results)}"
    ).strip()


def _printed_cosines(definition: Definition, methods: list[Method], results: Results) -> str:
    """Caption sentence on the methods whose S(w) the paper prints, which it does in table 1 only."""
    rows = {method.name: method.printed_label for method in definition.methods_of("table1")}
    printed = {row for item, row, column, _ in results.printed if (item, column) == ("table1", "S(w)")}
    known = [method.label for method in methods if rows.get(method.name) in printed]
    others = [method.label for method in methods if method.label not in known]
    if not known:
        return ""
    without = f"; it prints none for {' and '.join(others)}" if others else ""
    return f"Table 1 has the paper's S(w) for {' and '.join(known)}{without}."


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
        seed = results.seeds_with_arrays(method)[0][0]
        said = _correlation_said(_of_query(results, method, arrays, query), seed)
        axes.set_title(f"({letter}) {method.label}{said}", loc="left", fontsize=9.5)
        _draw_cosines(axes, arrays, query)
        axes.set_xlabel("index by decreasing frequency")
    if not word:
        raise NotRun
    panels[0, 0].set_ylabel(f"cosine with “{word}”")
    means = [axes.get_legend_handles_labels()[0] for axes in panels[0]]
    handles = [*language_panels.group_handles(GROUPS), *max(means, key=len)]
    language_panels.draw_legend(strip, handles)
    drawn = first_run(results, methods[0])
    return figure, (
        f"{_corpus(definition, methods[0])}, query {said_of_query}. Points: types that occur in training, sorted by "
        f"their frequency on the target side; the first seed's. {DRAWN_SAID} Line: running mean over {WINDOW:.0%} of "
        f"the types. {_without_target(drawn)}{_unordered_said(drawn)}"
        "Spearman's correlation is of frequency rank, which types of equal frequency share, and cosine: of the drawn "
        "seed and, of several seeds, mean and sample standard deviation. Above 0, rare words are nearer."
    )


def _correlation_said(values: dict[int, float], seed: int) -> str:
    """Part of a panel's title: the correlation of the drawn seed and, on a second line, mean and spread over seeds."""
    said = f", Spearman {values[seed]:+.2f} (seed {seed})" if seed in values else ""
    if len(values) > 1:
        deviation = deviation_of(values.values())
        spread = "" if deviation is None else f" ± {deviation:.2f}"
        said += f"\nmean {mean_text(values, '+.2f')}{spread} ({len(values)} seeds)"
    return said.replace("-", MINUS)


def _first_unordered(counts: np.ndarray) -> int | None:
    """The id from which no type occurs on the target side, in no order of frequency; None for fewer than two.

    counts: V.
    """
    first = int(np.flatnonzero(counts)[-1]) + 1
    return first if len(counts) - first > 1 else None


def _unordered_said(arrays: dict[str, np.ndarray]) -> str:
    """Caption sentence on the line of `_draw_cosines` at the types that never occur on the target side."""
    first = _first_unordered(arrays["counts"])
    if first is None:
        return ""
    return (
        f"Dotted line: from index {first:,} on, no type occurs on the target side, so the order there is not one of "
        "frequency. "
    )


def _query(definition: Definition, arrays: dict[str, np.ndarray], query: int) -> tuple[str, str]:
    """One of a run's queries, and the caption's words on it: its language, and the paper's query if that differs."""
    identity = int(arrays["best.neighbour_queries"][query])
    word = figure_text(str(arrays["vocabulary"][identity])).removeprefix("␣")
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
    first = _first_unordered(arrays["counts"])
    if first is not None:
        axes.axvline(first - 0.5, color="#000000", linewidth=1.2, linestyle=":", label="frequency 0 from here")
    axes.grid(False)


def figure2(definition: Definition, item: str, results: Results) -> Drawn:
    """Mean inner products within groups along training, with rare rows frozen until a step.

    If one group's curve is so large that the others look flat, a second panel shows the others alone.
    """
    methods = with_arrays(results, definition.methods_of(item), "snapshots.inner_product")
    method = methods[0]
    runs = results.seeds_with_arrays(method)
    products = language_panels.stacked(runs, "snapshots.inner_product")
    steps = next(arrays["snapshots.steps"] for _, arrays in runs if "snapshots.steps" in arrays)[: products.shape[1]]
    step = language_panels.end_of_freeze(results, method)
    small = _hidden_groups(products)
    shown = [(2, 1, 0), small] if small else [(2, 1, 0)]
    figure = sheet(3.6)
    panels, strip = language_panels.panels_over_legend(figure, 1, len(shown))
    for axes, groups in zip(panels[0], shown, strict=True):
        for group in groups:
            look = language_panels.LOOKS[group]
            language_panels.mean_around_freeze(axes, steps, products[:, :, group], step, GROUPS[group], look)
        language_panels.freeze_line(axes, step)
        axes.set(xlabel="training step", xlim=(0, None))
    panels[0, 0].set_ylabel("mean inner product within the group")
    second = ""
    if small:
        names = "- and ".join(GROUPS[group].removesuffix("-frequency") for group in reversed(small))
        for axes, title in zip(panels[0], ("(a) all groups", f"(b) {names}-frequency only"), strict=True):
            axes.set_title(title, loc="left")
        second = "Panel (b) has its own scale. "
    language_panels.draw_legend(strip, panels[0, 0].get_legend_handles_labels()[0])
    (printed,) = definition.entry(item)["printed_steps"]
    paper = "" if printed == step else f" (in the paper until step {printed:,})"
    return figure, (
        f"{_corpus(definition, method)}. Embeddings of rare words are frozen until step {step:,}{paper}. "
        f"{_frozen_said(results, method)}{_without_target(first_run(results, method))}{second}"
        f"{language_panels.GAP_SAID} {seeds_note(results, methods, 'snapshots.inner_product')}"
    )


def _hidden_groups(products: np.ndarray) -> tuple[int, ...]:
    """The groups beside one whose mean curve has over HIDDEN times the range of any other; empty if there is none.

    products: seeds x steps x 3.
    """
    ranges = np.ptp(products.mean(0), axis=0)
    largest = int(ranges.argmax())
    others = tuple(group for group in (2, 1, 0) if group != largest)
    return others if ranges[largest] > HIDDEN * ranges[list(others)].max() else ()


def _frozen_said(results: Results, method: Method) -> str:
    """Caption sentences on the number of frozen types per group; empty if they are exactly the low-frequency group."""
    rare, arrays = results.training(method)["derived"].get("rare_types"), first_run(results, method)
    if not rare:
        return ""
    is_rare, is_frozen = _rare_and_frozen(arrays, rare)
    groups = group_slices(arrays["bounds"])
    if is_frozen[groups[2]].all() and is_frozen.sum() == len(is_frozen[groups[2]]):
        return ""
    frozen = [(name, is_frozen[part]) for name, part in zip(GROUPS, groups, strict=True) if is_rare[part].any()]
    numbers = [f"{types.sum():,} of {len(types):,} types of the {name} group" for name, types in frozen]
    text = f"The freeze holds {' and '.join(numbers)}. "
    trained = [int((is_rare & ~is_frozen)[part].sum()) for part in groups]
    if not any(trained):
        return text
    rises = ", so the low-frequency curve rises before the line" if trained[2] else ""
    return (
        f"{text}The other rare words ({' and '.join(f'{number:,}' for number in trained if number)}) are frequent "
        f"source words, which train from the start because source and target share the embeddings{rises}. "
    )


def _rare_and_frozen(arrays: dict[str, np.ndarray], rare: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the V types are rare, those with the last `rare` ids, and which of these are frozen (bools).

    Frozen are rare types that are no frequent source words, as in `methods.freeze.rows_to_freeze`.
    """
    counts = arrays["counts"]
    is_rare = np.arange(len(counts)) >= len(counts) - rare
    if "source_counts" not in arrays:
        return is_rare, is_rare
    return is_rare, is_rare & (arrays["source_counts"] <= counts[is_rare].max())


figure1_lm, figure2_lm = partial(_counterpart, figure1), partial(_counterpart, figure2)
figure3 = figure4 = _planes
figure5, figure6, figure7 = (partial(_cosines, query=query) for query in range(3))
