"""Comparison of all methods: choice, changes, sentences and figure."""

import json
import math
import re
from dataclasses import replace

import fake_comparison as fake
import numpy as np
import pytest
from fake_results import read_csv
from matplotlib.collections import LineCollection

from rarepapers.__main__ import main
from rarepapers.papers.cross.figures import draw_points, drawn_lines, figure1, free_offsets, loss_ticks
from rarepapers.reporting.figures.shown import NotRun
from rarepapers.reporting.figures.style import house_style, sheet
from rarepapers.reporting.results import COLUMNS, read_results
from rarepapers.reporting.tables.comparison_table import better_methods, comparison_cells, values_used
from rarepapers.reporting.tables.method_comparison import (
    Change,
    Point,
    chosen_candidate,
    figure_points,
    percent_change,
    seconds_against,
)
from rarepapers.rule_inputs import report

TABLE = fake.workflow()
FAMILIES = TABLE.papers["cross"]["tables"]["table1"]["candidates"]
OTHERS = len(FAMILIES) - 1  # than MLE
BEST = "agg_alpha0.5"
EFFECTS = {
    "agg": (0.0, -20.0),  # gains, costs nothing
    "threshold": (6.0, -40.0),  # gains more, at a price
    "cosreg": (8.0, -30.0),  # beaten by the threshold in both
    "freeze": (1.0, 150.0),  # harms
}


def family_of(method):
    return max((name for name in FAMILIES if method.startswith(f"{name}_")), key=len)


def truth(experiment, method):
    """The candidate that is best on the validation text is the worst on the test text."""
    family = family_of(method)
    frequent, rare = EFFECTS.get(family, (0.0, 0.0))
    if family == "agg":
        return (frequent, rare, 40.0) if method == BEST else (frequent, -90.0, 50.0)
    first = next(iter(FAMILIES[family]["methods"]))
    return frequent, rare, 40.0 if method == first else 45.0


def made(tmp_path, table=TABLE, **options):
    """Definitions of table and figure, and results, of synthetic runs."""
    folder = tmp_path / "results"
    folder.mkdir()
    fake.write(folder, table, options.pop("truth", truth), **options)
    definition = fake.definition(table)
    return definition, fake.results_of(folder, definition)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return made(tmp_path_factory.mktemp("comparison"))


def cells_by(cells, task):
    return {(cell.row.removesuffix(f" [{task}]"), cell.column): cell for cell in cells if cell.reading == task}


def said(definition, results):
    """(task, methods named better for rare tokens, those of them without a loss) of each sentence."""
    sentences = better_methods(definition, "table1", comparison_cells(definition, "table1", results, None))
    found = [re.fullmatch(r"(.*): better .* than MLE: (.*); .*: (.*)\.", text) for text in sentences[:-1]]
    return [(match[1], *(set(match[part].split(", ")) for part in (2, 3))) for match in found]


def test_methods_better_for_rare_tokens_are_named(finished):
    for _, better, free in said(*finished):
        assert better >= {"AGG", "Threshold", "CosReg"}
        assert better.isdisjoint({"MLE", "Freeze"})
        assert "AGG" in free
        assert free.isdisjoint({"Threshold", "CosReg"})


def test_with_one_seed_no_method_is_named(tmp_path):
    assert said(*made(tmp_path, fake.workflow(seeds=1))) == []


def test_the_validation_text_chooses(finished):
    definition, results = finished
    found = chosen_candidate(definition, results, FAMILIES["agg"], "cross_bpe")
    assert (found.method.name, found.words) == (BEST, "alpha=0.5")
    assert (found.finished, found.tried, found.seeds) == (3, 3, (1, 2, 3))
    assert found.criterion == pytest.approx(40, rel=0.01)
    # By the test text, another candidate would be chosen.
    rare = {
        name: results.per_seed(
            definition.methods[name].within("cross_bpe"), "fitted_perplexity", "rare", split="test@best"
        )
        for name in FAMILIES["agg"]["methods"]
    }
    assert min(rare, key=lambda name: sum(rare[name].values())) != BEST


def criterion_of(results, method, experiment="cross_bpe"):
    """The perplexities of the validation text by seed, to change them."""
    return results.values[(experiment, method, "fitted_perplexity", "total", "valid@best")]


def test_candidates_are_compared_on_common_seeds(tmp_path):
    """Seed 3 of the second candidate alone would make it the best."""
    first, second, third = FAMILIES["cosreg"]["methods"]

    definition, results = made(
        tmp_path,
        left_out=lambda run: run.method == third or (run.method == second and run.seed != 3),
    )
    criterion_of(results, second)[3] = 41.0
    criterion_of(results, first).update({1: 10.0, 2: 10.0, 3: 42.0})
    found = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    assert (found.method.name, found.seeds, found.finished) == (second, (3,), 2)
    assert found.caveats == ["the choice is provisional: 5 of 9 runs missing"]
    criterion_of(results, first)[3] = 40.5
    assert chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe").method.name == first
    # Without a common seed the candidates cannot be compared: the first one is used, however bad a seed of its own is.
    criterion_of(results, first).update({1: 90.0, 2: 90.0})
    del criterion_of(results, first)[3]
    found = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    assert (found.method.name, found.seeds, found.missing) == (first, (), 6)


def test_a_diverged_candidate_ranks_last(tmp_path):
    """However good its other seeds; if all candidates diverged, the one with the fewest diverged seeds is chosen."""
    first, second, third = FAMILIES["cosreg"]["methods"]
    definition, results = made(tmp_path)
    criterion_of(results, first).update({1: 10.0, 2: 10.0, 3: math.inf})
    found = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    assert found.method.name in (second, third)
    assert (found.seeds, found.diverged, found.caveats) == ((1, 2, 3), 0, [])
    criterion_of(results, first)[2] = math.inf
    criterion_of(results, second)[1] = math.inf
    criterion_of(results, third).update({1: math.inf, 2: math.inf, 3: 1.0})
    found = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    assert (found.method.name, found.criterion) == (second, math.inf)
    remark = "the chosen one diverged in 1 of 3 seeds; every candidate diverged in as many seeds or more"
    assert found.caveats == [remark]
    cells = cells_by(comparison_cells(definition, "table1", results, tmp_path), "BPE tokens")
    assert cells["CosReg", "chosen"].remarks == (remark,)
    drawn = figure_points(definition, results, fake.definition(TABLE).figures["figure1"], "cross_bpe")
    assert [point.label for point in drawn if not point.is_drawn] == ["CosReg"]
    # Without the first method there is no sentence on this task.
    for name in FAMILIES["mle"]["methods"]:
        criterion_of(results, name)[2] = math.inf
    assert [task for task, _, _ in said(definition, results)] == ["Characters", "Translation"]


def test_a_perplexity_that_is_not_a_number_is_infinite_but_not_that_of_no_token(tmp_path):
    rows = [("fitted_perplexity", "some", 5), ("fitted_perplexity", "none", 0), ("bleu", "", 5)]
    lines = [f"cross,e,m,1,{metric},{group},test@best,nan,{n},made:up,0" for metric, group, n in rows]
    (tmp_path / "metrics.csv").write_text("\n".join([",".join(COLUMNS), *lines, ""]))
    found = read_results(tmp_path)
    assert found.values == {
        ("e", "m", "fitted_perplexity", "some", "test@best"): {1: math.inf},
        ("e", "m", "bleu", "", "test@best"): {1: pytest.approx(math.nan, nan_ok=True)},
    }


def test_a_temperature_at_the_end_of_the_search_has_a_note(tmp_path):
    """Runs without this record have no remark."""
    definition, results = made(tmp_path)
    results.values[("cross_bpe", BEST, "temperature_at_bound", "", "valid@best")] = {1: 0.0, 2: 1.0, 3: 1.0}
    found = cells_by(comparison_cells(definition, "table1", results, tmp_path), "BPE tokens")
    remark = "in 2 of 3 seeds the temperature is at an end of the searched interval and may not be the best"
    assert found["AGG", "chosen"].remarks == (remark,)
    assert found["AGG", "chosen"].note.endswith(remark)
    assert found["Threshold", "chosen"].remarks == ()


def test_a_change_without_an_interval_says_why(tmp_path):
    definition, results = made(tmp_path, noise=0)

    def note(results):
        cells = cells_by(comparison_cells(definition, "table1", results, tmp_path), "BPE tokens")
        return cells["Threshold", "rare - MLE, %"].note

    assert note(results) == "equal values in all seeds: no interval"
    first = {key: {1: seeds[1]} for key, seeds in results.values.items()}
    assert note(replace(results, values=first)) == "one seed: no interval"


def test_a_method_with_a_diverged_seed_is_not_named(tmp_path):
    """By its other two seeds alone, the threshold would be the best for rare tokens."""
    definition, results = made(tmp_path)
    name = next(iter(FAMILIES["threshold"]["methods"]))
    results.values[("cross_bpe", name, "fitted_perplexity", "rare", "test@best")][2] = math.inf
    cells = comparison_cells(definition, "table1", results, tmp_path)
    found = cells_by(cells, "BPE tokens")
    change_of = found["Threshold", "rare - MLE, %"]
    assert (change_of.value, change_of.interval, change_of.seeds) == (math.inf, None, 3)
    assert change_of.note == "not finite in some seeds"
    assert ["Threshold" in better for _, better, _ in said(definition, results)] == [True, False, True]
    with house_style():
        figure, text = figure1(fake.definition(TABLE), "figure1", results)
    assert "Not drawn: Threshold (rare: infinite in seed 2)." in text
    assert figure.axes[1].get_title(loc="right") == f"not finite in some seed: 1 of {OTHERS} methods"
    assert not any(text.get_text().startswith("Threshold  ") for text in figure.axes[1].texts)


def test_the_axis_of_losses_has_a_tick_where_it_turns_logarithmic():
    assert loss_ticks(-3.0, 150.0) == [-2.0, -1.0, 0.0, 1.0, 2.0, 10.0, 100.0]
    assert loss_ticks(-1.0, 1.0) == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("ours", [(26.9, 27.1), (24.0, 30.0), (20.0, 30.0), (10.0, 40.0)])
def test_an_interval_that_reaches_no_perplexity_at_all_has_no_upper_gain(ours):
    """The wider the interval of a change, the longer its bar of gains; without an upper end it reaches the edge."""
    base = {1: 100.0, 2: 100.0}
    rare, frequent = percent_change(dict(enumerate(ours, 1)), base), percent_change({1: 101.0, 2: 101.1}, base)
    lower, upper = rare.interval
    with house_style():
        axes = sheet(5.0).subplots()
        draw_points(axes, [Point("AGG", frequent, rare, False, "")], "MLE")
    bars = [line.get_segments()[0][:, 1] for line in axes.collections if isinstance(line, LineCollection)]
    (bar,) = [bar for bar in bars if bar[0] != bar[1]]
    assert bar[0] == pytest.approx(1 / (1 + upper / 100))
    arrows = [line for line in axes.lines if line.get_marker() == "^"]
    if lower <= -100:
        assert bar[1] == axes.get_ylim()[1]
        assert [line.get_ydata()[0] for line in arrows] == [axes.get_ylim()[1]]
    else:
        assert bar[1] == pytest.approx(1 / (1 + lower / 100))
        assert bar[1] < axes.get_ylim()[1]
        assert not arrows


def test_changes_are_paired_by_seed():
    # Seeds differ by a factor of ten, but their ratios hardly differ.
    found = percent_change({1: 11.0, 2: 110.0, 3: 1110.0, 9: 5.0}, {1: 10.0, 2: 100.0, 3: 1000.0})
    assert found.mean == pytest.approx(100 * (0.1 + 0.1 + 0.11) / 3)
    assert found.seeds == 3
    # t for two degrees of freedom, 4.3027, times 0.5774 / sqrt(3)
    assert found.interval[1] - found.mean == pytest.approx(4.3027 * 100 * 0.0057735 / math.sqrt(3), rel=1e-3)
    assert percent_change({1: 9.0}, {1: 10.0}) == Change(pytest.approx(-10.0), None, 1)
    # A seed that is not finite is not left out.
    assert percent_change({1: math.inf, 2: 9.0}, {1: 10.0, 2: 10.0}) == Change(math.inf, None, 2, "infinite in seed 1")
    assert percent_change({1: 9.0}, {2: 9.0}) is None
    # The change relative to 0, or to a value that is not finite, is undefined.
    for base in (math.inf, math.nan, 0.0):
        found = percent_change({1: 9.0, 2: 9.0}, {1: base, 2: 10.0})
        assert math.isnan(found.mean)
        assert found[1:] == (None, 2, "undefined in seed 1")


def test_only_comparable_times_are_compared():
    def training(seconds, **more):
        return {1: {"seconds": seconds, "device": "one"} | more}

    assert seconds_against(training(30.0), training(20.0)) == ({1: 1.5}, "")
    cpu = {"device": "CPU (of some kind)"}
    busy = seconds_against(training(90.0, **cpu, cpu_seconds=24.0), training(20.0, **cpu, cpu_seconds=20.0))
    assert busy == ({1: 1.2}, "")
    earlier = seconds_against(training(30.0, **cpu, cpu_seconds=30.0), training(20.0, **cpu))
    assert earlier == ({}, "trained before CPU time was recorded")
    shared = seconds_against(training(30.0, together=8), training(20.0, together=8))
    assert shared == ({}, "trained in a job with other runs: no separate time")
    other = seconds_against(training(30.0, device="another"), training(20.0))
    assert other == ({}, "trained on a different kind of machine from the first method")


def test_values_in_units_of_the_corpus_are_shown_as_the_run_used_them():
    assert values_used("alpha=1", {"alpha": 0.0472, "rare_types": 1614}) == "alpha=0.0472"
    assert values_used("margin=1, mu_1=500", {"mu_1": 1662.5}) == "margin=1, mu_1=1662"
    assert values_used("learning rate x1", {"alpha": 0.04723}) == "learning rate x1"
    assert values_used("label_smoothing=0.1", {}) == "label smoothing=0.1"


def test_the_table_has_a_grid_for_each_task(finished, tmp_path):
    definition, results = finished
    cells = comparison_cells(definition, "table1", results, tmp_path)
    for task in ("characters", "BPE tokens", "translation"):
        found = cells_by(cells, task)
        assert found["AGG", "chosen"].value == "alpha=0.5"
        assert found["AGG", "frequent"].seeds == 3
        assert found["AGG", "seeds"].value == "3"
        assert found["AGG", "rare - MLE, %"].value == pytest.approx(-20, abs=0.5)
        lower, upper = found["AGG", "rare - MLE, %"].interval
        assert lower < -20 + 0.5
        assert lower < found["AGG", "rare - MLE, %"].value < upper < 0
        assert found["AGG", "time / MLE's"].value == 1.25
        assert found["MLE", "rare - MLE, %"].value is None
        assert not found["AGG", "rare"].best
        assert (("AGG", "BLEU") in found) == (task == "translation")
        assert (("AGG", "medium") in found) == (task != "characters")
    assert len({(cell.row, cell.column) for cell in cells}) == len(cells)


def test_the_table_renders_as_csv_markdown_and_latex(finished, tmp_path):
    _, results = finished
    text = json.dumps(report.definition(TABLE, "cross"))
    stem = tmp_path / "table1"
    assert (
        main(
            [
                "table",
                "--item=table1",
                f"--definition={text}",
                f"--results={results.folder}",
                f"--published={fake.ROOT / 'config' / 'published'}",
                f"--output-stem={stem}",
            ]
        )
        == 0
    )
    csv = read_csv(stem.with_suffix(".csv"))
    (row,) = csv[(csv["row"] == "AGG [BPE tokens]") & (csv["column"] == "rare - MLE, %")].to_dict("records")
    assert float(row["value"]) == pytest.approx(-20, abs=0.5)
    assert re.fullmatch(r"95% interval -\d+\.\d+ to -\d+\.\d+", row["note"])
    markdown = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert "not comparable" not in markdown
    assert "compared with the paper" not in markdown
    assert markdown.index("Characters: better for rare tokens than MLE: ") < markdown.index("#### Characters")
    latex = stem.with_suffix(".tex").read_text(encoding="utf-8")
    for heading in ("Characters", "BPE tokens", "Translation"):
        assert f"{{l}}{{\\emph{{{heading}}}}}" in latex
    assert len(re.findall(r"\nAGG & .* & alpha=0\.5 & ", latex)) == 3
    # One header for all grids: cells that a task does not measure are empty.
    heads = next(line for line in latex.splitlines() if line.startswith(" & ")).split(" & ")
    assert [head.split(" ")[0] for head in heads[1:7]] == ["frequent", "rare", "seeds", "frequent", "medium", "rare"]


def test_missing_runs_are_named_and_the_rest_is_shown(tmp_path):
    """Characters: MLE alone. BPE: MLE, AGG, CosReg, and a candidate of the threshold. Translation: MLE of two seeds."""
    threshold = next(iter(FAMILIES["threshold"]["methods"]))

    def left_out(run):
        if run.experiment == "cross_bpe":
            return run.method != threshold and family_of(run.method) not in ("mle", "agg", "cosreg")
        return family_of(run.method) != "mle" if run.experiment == "cross_character" else run.seed == 3

    definition, results = made(tmp_path, left_out=left_out)
    cells = comparison_cells(definition, "table1", results, tmp_path)
    # The threshold's choice is provisional, and so is that of MLE in translation.
    assert said(definition, results) == [("BPE tokens", {"AGG", "CosReg"}, {"AGG"})]
    found = cells_by(cells, "BPE tokens")
    assert found["AGG", "chosen"].remarks == ()
    assert found["Threshold", "chosen"].remarks == ("the choice is provisional: 6 of 9 runs missing",)
    assert found["Freeze", "chosen"].note == "not run"
    # Bold is the best final choice, if its interval overlaps no other.
    assert {label for (label, column), cell in found.items() if column == "rare" and cell.best} <= {"CosReg"}
    found = cells_by(cells, "translation")
    assert found["AGG", "rare"].note == "2 of 3 seeds"
    with house_style():
        figure, text = figure1(fake.definition(TABLE), "figure1", results)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["BPE tokens", "Translation"]
    assert figure.axes[0].get_title(loc="right") == f"not run: {OTHERS - 3} of {OTHERS} methods"
    assert "95% t interval over at most 3 seeds" in text
    # Provisional are one of three points, and all if the first method is.
    for axes, provisional, number in ((figure.axes[0], 1, 3), (figure.axes[1], OTHERS, OTHERS)):
        names = [text.get_text() for text in axes.texts if "  " in text.get_text()]
        assert (sum("provisional" in name for name in names), len(names)) == (provisional, number)
    assert "Provisional: runs are missing" in text


def test_unfinished_seeds_do_not_change_the_choice(tmp_path):
    """With more seeds still running, the report uses the finished ones."""
    first = next(iter(FAMILIES["cosreg"]["methods"]))
    definition, results = made(tmp_path)
    more = replace(definition.methods[first], seeds=(1, 2, 3, 4))
    definition = replace(definition, methods=definition.methods | {first: more})
    before = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    criterion_of(results, first)[4] = 1e6
    found = chosen_candidate(definition, results, FAMILIES["cosreg"], "cross_bpe")
    assert found == before
    assert (found.method.name, found.method.seeds, found.caveats) == (first, (1, 2, 3), [])


def test_a_single_candidate_in_a_single_task_is_no_choice(tmp_path):
    definition, results = made(tmp_path, left_out=lambda run: run.seed == 3)
    entry = definition.entry("table1")
    single = {name: one | {"methods": dict([*one["methods"].items()][:1])} for name, one in FAMILIES.items()}
    settings = {"cross_bpe": definition.settings["cross_bpe"]}
    definition = replace(definition, settings=settings, tables={"table1": entry | {"candidates": single}})
    cells = {(cell.row, cell.column): cell for cell in comparison_cells(definition, "table1", results, None)}
    assert cells["CosReg", "chosen"].remarks == ()
    assert cells["CosReg", "seeds"].value == "2 of 3"
    assert (cells["CosReg", "rare"].note, cells["CosReg", "rare"].remarks) == ("2 of 3 seeds", ())


def test_the_figure_notes_different_seeds(tmp_path):
    def left_out(run):
        return run.seed == 3 or (run.seed == 2 and run.method.startswith("freeze"))

    _, results = made(tmp_path, left_out=left_out)
    with house_style():
        figure, text = figure1(fake.definition(TABLE), "figure1", results)
    assert "95% t interval over at most 2 seeds; hollow: one seed" in text
    for axes in figure.axes:
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert [round(float(line.get_ydata()[0]), 1) for line in hollow] == [0.4]  # Freeze
        names = [text.get_text() for text in axes.texts if "  " in text.get_text()]
        assert all(re.search(r"  x\d+\.\d\d(, provisional)?$", name) for name in names)


def test_the_figure_has_a_line_of_the_first_method_with_a_constant(tmp_path):
    """The mean over seeds of the changes, for the chosen candidate and only where it was measured."""
    definition, results = made(tmp_path)
    first = next(iter(FAMILIES["mle"]["methods"]))
    perplexities = np.ones((5, 4)) * (20, 200, 900, 40)
    for seed, (frequent, rare) in enumerate([(22, 300), (21, 330), (20, 360)], 1):
        perplexities[4] = frequent, 200, rare, 41
        folder = replace(definition.methods[first], experiment="cross_bpe").run_folder(results.folder, seed)
        np.savez(folder / "arrays.npz", **{"best.offsets": np.arange(5) / 4, "best.offset_perplexities": perplexities})
    with house_style():
        figure, text = figure1(definition, "figure1", results)
    lines = [[line for line in axes.lines if line.get_label() == "MLE + constant"] for axes in figure.axes]
    assert [len(one) for one in lines] == [0, 1, 0]
    assert lines[1][0].get_xydata()[[0, 4]] == pytest.approx(np.array([[0, 1], [5, 900 / 330]]))
    assert "MLE with one constant added" in text


def test_the_figure_shows_every_method_with_its_interval(finished, tmp_path):
    _, results = finished
    definition = fake.definition(TABLE)
    with house_style():
        figure, _ = figure1(definition, "figure1", results)
        figure.draw_without_rendering()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Characters", "BPE tokens", "Translation"]
    for axes, experiment in zip(figure.axes, fake.EXPERIMENTS, strict=True):
        found = figure_points(definition, results, definition.figures["figure1"], experiment)
        assert len(found) == OTHERS
        names = [text.get_text().split("  ")[1] for text in axes.texts if "  " in text.get_text()]
        assert names == [point.label for point in sorted(found, key=lambda point: point.rare.mean)]
    stem = tmp_path / "figure1"
    whole = json.dumps(report.definition(TABLE, "cross"))
    arguments = [f"--definition={whole}", f"--results={results.folder}"]
    assert main(["figure", "--item=figure1", *arguments, f"--output-stem={stem}"]) == 0
    assert stem.with_suffix(".svg").exists()


def test_numbers_of_near_points_do_not_overlap():
    points = [(0.5, 0.5), (0.51, 0.5), (0.5, 0.51), (0.51, 0.51)]
    with house_style():
        axes = sheet(4).subplots()
        numbers = [
            axes.annotate(str(number), point, offset, textcoords="offset points", fontsize=9)
            for number, (point, offset) in enumerate(zip(points, free_offsets(axes, points), strict=True), 8)
        ]
        boxes = [number.get_window_extent() for number in numbers]
    assert not any(box.count_overlaps(boxes[:index]) for index, box in enumerate(boxes))


def test_numbers_stay_off_lines():
    with house_style():
        axes = sheet(4).subplots()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.axhline(0.5)
        axes.errorbar(0.5, 0.55, xerr=0.2)
        ((offset,), (free,)) = (free_offsets(axes, [(0.5, 0.48)], lines) for lines in ((), drawn_lines(axes)))
    above, below = offset[1] > 0, free[1] < 0
    assert above
    assert below


def test_everything_renders_without_runs(tmp_path):
    definition, results = made(tmp_path, left_out=lambda run: True)
    cells = comparison_cells(definition, "table1", results, tmp_path)
    assert all(cell.value is None for cell in cells)
    assert said(definition, results) == []
    with pytest.raises(NotRun):
        figure1(fake.definition(TABLE), "figure1", results)


def test_methods_without_a_grid_are_their_own_candidate(finished, tmp_path):
    definition, results = finished
    entry = definition.tables["table1"]
    plain = {key: value for key, value in entry.items() if key != "candidates"} | {"methods": ["mle_rate1", BEST]}
    definition = replace(definition, tables={"table1": plain})
    found = cells_by(comparison_cells(definition, "table1", results, tmp_path), "characters")
    assert found["AGG (alpha=0.5)", "chosen"].value == "as it is"
    assert found["AGG (alpha=0.5)", "rare - MLE (learning rate x1), %"].value == pytest.approx(-20, abs=0.5)
