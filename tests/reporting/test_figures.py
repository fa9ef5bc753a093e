"""Figures: files, determinism, what they say."""

import re
import shutil

import numpy as np
import pytest
from fake_results import item_of

from raretok.__main__ import main
from raretok.reporting.figures.stop_jostling import _example

ITEMS = [f"figure{k}" for k in range(1, 9)]


@pytest.mark.parametrize("item", ITEMS)
def test_every_format_is_written_and_names_the_scale(figures, item):
    assert (figures / f"{item}.png").read_bytes().startswith(b"\x89PNG")
    assert (figures / f"{item}.pdf").read_bytes().startswith(b"%PDF")
    svg = (figures / f"{item}.svg").read_text()
    title = re.search(r"<dc:title>(.*?)</dc:title>", svg)[1]
    assert title.startswith(f"Stop Jostling (Turumtaev 2025): Figure {item[-1]}. ")
    assert "small scale, real data" in title


def test_the_same_bytes_again(scale, figures, tmp_path):
    assert scale.figure("figure8", tmp_path / "figure8") == 0
    for suffix in ("svg", "png", "pdf"):
        assert (tmp_path / f"figure8.{suffix}").read_bytes() == (figures / f"figure8.{suffix}").read_bytes()


def test_figure4_says_which_position_it_shows(figures):
    assert "position 3 of 16: the first at which both models rank" in (figures / "figure4.svg").read_text()


def test_rule_of_the_position():
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


@pytest.mark.parametrize("item", ["figure2", "figure4", "figure5"])
def test_missing_runs_are_said(scale, item, tmp_path):
    shutil.copy(scale.folder / "metrics.csv", tmp_path)
    assert scale.figure(item, tmp_path / item, tmp_path) == 0
    assert "Not run." in (tmp_path / f"{item}.svg").read_text()


def test_partly_missing_runs_draw_the_rest(scale, tmp_path):
    shutil.copy(scale.folder / "metrics.csv", tmp_path)
    runs = scale.folder / "runs" / "shakespeare"
    shutil.copytree(runs / "baseline", tmp_path / "runs" / "shakespeare" / "baseline")
    for item in ("figure3", "figure6", "figure7"):
        assert scale.figure(item, tmp_path / item, tmp_path) == 0


def test_an_undrawn_figure_is_one_sentence(scale, tmp_path, capsys):
    text = item_of(scale.definition, "figure1").replace('"figure1"', '"figure99"')
    arguments = ["--item=figure99", f"--definition={text}", f"--results={scale.folder}", f"--output-stem={tmp_path}/x"]
    assert main(["figure", *arguments]) == 2
    assert "no function figure99" in capsys.readouterr().err
