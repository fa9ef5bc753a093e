"""Figures: files, determinism, captions."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from fake_results import PUBLISHED, ROOT, TEMPERATURES

from rarepapers.__main__ import main
from rarepapers.papers.stop_jostling import schematic
from rarepapers.papers.stop_jostling.figures import _example, figure2, figure4, figure5, figure7, figureS1
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.figures import style
from rarepapers.reporting.figures.language_panels import draw_legend, panels_over_legend, scatter_groups
from rarepapers.reporting.figures.panels import mean_and_band
from rarepapers.reporting.figures.shown import first_run, gaps_note, means_note
from rarepapers.reporting.results import printed_numbers, read_results

# All formats; other tests draw svg only (conftest.py).
METADATA = style.METADATA
ITEMS = [*(f"figure{k}" for k in range(1, 9)), "figureS1"]


@pytest.mark.parametrize("item", ITEMS)
def test_titles_name_the_scale(figures, item):
    svg = (figures / f"{item}.svg").read_text()
    title = re.search(r"<dc:title>(.*?)</dc:title>", svg)[1]
    assert title.startswith(f"Stop Jostling (Turumtaev 2025): Figure {item.removeprefix('figure')}. ")
    # Figure 1 is a drawing.
    assert title.endswith("(the paper's own scale)") == (item != "figure1")


def test_every_format_is_written_and_the_same_bytes_again(scale, tmp_path, monkeypatch):
    monkeypatch.setattr(style, "METADATA", METADATA)
    for folder in ("one", "two"):
        assert scale.figure("figure8", tmp_path / folder / "figure8") == 0
    for suffix, begins in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        one, two = (tmp_path / folder / f"figure8{suffix}" for folder in ("one", "two"))
        assert one.read_bytes().startswith(begins)
        assert one.read_bytes() == two.read_bytes()


def test_figure4_names_its_position(figures):
    assert "position 3 of 16: the first where both models rank" in (figures / "figure4.svg").read_text()


def test_figure4_names_the_methods_of_the_targets_probabilities(scale):
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    (axes,) = figure4(definition, "figure4", results)[0].axes
    assert re.fullmatch(r"target .*: 0\.\d\d by Baseline, 0\.\d\d by Proposed \(margin=2\)", axes.texts[0].get_text())


def test_zero_is_the_middle_of_the_colours_of_figure5(scale):
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    panels = figure5(definition, "figure5", results)[0].axes
    assert [panel.images[0].get_clim() for panel in panels[1:3]] == [(-1, 1)] * 2


def test_figure7_has_the_numbers_of_the_table_and_of_the_paper(scale):
    """The mean over seeds of the lowest perplexity and its T; the minimum of the mean curve is another."""
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    (axes,) = figure7(definition, "figure7", results)[0].axes
    for method, text in zip(definition.methods_of("figure7"), axes.get_legend().get_texts(), strict=True):
        curves = np.stack([arrays["best.perplexity.HR"] for _, arrays in results.seeds_with_arrays(method)])
        lowest, place = curves.min(1).mean(), TEMPERATURES[curves.argmin(1)].mean()
        assert text.get_text() == f"{method.label}, 2 seeds\n{lowest:.2f} at {place:.2f}"
    printed = replace(results, printed=printed_numbers(PUBLISHED, "stop_jostling"))
    (axes,) = figure7(definition, "figure7", printed)[0].axes
    assert axes.get_legend().get_texts()[0].get_text().endswith(" (paper: 5.01 at 1.08)")


def test_figure_s1_shows_the_printed_numbers(scale):
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    results = replace(results, printed=printed_numbers(PUBLISHED, "stop_jostling"))
    for axes in figureS1(definition, "figureS1", results)[0].axes[1:]:
        lines = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert lines == [0.3714, 0.4544]


def test_the_command_reads_the_printed_numbers(scale, tmp_path):
    for arguments, shown in (([], False), ([f"--published={PUBLISHED}"], True)):
        arguments += [f"--definition={scale.text}", f"--results={scale.folder}", f"--output-stem={tmp_path / 'a'}"]
        assert main(["figure", "--item=figure7", *arguments]) == 0
        assert ("paper: 5.01 at 1.08" in (tmp_path / "a.svg").read_text()) == shown


def test_figure2_shows_the_expected_counts(scale):
    text = json.dumps(scale.definition)
    results = read_results(scale.folder)
    figure, _ = figure2(parse_definition(text), "figure2", results)
    counts = first_run(results, parse_definition(text).methods["baseline"])["counts"]
    expected = np.outer([1 - 0.02, 0.02], sorted(counts, reverse=True))
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert np.array_equal(heights, expected.ravel())


def test_figure_s1_shows_every_seed_of_every_reading(scale):
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    figure, _ = figureS1(definition, "figureS1", results)
    methods = [definition.methods[name] for name in definition.figures["figureS1"]["methods"]]
    _, by_seed, by_cosine = figure.axes  # the strip of the legend is first
    for method, points, same in zip(methods, by_seed.lines[:3], by_cosine.lines[:3], strict=True):
        accuracies = list(results.per_seed(method, "accuracy", "LR").values())
        assert len(accuracies) == len(method.seeds)
        assert (points.get_label(), list(points.get_ydata()), list(same.get_ydata())) == (
            method.label,
            accuracies,
            accuracies,
        )
        assert list(same.get_xdata()) == list(results.per_seed(method, "mask_cosine", "T").values())


def test_figure_s1_explains_the_listing_and_its_seeds(scale):
    definition, results = parse_definition(json.dumps(scale.definition)), read_results(scale.folder)
    (listing,) = [method for method in definition.methods_of("figureS1") if method.reading == "listing"]
    assert figureS1(definition, "figureS1", results)[1].endswith("its update is the one without separation.")
    values = {key: dict(of_seed) for key, of_seed in results.values.items()}
    for key, of_seed in values.items():
        if key[:4] == (listing.experiment, listing.name, "accuracy", "LR"):
            of_seed.pop(2)
    _, text = figureS1(definition, "figureS1", replace(results, values=values))
    assert text.endswith("without separation; only the other methods were extended to more seeds.")


def test_steps_of_output_embeddings_in_figure1_are_parallel_to_the_hidden_state():
    panels = list(style.sheet(3).subplots(1, 3))
    schematic.draw(panels)
    for axes, up in zip(panels[1:], (1, -1), strict=True):
        arrows = [patch for patch in axes.patches if patch.get_linewidth() == schematic.STEP["linewidth"]]
        ends = np.array([np.subtract(*arrow._posA_posB[::-1]) for arrow in arrows])
        assert len(ends) == (1 if up > 0 else 4)
        assert np.allclose(ends[:, 0], 0)
        assert (up * ends[:, 1] > 0).all()


def test_reporting_needs_no_torch():
    names = (
        "reporting.tables.table_command reporting.figures.figure_command reporting.claims.claims_command "
        "reporting.page.page_command reporting.collect reporting.record "
        "papers.stop_jostling.figures papers.agg.figures papers.agps.figures papers.natural_bias.figures "
        "papers.cross.figures"
    )
    imports = ", ".join(f"rarepapers.{name}" for name in names.split())
    command = [sys.executable, "-c", f"import sys, {imports}; sys.exit('torch' in sys.modules)"]
    assert subprocess.run(command, cwd=ROOT / "workflow").returncode == 0


def test_the_position_of_figure4_follows_its_rule():
    def run(*likeliest):
        return {
            "symbols": np.arange(3),
            "best.example_targets.HR": np.zeros(3, int),
            "best.examples.HR": np.eye(6)[list(likeliest)],
        }

    assert _example(run(1, 1, 0), run(1, 0, 0))[0] == 2
    assert _example(run(1, 1, 1), run(1, 0, 0))[0] == 1
    position, rule = _example(run(0, 0, 0), run(1, 1, 1))
    assert position == 0
    assert "no target" in rule


@pytest.mark.parametrize("item", ["figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "figureS1"])
def test_missing_runs_are_named(scale, item, tmp_path):
    shutil.copy(scale.folder / "metrics.csv", tmp_path)
    assert scale.figure(item, tmp_path / item, tmp_path) == 0
    assert "Not run." in (tmp_path / f"{item}.svg").read_text()


def test_partly_missing_runs_draw_the_rest(scale, tmp_path):
    shutil.copy(scale.folder / "metrics.csv", tmp_path)
    runs = scale.folder / "runs" / "shakespeare"
    shutil.copytree(runs / "baseline", tmp_path / "runs" / "shakespeare" / "baseline")
    for item in ("figure3", "figure6", "figure7"):
        assert scale.figure(item, tmp_path / item, tmp_path) == 0


def test_a_figure_without_a_function_is_refused(scale, tmp_path, capsys):
    text = json.dumps(scale.definition).replace('"figure1"', '"figure99"')
    arguments = ["--item=figure99", f"--definition={text}", f"--results={scale.folder}", f"--output-stem={tmp_path}/x"]
    assert main(["figure", *arguments]) == 2
    assert "no function figure99" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("counts", "note"),
    [
        ([1, 0, 1], "One seed."),
        ([], "One seed."),
        ([3, 0, 3], "Mean over 3 seeds; the bar."),
        ([4, 1, 0], "Mean over each method's seeds, at most 4; the bar."),
    ],
)
def test_captions_have_the_number_of_seeds(counts, note):
    assert means_note(counts, "the bar") == note


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sign_of_a_component_does_not_change_a_plane(sign):
    plane = np.random.default_rng(0).normal(size=(100, 2))
    plane[80:] += [3, 2]
    axes = style.sheet(3).subplots()
    scatter_groups(axes, sign * plane, np.array([30, 80]))
    rare = axes.collections[-1].get_offsets()
    assert np.allclose(rare, plane[80:].mean(0))
    assert axes.get_xlim()[1] > 4


@pytest.mark.parametrize(("label", "rows"), [("short", 1), ("a label that is too long for four in a row", 2)])
def test_a_legend_is_never_wider_than_its_figure(label, rows):
    figure = style.sheet(3.6)
    (panel,), strip = panels_over_legend(figure, 1, 1)
    draw_legend(strip, [panel[0].plot([0, 1], label=label)[0] for _ in range(4)])
    figure.draw_without_rendering()
    legend = strip.get_legend()
    assert legend.get_window_extent().width <= figure.bbox.width
    assert len({round(text.get_window_extent().y0) for text in legend.get_texts()}) == rows


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_a_curve_of_means_has_a_gap_where_a_seed_is_not_finite(odd):
    """The mean is never that of the other seeds; elsewhere line and band are the same."""
    usual = np.array([[1.0, 2.0, 8.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0, 6.0]])
    values = usual.copy()
    values[0, 2] = odd
    with style.house_style():
        whole, parts = style.sheet(3.0).subplots(1, 2)
        look = {"color": "#000000"}
        mean_and_band(whole, np.arange(5), usual, "two seeds", look)
        mean = mean_and_band(parts, np.arange(5), values, "two seeds", look)
    assert np.array_equal(mean, values.mean(0), equal_nan=True)
    drawn = [line.get_xydata().tolist() for line in parts.lines if len(line.get_xdata())]
    assert drawn == [[[0, 2], [1, 3]], [[3, 4.5], [4, 5]]]
    assert len(parts.get_legend_handles_labels()[1]) == 1
    (band,), others = ([one.get_paths()[0].vertices for one in axes.collections] for axes in (whole, parts))
    assert {tuple(point) for part in others for point in part.tolist()} <= {tuple(point) for point in band.tolist()}


def test_a_curve_without_any_finite_mean_keeps_its_name():
    with style.house_style():
        axes = style.sheet(3.0).subplots()
        mean_and_band(axes, np.arange(2), np.full((2, 2), np.nan), "two seeds", {"color": "#000000"})
    assert axes.get_legend_handles_labels()[1] == ["two seeds"]


def test_a_caption_names_the_seeds_that_leave_gaps():
    finite, odd = {"a": np.array([1.0, 2.0])}, {"a": np.array([1.0, np.inf]), "b": np.array([np.nan])}
    runs = {"Baseline": [(1, finite), (2, odd), (3, odd)], "Other": [(1, finite)]}
    assert gaps_note(runs, "a") == " Gaps, where a seed is not finite: Baseline, infinite in seeds 2, 3."
    assert "undefined in seeds 2, 3" in gaps_note(runs, "a", "b")
    assert gaps_note({"Other": [(1, finite)]}, "a") == ""
