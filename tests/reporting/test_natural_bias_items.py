"""Figures of natural_bias, from synthetic runs, complete, partial and empty."""

import copy
import json
import re
from dataclasses import replace

import fake_translation
import numpy as np
import pytest
from fake_results import make_report, read_csv
from fake_translation import collected, verdicts_of

from rarepapers.__main__ import main
from rarepapers.papers.natural_bias.along_training import _look
from rarepapers.papers.natural_bias.bias_starts import IWSLT14
from rarepapers.papers.natural_bias.claims import STAYS
from rarepapers.papers.natural_bias.data_set_panels import LOOKS
from rarepapers.reporting import translation_metrics
from rarepapers.reporting.collect import read_item
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.figures import style
from rarepapers.reporting.figures.figure_command import draw as draw_figure
from rarepapers.reporting.figures.style import house_style
from rarepapers.reporting.results import read_results

ZERO_LINE = "not regularised (zero bias), same seeds"
FIGURES = [f"figure{k}" for k in range(1, 17)]
SIX = ["Multi30k De-En", "IWSLT14 En-De", "Kirundi Run-En", "AfroMT En-Run", "Autshumato Af-En", "AfroMT En-Af"]


def draw(definition, item, folder):
    """Panels that show anything, and the caption."""
    shown = parse_definition(json.dumps(definition))
    with house_style():
        figure, text = draw_figure(shown, item, read_item(folder, shown, item))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    return panels, text


@pytest.mark.parametrize("item", FIGURES)
def test_every_figure_is_complete(bias, item):
    panels, text = draw(bias.definition, item, bias.folder)
    assert text != "Not run."
    shown = [axes.get_title(loc="left") for axes in panels]
    texts = [part.get_text() for axes in panels for part in axes.texts]
    assert not any("not run" in part for part in texts), texts
    if item in ("figure2", "figure3", "figure5", "figure6", "figure9", "figure10"):
        assert [title.split("\n")[0] for title in shown] == SIX
    if item in ("figure1", "figure13", "figure14"):
        assert [title.split("\n")[0] for title in shown] == [*SIX, "WMT14 De-En"]
    if item in ("figure2", "figure12"):
        on = ",\non newstest2014" if item == "figure12" else ""
        assert shown[0] == f"Multi30k De-En\nin place of IWSLT14 De-En{on}"
        assert shown[1] == f"IWSLT14 En-De{on}"


def test_files_name_the_scale(bias, tmp_path):
    text = json.dumps(bias.definition)
    arguments = [f"--definition={text}", f"--results={bias.folder}", f"--output-stem={tmp_path / 'a'}"]
    assert main(["figure", "--item=figure2", *arguments]) == 0
    assert "made-up data; not comparable with the paper" in (tmp_path / "a.svg").read_text()


def test_points_are_means_with_standard_errors(bias):
    panels, text = draw(bias.definition, "figure2", bias.folder)
    values = np.array(list(bias.results.values["iwslt14_de-en", "unigram", "bleu", "", "test@best"].values()))
    assert len(values) == 3
    assert panels[0].lines[-3].get_ydata()[0] == pytest.approx(values.mean())  # then the two caps
    ends = panels[0].collections[-1].get_segments()[0][:, 1]
    assert (ends[1] - ends[0]) / 2 == pytest.approx(values.std(ddof=1) / 3**0.5)
    assert "standard error over 3 seeds" in text
    assert "Training pairs: Multi30k De-En 5,000, IWSLT14 En-De 5,000," in text
    low, high = panels[0].get_ylim()
    assert high - low >= 0.5


@pytest.mark.parametrize(
    ("item", "metric", "group", "split"),
    [
        ("figure3", "alc_bleu", "early", "valid"),
        ("figure6", "alc_bleu", "full", "valid"),
        ("figure9", "chrf", "", "test@best"),
        ("figure10", "alc_chrf", "early", "valid"),
        ("figure15", "best_validation_bleu", "", "valid"),
    ],
)
def test_bars_show_the_metric_of_the_figure(bias, item, metric, group, split):
    panels, _ = draw(bias.definition, item, bias.folder)
    for bar, name in zip(panels[0].patches, ("none", "zero", "unigram"), strict=False):
        values = list(bias.results.values["iwslt14_de-en", name, metric, group, split].values())
        assert bar.get_y() + bar.get_height() == pytest.approx(np.mean(values))


def _axes(bias, item):
    return _all_axes(bias.definition, item, bias.folder)[0]


def _all_axes(definition, item, folder):
    """Every panel, with a title or without, and the caption."""
    shown = parse_definition(json.dumps(definition))
    with house_style():
        figure, text = draw_figure(shown, item, read_item(folder, shown, item))
    return figure.axes, text


def test_data_sets_that_were_not_run_have_no_panel(tmp_path):
    """Of two data sets, one was not run at all, and one without its log-unigram start."""
    gone = ("wmt14_de-en", "afromt_run-en", "afromt_en-run", "afromt_af-en", "afromt_en-af")
    definition = fake_translation.definition_of(seeds=1, left_out=gone)
    run = copy.deepcopy(definition)
    for name, method in run["methods"].items():
        method["trained"] = dict.fromkeys(["iwslt14_de-en"] if name in ("zero", "none", "c4") else [], method["seeds"])
    collected(tmp_path, run)
    panels, text = draw(definition, "figure2", tmp_path)
    assert [axes.get_title(loc="left").split("\n")[0] for axes in panels] == SIX[:1]
    assert "One seed. Each panel has its own scale" in text
    assert len(panels[0].texts) == 2  # a number beside each of two points
    for item in ("figure7", "figure8"):
        assert draw(definition, item, tmp_path)[1] == "Not run: beyond this scale."
    for item in ("figure5", "figure13", "figure14"):
        panels, _ = draw(definition, item, tmp_path)
        assert len([axes for axes in panels if axes.lines]) == 1
        assert panels[0].get_legend_handles_labels()[1][-1] == "Zero bias"
    assert _all_axes(definition, "figure11", tmp_path)[1] == "Not run."
    assert draw(definition, "figure12", tmp_path)[1].count("Not run: IWSLT14 En-De.") == 1
    found = verdicts_of(definition, read_results(tmp_path))
    assert found["f7_8.wmt"]["alone"] == "not run"
    assert "wmt14_de-en is left out at this scale" in found["f7_8.wmt"]["note"]
    assert "unigram was not run in iwslt14_de-en" in found["f2.bleu_5of6"]["note"]
    assert found["abs.performance"]["alone"] == "not run"


@pytest.mark.parametrize("item", ["figure15", "figure16"])
def test_bars_name_the_text_that_replaces_c4(bias, item):
    panels, text = draw(bias.definition, item, bias.folder)
    names = [[label.get_text() for label in axes.get_xticklabels()] for axes in panels]
    assert [of[-1].split("\n")[-1] for of in names] == ["WikiText-2", "C4"]
    assert names[0][:3] == ["none", "zero", "log-\nunigram"]
    assert "C4's English text is replaced by WikiText-2." in text


def test_only_figure_16_uses_the_validation_text_of_the_other_domain(bias):
    values = dict(bias.results.values)
    for (experiment, method, metric, group, split), of in bias.results.values.items():
        if experiment == "iwslt14_de-en" and split == "domain.newstest2014@best":
            less = 5 if method == "c4" else 0
            values[experiment, method, metric, group, "domain.newstest2013@best"] = {k: v - less for k, v in of.items()}
    results = replace(bias.results, values=values)
    assert translation_metrics.test_domains(results, "iwslt14_de-en") == ["newstest2014"]
    assert translation_metrics.validation_domains(results, "iwslt14_de-en") == ["newstest2013"]
    assert translation_metrics.validation_domains(results, "wmt14_de-en") == ["newstest2014"]
    found = verdicts_of(bias.definition, results)
    assert found["f16.c4_ood"]["alone"] == "fails here"
    said = "on newstest2013 (the paper: WMT14's validation text); unigrams of WikiText-2"
    assert said in found["f16.c4_ood"]["note"]
    assert "newstest2013" not in found["f12.ood"]["note"]


def test_missing_points_of_a_grid_are_named(bias, tmp_path):
    run = copy.deepcopy(bias.definition)
    for name, method in run["methods"].items():
        experiments = ["iwslt14_de-en"] if name in ("zero", "regularised_0.1_500", "regularised_0.5_4000") else []
        method["trained"] = dict.fromkeys(experiments, method["seeds"])
    collected(tmp_path, run)
    _, text = _all_axes(bias.definition, "figure11", tmp_path)
    absent = [f"0.1 until {step}" for step in (20, 40, 80)] + [f"0.5 until {step}" for step in (10, 20, 40)]
    assert f"Not run: {', '.join(absent)}." in text


def test_points_of_a_grid_are_means_over_the_same_seeds(bias):
    """One regularised model has seed 1 alone: the zero start's line is its first seed."""
    values = copy.deepcopy(bias.results.values)
    for (experiment, method, *_), of_seed in values.items():
        if (experiment, method) == (IWSLT14, "regularised_0.1_500"):
            for seed in set(of_seed) - {1}:
                of_seed.pop(seed)
    shown = parse_definition(json.dumps(bias.definition))
    zero = translation_metrics.in_domain(bias.results, shown.methods["zero"])
    assert len(zero) > 1
    figure, text = draw_figure(shown, "figure11", replace(bias.results, values=values))
    (line,) = [line for line in figure.axes[0].get_lines() if line.get_label() == ZERO_LINE]
    assert line.get_ydata()[0] == pytest.approx(zero[1])
    assert "are of seed 1, the only one that all these models have; other seeds are left out." in text
    values[IWSLT14, "zero", "bleu", "", "test@best"].pop(1)
    text = draw_figure(shown, "figure11", replace(bias.results, values=values))[1]
    assert text == "Not run: a seed that all these methods have."


def test_points_start_at_0_and_say_if_they_are_too_low(bias):
    values = {key: dict(of) for key, of in bias.results.values.items()}
    for (experiment, _, metric, _, split), of_seed in values.items():
        if (metric, split) == ("bleu", "domain.newstest2014@best"):
            low = 0.01 if experiment == IWSLT14 else 1.2
            of_seed.update({seed: low * seed for seed in of_seed})
    shown = parse_definition(json.dumps(bias.definition))
    figure, _ = draw_figure(shown, "figure12", replace(bias.results, values=values))
    low, high = figure.axes[:2]
    assert next(tick for tick in low.get_yticks() if low.get_ylim()[0] <= tick) == 0
    assert low.get_ylim()[1] == 1
    assert [text.get_text() for text in low.texts][-1] == "below 1 BLEU"
    assert "below 1 BLEU" not in [text.get_text() for text in high.texts]
    text = draw_figure(shown, "figure16", bias.results)[1]
    assert text.endswith("validation text; here it is test text: newstest2014.")


def test_points_of_a_grid_are_compared_with_every_seed_of_zero_bias(bias):
    """A band around the line could leave out a seed, because the line is the mean of some seeds."""
    (axes,), text = _all_axes(bias.definition, "figure11", bias.folder)
    zero = translation_metrics.in_domain(bias.results, parse_definition(json.dumps(bias.definition)).methods["zero"])
    (line,) = [line for line in axes.get_lines() if line.get_label() == ZERO_LINE]
    assert line.get_ydata()[0] == pytest.approx(np.mean(list(zero.values())))
    assert {part.get_text(): part.get_position()[1] for part in axes.texts} == {
        f"seed {seed}": pytest.approx(value) for seed, value in zero.items()
    }
    assert f"each seed of zero bias; their mean, {np.mean(list(zero.values())):.2f}, is in figure 2." in text
    assert not axes.patches
    assert {container.lines[0].get_linestyle() for container in axes.containers} == {"None"}


def test_figure_5_shows_the_difference_from_zero_bias_by_seed(bias):
    axes = _axes(bias, "figure5")
    below = next(one for one in axes if one.get_ylabel() == "minus zero bias")
    shown = parse_definition(json.dumps(bias.definition))
    curves = {}
    for name in ("zero", "unigram"):
        runs = bias.results.seeds_with_arrays(shown.methods[name].within(IWSLT14))
        curves[name] = np.stack([translation_metrics.curve(arrays)[1] for _, arrays in runs])
    line = below.get_lines()[-1]
    assert line.get_color() == LOOKS["unigram"]["color"]
    assert np.allclose(line.get_ydata(), (curves["unigram"] - curves["zero"]).mean(0))


def test_starts_are_marked_at_different_steps(bias):
    """Their curves nearly agree: markers at the same steps would hide each other."""
    methods = [parse_definition(json.dumps(bias.definition)).methods[name] for name in ("none", "zero", "unigram")]
    firsts, distances = zip(*(_look(method, 20)["markevery"] for method in methods), strict=True)
    assert sorted(firsts) == [0, 1, 2]
    assert min(distances) > 2
    assert {_look(method, 1)["markevery"][0] for method in methods} == {0}


@pytest.mark.parametrize(
    ("item", "key", "largest"), [("figure13", "divergence", "zero"), ("figure14", "norm", "unigram")]
)
def test_figures_13_and_14_show_changes_and_the_limit_of_the_claim(bias, item, key, largest):
    panel = draw(bias.definition, item, bias.folder)[0][0]
    shown = parse_definition(json.dumps(bias.definition))
    values = {}
    for name in ("zero", "unigram"):
        runs = bias.results.seeds_with_arrays(shown.methods[name].within(IWSLT14))
        values[name] = np.stack([arrays[f"output_bias.{key}"] for _, arrays in runs]).mean(0)
    for line, of in zip(panel.get_lines(), values.values(), strict=True):
        assert np.allclose(line.get_ydata(), of - of[0], atol=1e-5)
    assert panel.patches[0].get_height() == pytest.approx(2 * STAYS * values[largest][0])


def test_the_legend_covers_all_panels(bias, tmp_path):
    """The first data set has the zero start alone, the second the log-unigram start."""
    run = copy.deepcopy(bias.definition)
    for name, method in run["methods"].items():
        experiments = {"zero": ["iwslt14_de-en"], "unigram": ["iwslt14_en-de"]}.get(name, [])
        method["trained"] = dict.fromkeys(experiments, method["seeds"])
    collected(tmp_path, run)
    for item in ("figure5", "figure13"):
        axes, _ = _all_axes(bias.definition, item, tmp_path)
        legends = [legend for one in axes if (legend := one.get_legend())]
        shade = {"figure5": "end of the first fifth of training", "figure13": "±5% of the larger start"}[item]
        assert [text.get_text() for text in legends[0].get_texts()] == [shade, "Zero bias", "Log-unigram bias"]


def test_a_start_has_one_colour_in_all_figures(bias):
    (axes,) = _axes(bias, "figure11")
    lines = {line.get_label(): line.get_color() for line in axes.get_lines()}
    assert lines.pop(ZERO_LINE) == LOOKS["zero"]["color"]
    strengths = [container.lines[0].get_color() for container in axes.containers]
    assert len(set(strengths)) == 2
    assert not set(strengths) & {look["color"] for look in LOOKS.values()}
    for item in ("figure5", "figure13", "figure14"):
        panels, _ = draw(bias.definition, item, bias.folder)
        for line in (line for axes in panels for line in axes.get_lines() if not line.get_label().startswith("_")):
            if line.get_label().startswith("end of"):
                continue
            name = {"No bias": "none", "Zero bias": "zero", "Log-unigram bias": "unigram"}[line.get_label()]
            assert line.get_color() == LOOKS[name]["color"]


def test_without_runs_every_item_says_so(tmp_path):
    (tmp_path / "metrics.csv").write_text("paper,experiment,method,seed,metric,group,split,value,n,signature,run\n")
    definition = fake_translation.definition_of()
    for item in FIGURES:
        assert draw(definition, item, tmp_path)[1] == "Not run.", item
    found = verdicts_of(definition, read_results(tmp_path))
    assert {row["alone"] for row in found.values()} == {"not run"}
    assert all(row["note"] for row in found.values())


def test_without_data_sets_every_item_says_so(tmp_path):
    definition = fake_translation.definition_of(left_out=tuple(fake_translation.definition_of()["settings"]))
    for item in FIGURES:
        assert draw(definition, item, tmp_path)[1].startswith("Not run"), item


def test_a_figure_beyond_the_scale_is_one_line(tmp_path):
    definition = fake_translation.definition_of(left_out=["wmt14_de-en"])
    definition["figures"] = {"figure7": definition["figures"]["figure7"]}
    run = copy.deepcopy(definition)
    for name, method in run["methods"].items():
        method["trained"] = dict.fromkeys(["iwslt14_de-en"] if name == "zero" else [], method["seeds"])
    collected(tmp_path, run)
    figure, caption = draw_figure(parse_definition(json.dumps(definition)), "figure7", read_results(tmp_path))
    assert caption == "Not run: beyond this scale."
    style.save(figure, tmp_path / "figures" / "natural_bias" / "figure7", "Title", caption)
    style._captioned(figure, "Title", caption)
    assert [part.get_text() for part in figure.texts] == [caption, "Title", ""]
    page = make_report(tmp_path, json.dumps(definition)).with_name("natural_bias.html").read_text(encoding="utf-8")
    assert "WMT14 De-En (beyond this scale)</li>" in page


def test_the_page_shows_natural_bias(bias, tmp_path):
    definition = copy.deepcopy(bias.definition)
    definition["figures"] = {key: definition["figures"][key] for key in ("figure2", "figure7")}
    text = json.dumps(definition)
    stem = bias.folder / "figures" / "natural_bias"
    for item in definition["figures"]:
        arguments = [f"--definition={json.dumps(definition)}", f"--results={bias.folder}"]
        assert main(["figure", f"--item={item}", *arguments, f"--output-stem={stem / item}"]) == 0
    output = make_report(bias.folder, text)
    page = output.with_name("natural_bias.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<h3[^>]*>Figure .*?</h3>", page)) == 2
    # Every method in its first experiment, and the three starts in the other six.
    assert f"{3 * (16 + 3 * 6)} of {3 * (16 + 3 * 6)}" in page
    assert (read_csv(bias.folder / "claims.csv")["paper"] == "natural_bias").all()
