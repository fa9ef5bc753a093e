"""Figures and claims of natural_bias, from made-up runs, from some of them and from none."""

import copy
import json
import re
from types import SimpleNamespace

import fake_translation
import numpy as np
import pytest
from fake_language import item_of
from fake_results import PUBLISHED, read_csv

from raretok.__main__ import main
from raretok.reporting import translated
from raretok.reporting.claims import judge_paper
from raretok.reporting.collect import read_item
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import parse_definition
from raretok.reporting.figure import drawing
from raretok.reporting.figures.style import house_style
from raretok.reporting.named import natural_bias
from raretok.reporting.results import read_results

FIGURES = [f"figure{k}" for k in range(1, 17)]
SIX = ["Multi30k De-En", "IWSLT14 En-De", "Kirundi Run-En", "AfroMT En-Run", "Autshumato Af-En", "AfroMT En-Af"]


def collected(folder, paths):
    assert main(["collect", "--metrics", *map(str, paths), "--output", str(folder / "metrics.csv")]) == 0


@pytest.fixture(scope="module")
def bias(tmp_path_factory):
    """Folder, definition and results of every experiment, three seeds."""
    folder = tmp_path_factory.mktemp("natural_bias") / "small"
    definition = fake_translation.definition_of(seeds=3)
    collected(folder, fake_translation.write_results(folder, definition))
    return SimpleNamespace(folder=folder, definition=definition, results=read_results(folder))


def draw(definition, item, folder):
    """Panels that show anything, and the caption."""
    shown = parse_definition(item_of(definition, item))
    with house_style():
        figure, text = drawing(shown, item)(shown, item, read_item(folder, shown))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    return panels, text


def verdicts_of(definition, results):
    rows = judge_paper(parse_definition(json.dumps(definition)), results, PUBLISHED)
    return {row["id"].removeprefix("natural_bias."): row for row in rows}


@pytest.mark.parametrize("item", FIGURES)
def test_every_figure_is_drawn_whole(bias, item):
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
        assert shown[0].endswith("\nin place of IWSLT14 De-En")
        assert "in place" not in shown[1]


def test_files_name_the_scale_and_the_same_bytes_come_again(bias, tmp_path):
    text = item_of(bias.definition, "figure2")
    for name in ("a", "b"):
        arguments = [f"--definition={text}", f"--results={bias.folder}", f"--output-stem={tmp_path / name}"]
        assert main(["figure", "--item=figure2", *arguments]) == 0
    assert "made-up data; not comparable with the paper" in (tmp_path / "a.svg").read_text()
    for suffix in ("svg", "png", "pdf"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_bars_are_means_with_standard_errors(bias):
    panels, text = draw(bias.definition, "figure2", bias.folder)
    values = np.array(list(bias.results.values["iwslt14_de-en", "unigram", "bleu", "", "test@best"].values()))
    assert len(values) == 3
    bar = panels[0].patches[2]
    assert bar.get_y() + bar.get_height() == pytest.approx(values.mean())
    ends = panels[0].collections[-1].get_segments()[0][:, 1]
    assert (ends[1] - ends[0]) / 2 == pytest.approx(values.std(ddof=1) / 3**0.5)
    assert "standard error over 3 seeds" in text
    low, high = panels[0].get_ylim()
    assert high - low >= 0.5


def test_scales_of_axes(bias):
    panels, _ = draw(bias.definition, "figure1", bias.folder)
    assert {axes.get_xscale() for axes in panels} == {"symlog"}
    panels, _ = draw(bias.definition, "figure5", bias.folder)
    assert {(axes.get_xscale(), axes.get_yscale()) for axes in panels} == {("linear", "log")}
    (axes,) = _axes(bias, "figure11")
    assert [round(place) for place in axes.get_xticks()] == [10, 20, 40, 80]  # 500 ... 4,000 of 50,000, of 1,000
    assert axes.get_ylim()[1] < 1


def _axes(bias, item):
    shown = parse_definition(item_of(bias.definition, item))
    with house_style():
        figure, _ = drawing(shown, item)(shown, item, read_item(bias.folder, shown))
    return figure.axes


def test_what_the_scale_leaves_out_has_no_panel(tmp_path):
    """Of two data sets, one was not run at all, and one without its log-unigram start."""
    gone = ("wmt14_de-en", "afromt_run-en", "afromt_en-run", "afromt_af-en", "afromt_en-af")
    definition = fake_translation.definition_of(seeds=1, left_out=gone)
    run = copy.deepcopy(definition)
    for name, method in run["methods"].items():
        method["trained"] = ["iwslt14_de-en"] if name in ("zero", "none", "c4") else []
    collected(tmp_path, fake_translation.write_results(tmp_path, run))
    panels, text = draw(definition, "figure2", tmp_path)
    assert [axes.get_title(loc="left").split("\n")[0] for axes in panels] == SIX[:2]
    assert "One seed; the vertical axes" in text
    assert [part.get_text() for part in panels[0].texts][-1] == "not run"
    assert len(panels[0].patches) == 2
    assert any("not run:" in part.get_text() for part in panels[1].texts)
    for item in ("figure7", "figure8"):
        assert draw(definition, item, tmp_path)[1] == "Not run."
    found = verdicts_of(definition, read_results(tmp_path))
    assert found["f7_8.wmt"]["verdict"] == "not run"
    assert "wmt14_de-en is left out at this scale" in found["f7_8.wmt"]["note"]
    assert "unigram was not run in iwslt14_de-en" in found["f2.bleu_5of6"]["note"]
    assert found["abs.performance"]["verdict"] == "not run"


def test_nothing_run_is_said_everywhere(tmp_path):
    (tmp_path / "metrics.csv").write_text("paper,experiment,method,seed,metric,group,split,value,n,signature,run\n")
    definition = fake_translation.definition_of()
    for item in FIGURES:
        assert draw(definition, item, tmp_path)[1] == "Not run.", item
    found = verdicts_of(definition, read_results(tmp_path))
    assert {row["verdict"] for row in found.values()} == {"not run"}
    assert all(row["note"] for row in found.values())


def test_no_data_set_at_all_is_said(tmp_path):
    definition = fake_translation.definition_of(left_out=tuple(fake_translation.definition_of()["settings"]))
    for item in FIGURES:
        assert draw(definition, item, tmp_path)[1] == "Not run.", item


def test_verdicts(bias):
    found = verdicts_of(bias.definition, bias.results)
    assert {name.removeprefix("natural_bias.") for name in natural_bias.CLAIMS} == set(found)
    assert {name: row["verdict"] for name, row in found.items()} == dict.fromkeys(found, "reproduced")
    assert "of 6 data sets of this scale 5 must hold, on the means over seeds 6 do" in found["f3.alc_5of6"]["note"]
    assert "Multi30k De-En on newstest2014" in found["f12.ood"]["note"]


def changed(bias, tmp_path, change):
    """Verdicts where `change(rows)` was done to the metrics; arrays as they are."""
    rows = bias.results.metrics.copy()
    change(rows)
    (tmp_path / "runs").symlink_to(bias.folder / "runs")
    rows.to_csv(tmp_path / "metrics.csv", index=False)
    return {name: row["verdict"] for name, row in verdicts_of(bias.definition, read_results(tmp_path)).items()}


def worse(rows, experiments, metric, by=5.0, method="unigram", **more):
    chosen = rows["experiment"].isin(experiments) & (rows["method"] == method) & (rows["metric"] == metric)
    for column, value in more.items():
        chosen &= rows[column] == value
    assert chosen.any()
    rows.loc[chosen, "value"] -= by


def test_five_of_six_need_no_sixth(bias, tmp_path):
    found = changed(bias, tmp_path, lambda rows: worse(rows, ["iwslt14_de-en"], "bleu"))
    assert found["f2.bleu_5of6"] == "reproduced"
    assert found["f9_10.chrf"] == "reproduced"


def test_four_of_six_are_too_few(bias, tmp_path):
    found = changed(bias, tmp_path, lambda rows: worse(rows, ["iwslt14_de-en", "iwslt14_en-de"], "bleu"))
    assert found["f2.bleu_5of6"] == "not reproduced"
    assert found["abs.performance"] == "not reproduced"
    assert found["f3.alc_5of6"] == found["f7_8.wmt"] == "reproduced"


@pytest.mark.parametrize(
    ("change", "claims"),
    [
        (
            lambda rows: worse(rows, ["iwslt14_de-en", "iwslt14_en-de"], "alc_bleu", group="early"),
            {"f3.alc_5of6", "f6.alc_full", "abs.efficiency"},
        ),
        (lambda rows: worse(rows, ["iwslt14_de-en"], "alc_bleu", group="full"), {"f6.alc_full"}),
        (lambda rows: worse(rows, ["wmt14_de-en"], "alc_bleu"), {"f7_8.wmt", "abs.performance"}),
        (lambda rows: worse(rows, ["iwslt14_de-en", "afromt_en-af"], "chrf"), {"f9_10.chrf"}),
        (
            lambda rows: worse(rows, ["iwslt14_de-en"], "calibration_slope", 2.0, group="full"),
            {"f4a.slopes"},
        ),
        (
            lambda rows: worse(rows, ["iwslt14_de-en"], "calibration_slope", 2.0, "zero", group="without_bias"),
            {"f4b.zero_slope"},
        ),
        (
            lambda rows: worse(rows, ["iwslt14_de-en"], "calibration_slope", -2.0, group="without_bias"),
            {"f4b.unigram_slope"},
        ),
        (lambda rows: worse(rows, ["iwslt14_de-en"], "bleu", -5.0, "regularised_0.5_2000"), {"f11.regularise"}),
        (
            lambda rows: worse(rows, ["iwslt14_de-en"], "bleu", 5.0, "c4", split="domain.newstest2014@best"),
            {"f16.c4_ood"},
        ),
    ],
)
def test_claims_on_numbers_turn_over_alone(bias, tmp_path, change, claims):
    found = changed(bias, tmp_path, change)
    assert {name for name, verdict in found.items() if verdict != "reproduced"} == claims
    assert {found[name] for name in claims} == {"not reproduced"}


@pytest.mark.parametrize(
    ("method", "key", "change", "claims"),
    [
        ("zero", "divergence.unigram", lambda values: values + 9, {"f1.unigram_early"}),
        ("zero", "divergence.unigram", lambda values: np.linspace(1.0, 0.1, len(values)), {"f1.unigram_early"}),
        ("unigram", "curve.bleu.values", lambda values: values * 0.5, {"f5.curves", "abs.efficiency"}),
        ("unigram", "output_bias.divergence", lambda values: values + np.arange(len(values)) / 200, {"f13.divergence"}),
        ("unigram", "output_bias.norm", lambda values: values * np.linspace(1, 1.2, len(values)), {"f14.norm"}),
        ("zero", "output_bias.norm", lambda values: values * 30, {"f14.norm"}),
    ],
)
def test_claims_on_arrays_turn_over_alone(bias, tmp_path, method, key, change, claims):
    rows = bias.results.metrics
    rows.to_csv(tmp_path / "metrics.csv", index=False)
    for experiment in bias.definition["settings"]:
        for name in bias.definition["methods"]:
            for seed in (1, 2, 3):
                run = f"runs/{experiment}/{name}/seed{seed}"
                if not (bias.folder / run).exists():
                    continue
                (tmp_path / run).mkdir(parents=True)
                with np.load(bias.folder / run / "arrays.npz") as archive:
                    arrays = dict(archive)
                if name == method:
                    arrays[key] = change(arrays[key])
                np.savez(tmp_path / run / "arrays.npz", **arrays)
    found = {name: row["verdict"] for name, row in verdicts_of(bias.definition, read_results(tmp_path)).items()}
    assert {name for name, verdict in found.items() if verdict != "reproduced"} == claims


def test_latest_step_of_figure1_is_scaled():
    """2,000 of 50,000 updates are 40 of 1,000; the minimum at 40 is in time, at 41 late."""
    arrays = [np.array(values) for values in ([0, 40, 80], [3.0, 1.0, 2.0], [2.0, 3.0, 3.0], [9.0, 8.0, 7.0])]
    assert natural_bias._matched(40.0, *arrays) == (True, 0.0)
    assert not natural_bias._matched(39.0, *arrays).holds
    definition = parse_definition(json.dumps(fake_translation.definition_of()))
    assert translated.scaled(definition, "iwslt14_de-en", 2000, 50_000) == 40


def test_a_tie_is_within_one_standard_error_of_the_mean(tmp_path):
    """By hand: 30.0 and 30.2 have a standard error of 0.1; 0.1 below the better of the others is a tie."""
    definition = fake_translation.definition_of()
    rows = []
    values = {"unigram": (30.0, 30.2), "zero": (30.1, 30.3), "none": (29.0, 29.0)}
    for name, of in values.items():
        rows += [f"natural_bias,iwslt14_de-en,{name},{k},bleu,,test@best,{v},1,s,r" for k, v in enumerate(of, 1)]
    head = "paper,experiment,method,seed,metric,group,split,value,n,signature,run\n"
    (tmp_path / "metrics.csv").write_text(head + "\n".join(rows) + "\n")
    definition["settings"] = {"iwslt14_de-en": definition["settings"]["iwslt14_de-en"]}
    row = verdicts_of(definition, read_results(tmp_path))["f2.bleu_5of6"]
    assert (row["verdict"], float(row["effect"])) == ("reproduced", 0)
    assert "of 1 data set of this scale 1 must hold, on the means over seeds 1 does" in row["note"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("multi30k_de-en", "Multi30k De-En"),
        ("wmt14_en-de_bpe37k", "WMT14 En-De (bpe37k)"),
        ("synthetic_translation", "made-up pair"),
        ("synthetic_translation_bpe", "made-up pair (bpe)"),
        ("synthetic_translation_reverse", "made-up pair (reverse)"),
        ("tatoeba_eo-en", "tatoeba Eo-En"),
    ],
)
def test_corpora_as_people_write_them(name, title):
    assert corpus_title(name) == title


def test_the_page_shows_natural_bias(bias, tmp_path):
    definition = copy.deepcopy(bias.definition)
    definition["figures"] = {key: definition["figures"][key] for key in ("figure2", "figure7")}
    text = json.dumps(definition)
    stem = bias.folder / "figures" / "natural_bias"
    for item in definition["figures"]:
        arguments = [f"--definition={item_of(definition, item)}", f"--results={bias.folder}"]
        assert main(["figure", f"--item={item}", *arguments, f"--output-stem={stem / item}"]) == 0
    common = ["--definitions", text, f"--results={bias.folder}", f"--published={PUBLISHED}"]
    assert main(["claims", *common, f"--output={bias.folder / 'claims.csv'}"]) == 0
    output = bias.folder / "report" / "index.html"
    assert main(["page", *common, f"--output={output}"]) == 0
    page = output.read_text(encoding="utf-8")
    assert len(re.findall(r"<h3[^>]*>Figure .*?</h3>", page)) == 2
    # Every method in its first experiment, and the three starts in the other six.
    assert f"{3 * (12 + 3 * 6)} of {3 * (12 + 3 * 6)}" in page
    assert (read_csv(bias.folder / "claims.csv")["paper"] == "natural_bias").all()
