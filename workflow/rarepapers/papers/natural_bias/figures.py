"""The figures of natural_bias (Meister et al. 2023): one function each, which returns the figure and its caption.

There is one panel per data set of the scale, titled with the actual corpus. Only metrics.json and arrays.npz are read.
"""

from collections.abc import Callable
from functools import partial
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rarepapers.papers.natural_bias import data_set_panels
from rarepapers.papers.natural_bias.along_training import bias_changes, divergences, validation_curves
from rarepapers.papers.natural_bias.bias_starts import UNIGRAM, WMT14, ZERO, unigram_text
from rarepapers.papers.natural_bias.claims import PRINTED_STEPS, REGULARISED
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.figures.shown import Drawn, NotRun, not_drawn_note
from rarepapers.reporting.figures.style import PINK, SKY, YELLOW, sheet
from rarepapers.reporting.results import Results, summarise
from rarepapers.reporting.statistics.over_seeds import mean_of, mean_text, standard_error

TEXT = "of the test text by sacrebleu, cased and detokenised"
# Figure 11: strengths, in colours that no start has; neighbours are drawn at steps that differ by this factor.
STRENGTHS = (
    {"color": PINK, "marker": "v"},
    {"color": SKY, "marker": "X"},
    {"color": YELLOW, "marker": "P"},
)
APART = 1.04
# Slopes in figure 4: metric, font weight, and name.
SLOPES = ((translation_metrics.BIN_SLOPE, "bold", "by bin"), (translation_metrics.TOKEN_SLOPE, "normal", "by token"))


def figure1(definition: Definition, item: str, results: Results) -> Drawn:
    """Divergence of the model from three references along training."""
    return divergences(definition, definition.methods_of(item)[0], results)


def _area_note(metric: str, *, whole: bool = False) -> str:
    span = "all of training" if whole else "the first 40% of training"
    return f"Mean of the validation {metric} curve over {span} (area divided by length); the curve starts at 0."


def _bars(
    definition: Definition,
    item: str,
    results: Results,
    values: Callable[[Results, Method], dict[int, float]],
    unit: str,
    text: str,
    experiments: Callable[[Definition], list[str]] = data_set_panels.paper_experiments,
    pairs: bool = False,
) -> Drawn:
    """One panel of points per experiment. pairs: add the sizes of the training texts to the caption."""
    methods, asked = definition.methods_of(item), experiments(definition)
    places = [(experiment, "", partial(values, results)) for experiment in asked]
    figure, note, _ = _points(definition, methods, places, unit)
    sizes = data_set_panels.training_pairs(definition, methods, results, asked) if pairs else ""
    return figure, f"{text} {note}{sizes}"


def _points(
    definition: Definition, methods: list[Method], places: list[tuple[str, str, Callable]], unit: str
) -> tuple[Figure, str, list[str]]:
    """One panel of points for each of the `places` that was run: experiment, rest of the title, values of a method.

    Returns the figure, its caption on points and seeds, and the experiments that have a panel. Raises NotRun.
    """
    drawn = []
    for experiment, more, values in places:
        here = [method.within(experiment) for method in methods]
        if any(map(values, here)):
            drawn.append((experiment, more, values, here))
    if not drawn:
        raise NotRun
    figure, panels = data_set_panels.panels_of(len(drawn))
    seeds = []
    for axes, (experiment, more, values, here) in zip(panels, drawn, strict=True):
        axes.set_title(data_set_panels.title_of(definition, experiment) + more, loc="left")
        seeds += data_set_panels.draw_points(axes, here, values, unit, unigram_text(definition, experiment))
    return figure, data_set_panels.points_note(seeds), [experiment for experiment, *_ in drawn]


def _wmt14(definition: Definition) -> list[str]:
    return [WMT14]


_test_bars = partial(_bars, values=translation_metrics.in_domain, unit="BLEU", text=f"BLEU {TEXT}.", pairs=True)
_area_bars = partial(_bars, values=translation_metrics.area, unit="ALC (BLEU)", text=_area_note("BLEU"))

figure2 = _test_bars
figure3 = _area_bars


def figure4(definition: Definition, item: str, results: Results) -> Drawn:
    """Log-probability of gold tokens by their unigram log-frequency, with the bias (a) and with it dropped (b)."""
    methods = definition.methods_of(item)
    figure = sheet(7.4)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    drawn = False
    parts = ((translation_metrics.WITH_BIAS, "full model"), (translation_metrics.WITHOUT_BIAS, "bias dropped"))
    for row, (letter, (part, name)) in zip(panels, zip("ab", parts, strict=True), strict=True):
        for axes, method in zip(row, methods, strict=True):
            axes.set_title(f"({letter}) {method.label}, {name}", loc="left")
            drawn |= _calibration(axes, results, method, part)
    for axes in panels[1]:
        axes.set_xlabel("unigram log-probability in training")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean log-probability of the gold token")
    if not drawn:
        raise NotRun
    corpus = definition.corpus_title(methods[0].experiment)
    return figure, (
        f"{corpus}, test text, in nats. Points: tokens of the first seed in equal-width bins of frequency; larger "
        "points have more tokens. Solid: least squares through the points, where all bins have equal weight, used by "
        "the claims. Dotted: least squares through all tokens. "
        "Slopes: means over seeds. "
        "Dashed: a model that gives each token its unigram probability."
    )


def _calibration(axes, results: Results, method: Method, part: str) -> bool:
    """Draw one panel of figure 4; returns whether anything was drawn."""
    names = [f"best.calibration.{name}" for name in ("places", part, "numbers")]
    pairs = results.seeds_with_arrays(method)
    seed, arrays = next((pair for pair in pairs if set(names) <= pair[1].keys()), (None, None))
    if arrays is None:
        axes.set_axis_off()
        return False
    places, heights, numbers = (arrays[name] for name in names)
    some = numbers > 0
    places, heights, numbers = places[some], heights[some], numbers[some]
    look = data_set_panels.LOOKS[method.name]
    sizes = 14 + 120 * np.sqrt(numbers / numbers.max())
    axes.scatter(places, heights, s=sizes, color=look["color"], marker=look["marker"], alpha=0.75, linewidth=0)
    ends = np.array([places.min(), places.max()])
    axes.plot(ends, ends, color="#888888", linestyle=(0, (4, 3)), linewidth=1)
    if len(places) > 1:
        # The line through all tokens passes through their mean, so its slope determines it.
        centre = [np.average(values, weights=numbers) for values in (places, heights)]
        slope = results.per_seed(method, translation_metrics.TOKEN_SLOPE, part).get(seed)
        if slope is not None:
            axes.plot(ends, centre[1] + slope * (ends - centre[0]), color=look["color"], linewidth=1.2, linestyle=":")
        by_bin = np.polyval(np.polyfit(places, heights, 1), ends)
        axes.plot(ends, by_bin, color=look["color"], linewidth=1.6)
    for height, (metric, weight, name) in zip((0.13, 0.06), SLOPES, strict=True):
        slopes = results.per_seed(method, metric, part)
        if slopes:
            said = f"slope {name} {mean_text(slopes, '+.2f')}".replace("-", "\N{MINUS SIGN}")
            axes.text(0.97, height, said, transform=axes.transAxes, ha="right", fontweight=weight)
    return True


def figure5(definition: Definition, item: str, results: Results) -> Drawn:
    """Validation BLEU along training."""
    return validation_curves(definition, definition.methods_of(item), results)


figure6 = partial(_area_bars, values=partial(translation_metrics.area, whole=True), text=_area_note("BLEU", whole=True))
figure7 = partial(_test_bars, experiments=_wmt14)
figure8 = partial(_area_bars, experiments=_wmt14)
figure9 = partial(
    _bars,
    values=partial(translation_metrics.in_domain, metric=translation_metrics.CHRF),
    unit="chrF",
    text=f"chrF {TEXT}.",
)
figure10 = partial(
    _bars,
    values=partial(translation_metrics.area, metric=translation_metrics.CHRF),
    unit="ALC (chrF)",
    text=_area_note("chrF"),
)


def figure11(definition: Definition, item: str, results: Results) -> Drawn:
    """BLEU of models that are first regularised away from the unigram distribution, by the step at which this ends.

    Seeds differ by more BLEU than the points do, so points and the zero start's line are means over the same seeds, no
    line suggests a trend, and dashes show how far all seeds of the zero start differ.
    """
    figure = sheet(4.2, 7.5)
    axes = figure.subplots()
    methods = definition.methods_of(item)
    base = next(method for method in methods if method.name == ZERO)
    found = {method.name: translation_metrics.in_domain(results, method) for method in methods}
    seeds_of = [set(of_seed) for of_seed in found.values() if of_seed]
    common = set.intersection(*seeds_of) if seeds_of else set()
    swept: dict[str, dict[float, dict[int, float]]] = {}
    missing = []
    grid = (method for method in methods if method.name.startswith(REGULARISED))
    for method in (method for method in grid if method.is_trained_in(method.experiment)):
        _, strength, until = method.name.split("_")
        step = max(1, round(translation_metrics.scaled(definition, method.experiment, int(until), PRINTED_STEPS)))
        if found[method.name]:
            swept.setdefault(strength, {})[step] = {seed: found[method.name][seed] for seed in sorted(common)}
        else:
            missing.append(f"{strength} until {step:,}")
    if not swept:
        raise NotRun
    if not common:
        raise NotRun("a seed that all these methods have")
    plain, spread = found[base.name], ""
    named = {f"{strength} until {step:,}": of for strength, steps in swept.items() for step, of in steps.items()}
    if plain:
        mean, colour = mean_of(plain[seed] for seed in common), data_set_panels.LOOKS[ZERO]["color"]
        named[base.label] = plain
        mean = mean if np.isfinite(mean) else np.nan
        axes.axhline(mean, linewidth=1.5, label="not regularised (zero bias), same seeds", color=colour)
        if len(plain) > 1:
            _seed_dashes(axes, plain, colour)
            spread = f" Dashes: each seed of zero bias; their mean, {mean_text(plain, '.2f')}, is in figure 2."
    for place, (look, (strength, points)) in enumerate(zip(cycle(STRENGTHS), sorted(swept.items()), strict=False)):
        steps = sorted(points)
        summaries = [summarise(points[step]) for step in steps]
        # Nothing is drawn for NaN: a mean that is not finite has no point.
        means = [np.nan if summary.not_finite else summary.mean for summary in summaries]
        errors = [standard_error(points[step].values()) or 0.0 for step in steps] if len(common) > 1 else None
        places = np.array(steps) * APART ** (place - (len(swept) - 1) / 2)
        look = look | {"linestyle": "none", "markersize": 8, "capsize": 3}
        axes.errorbar(places, means, errors, label=f"strength {strength}", **look)
    known = sorted({step for points in swept.values() for step in points})
    axes.set_xscale("log")
    axes.set_xticks(known, [f"{step:,}" for step in known])
    axes.minorticks_off()
    axes.margins(x=0.1, y=0.2)
    axes.set(xlabel="step at which regularisation ends (log scale)", ylabel="test BLEU")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    corpus = definition.corpus_title(base.experiment)
    return figure, (
        f"{corpus}. Data set, strengths and numbers of steps are our choice: the paper prints none. "
        f"{_same_seeds(sorted(common))}{spread} The vertical axis does not start at 0; the paper's BLEU is between "
        f"0 and 1, ours between 0 and 100.{_absent(missing)}{not_drawn_note(named)}"
    )


def _seed_dashes(axes: Axes, of_seed: dict[int, float], colour: str) -> None:
    """Draw a short dash at the right edge for each seed of the zero start, with its number."""
    for seed, value in of_seed.items():
        if not np.isfinite(value):
            continue
        axes.plot([0.97, 1], [value, value], transform=axes.get_yaxis_transform(), color=colour, linewidth=3)
        place = (0.96, value)
        axes.text(*place, f"seed {seed}", transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=8.5)


def _same_seeds(seeds: list[int]) -> str:
    """Caption sentence on the seeds that every model has, to which points and line are restricted."""
    names = ", ".join(map(str, seeds))
    if len(seeds) == 1:
        return (
            f"Points and line are of seed {names}, the only one that all these models have; other seeds are left out."
        )
    return f"Points and line are means over the seeds that all these models have ({names}); bars: standard error."


def figure12(definition: Definition, item: str, results: Results) -> Drawn:
    """Out-of-domain test BLEU."""
    drawn, text = _other_domains(definition, item, results, list(definition.settings), translation_metrics.test_domains)
    return drawn, f"{text} The paper tests only IWSLT14 and WMT14, each on the other's text."


def figure13(definition: Definition, item: str, results: Results) -> Drawn:
    """Change of the divergence of softmax(b) from the unigram distribution along training."""
    text, unit = "KL(unigram || softmax(b)) of the output bias b", "change of the KL (nats)"
    return bias_changes(definition, definition.methods_of(item), results, "divergence", unit, ZERO, text)


def figure14(definition: Definition, item: str, results: Results) -> Drawn:
    """Change of the norm of the bias along training."""
    text = "the Euclidean norm of the output bias b (the paper does not say which norm)"
    return bias_changes(definition, definition.methods_of(item), results, "norm", "change of the norm", UNIGRAM, text)


def figure15(definition: Definition, item: str, results: Results) -> Drawn:
    """Validation BLEU of the best checkpoint, with a start from C4's unigrams too."""
    text = "BLEU of the validation text at its best checkpoint, as measured during training."
    text += data_set_panels.in_place_of_c4(definition, _of_this_scale(definition, item))
    values = translation_metrics.best_validation
    return _bars(definition, item, results, values, "validation BLEU", text, partial(_of_this_scale, item=item))


def _of_this_scale(definition: Definition, item: str) -> list[str]:
    return [experiment for experiment in definition.compared(item) if experiment in definition.settings]


def figure16(definition: Definition, item: str, results: Results) -> Drawn:
    """The models of figure 15 on the other domain."""
    experiments = _of_this_scale(definition, item)
    drawn, text = _other_domains(definition, item, results, experiments, translation_metrics.validation_domains)
    found = {name: None for one in experiments for name in translation_metrics.validation_domains(results, one)}
    found.pop(translation_metrics.VALIDATION_TEXT, None)
    tested = f"; here it is test text: {', '.join(map(definition.title_of, found))}" if found else ""
    paper = f"The paper uses the other corpus's validation text{tested}."
    return drawn, f"{text}{data_set_panels.in_place_of_c4(definition, experiments)} {paper}"


def _absent(names: list[str]) -> str:
    """Caption sentence that names what was not run; empty if everything was."""
    return f" Not run: {', '.join(names)}." if names else ""


def _other_domains(
    definition: Definition,
    item: str,
    results: Results,
    experiments: list[str],
    domains: Callable[[Results, str], list[str]],
) -> Drawn:
    """One panel of points per experiment and per domain that its runs translated."""
    values = translation_metrics.out_of_domain
    places = [
        (experiment, f",\non {definition.title_of(domain)}", partial(values, results, domain=domain))
        for experiment in experiments
        for domain in domains(results, experiment)
    ]
    figure, note, shown = _points(definition, definition.methods_of(item), places, "BLEU")
    absent = [definition.corpus_title(experiment) for experiment in experiments if experiment not in shown]
    return figure, (
        "Models trained on the first corpus translate text of another domain with their own vocabulary. "
        f"{note}{_absent(absent)}"
    )
