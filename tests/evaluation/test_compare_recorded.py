"""Comparisons of recorded translations: made when translations are new, kept when they are not."""

import argparse
from pathlib import Path

import pytest
from tests.evaluation.test_compare_command import ONE, OTHER, prepare

from rarepapers.core.files import read_json, write_json
from rarepapers.evaluation import compare_recorded
from rarepapers.experiments import config_options, run_table

ROOT = Path(__file__).parents[2]


@pytest.fixture
def main(tmp_path, capsys):
    """Runs the command on an empty folder with references, and returns what it printed."""
    parser = argparse.ArgumentParser()
    compare_recorded.add_arguments(parser)
    arguments = parser.parse_args(
        ["--scale", "small", "--root", str(tmp_path), "--project", str(ROOT), "--data", str(tmp_path / "data")]
    )
    prepare(tmp_path, "multi30k_de-en_bpe")

    def run():
        compare_recorded.main(arguments)
        return capsys.readouterr().out

    return run


@pytest.fixture
def record(tmp_path):
    """Records a run's translations, of the settings that the config has now unless told otherwise."""
    parser = argparse.ArgumentParser()
    config_options.add_arguments(parser)
    arguments = parser.parse_args(["--scale", "small", "--root", str(tmp_path), "--project", str(ROOT)])
    table = run_table.load(config_options.config_of(arguments) | {"finished": False}, tmp_path, ROOT)

    def write(method, lines, seed=1, hash=None):
        run = table.run("translation_base", method, seed)
        folder = tmp_path / "results" / "recorded" / "small" / "runs" / run.name
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "hypotheses.json", {"test": lines})
        write_json(folder / "metrics.json", {"training": {"hash": hash or run.hash}})

    return write


def test_new_translations_are_compared_once(main, record, tmp_path):
    path = tmp_path / "results" / "recorded" / "small" / "comparisons" / "translation_base" / "seed1.json"
    record("agg_translation", ONE)
    assert main() == ""  # nothing to compare with
    record("transformer", OTHER)
    record("agg_translation", ONE, seed=2)
    assert main() == "compared the translations of translation_base, seed1\n"
    first = read_json(path)
    assert {row["baseline"] for row in first["comparisons"]} == {"transformer"}
    assert main() == ""
    record("agg_translation", OTHER)
    assert main().count("\n") == 1
    assert [row["p"] for row in read_json(path)["comparisons"]] == [1] * 4
    assert read_json(path)["hypotheses"].keys() == first["hypotheses"].keys()


def test_runs_of_other_settings_and_texts_that_are_not_here_are_left_out(main, record, tmp_path):
    record("transformer", ONE)
    record("agg_translation", OTHER, hash="0" * run_table.HASH_DIGITS)
    assert main() == ""
    record("agg_translation", OTHER)
    (tmp_path / "data" / "multi30k_de-en_bpe" / "manifest.json").unlink()
    assert main().startswith("not compared: the translations of translation_base, seed1: ")
