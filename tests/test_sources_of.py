"""The files that a job's result depends on: all that Python loads, and what functions import later."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from raretok import wiring
from raretok.errors import UserError
from raretok.sources import IGNORED, file_of, holds_code, sources_of

ROOT = Path(__file__).parents[1]
MODULES = {
    "collect_sources": "raretok.reporting.collect",
    "table_sources": "raretok.reporting.tables",
    "claims_sources": "raretok.reporting.claims",
    "page_sources": "raretok.reporting.page",
    "evaluation_sources": "raretok.evaluation.command",
    "gpt2_sources": "raretok.evaluation.margins",
}
LISTED = "import sys, {}; print(*(name for name in sys.modules if name.split('.')[0] == 'raretok'))"


@cache
def loaded(module):
    """Modules of the package that Python has after importing this."""
    command = [sys.executable, "-c", LISTED.format(module)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "workflow")
    return set(run.stdout.split())


def paths(modules):
    return {file_of(name).relative_to(ROOT).as_posix() for name in modules if holds_code(name)}


def short(files):
    return {path.removeprefix("workflow/raretok/").removesuffix(".py") for path in files}


@pytest.fixture(scope="module")
def table():
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    return wiring.load(config | {"scale": "paper", "seeds": 1}, ROOT)


@pytest.mark.parametrize("module", ["raretok.training.loop", "raretok.reporting.figure", *MODULES.values()])
def test_all_that_is_loaded_is_listed(module):
    assert paths(loaded(module)) <= set(sources_of(module, frozenset()))


def test_nothing_but_the_ignored_is_left_out(table):
    for name, module in MODULES.items():
        assert paths(loaded(module) - IGNORED) <= set(getattr(table, name))


def test_imports_inside_functions_and_of_modules_from_packages_count():
    assert "evaluation/thresholds" in short(sources_of("raretok.reporting.claims"))
    assert {"training/loop", "data/batches"} <= short(sources_of("raretok.training.command", frozenset()))
    assert "reporting/figures/schematic" in short(sources_of("raretok.reporting.figures.stop_jostling"))


def test_packages_passed_through_count_where_they_hold_code():
    files = short(sources_of("raretok.models.gpt2"))
    assert "models/__init__" in files
    assert "models/decoder" in files  # the package imports it
    assert "evaluation/__init__" not in short(sources_of("raretok.evaluation.margins"))


def test_what_is_ignored_is_not_followed():
    everything = short(sources_of("raretok.data.corpora", frozenset()))
    assert {"data/catalogue", "configuration", "errors", "files", "__init__"} <= everything
    ignored = frozenset({"raretok", "raretok.data.catalogue", "raretok.errors", "raretok.files"})
    assert short(sources_of("raretok.data.corpora", ignored)) == {"data/corpora"}  # catalogue imports configuration


def test_ignored_modules_exist():
    assert all(file_of(module) for module in IGNORED)


def test_an_unknown_module_is_one_sentence():
    with pytest.raises(UserError, match="reporting/figures/unknown"):
        sources_of("raretok.reporting.figures.unknown")


def test_a_figure_depends_on_its_papers_module(table):
    files = table.figure_sources_of(SimpleNamespace(paper="stop_jostling", item="figure1"))
    assert files == sorted(set(files))
    assert paths(loaded("raretok.reporting.figures.stop_jostling") - IGNORED) <= set(files)
    assert {"reporting/figure", "reporting/collect", "reporting/definition", "data/counts"} <= short(files)


def test_training_depends_on_its_own_parts_and_on_no_report(table):
    def files(method):
        wildcards = SimpleNamespace(experiment="shakespeare", method=method, seed="1")
        return short(table.training_sources_of(wildcards))

    threshold, softminus = files("threshold_m2"), files("softminus_m2")
    assert {"methods/threshold", "methods/separated", "training/optimiser"} <= threshold
    assert threshold - softminus == {"methods/threshold"}
    assert not any(name.startswith(("reporting", "evaluation")) for name in threshold)
    assert not {"errors", "files", "wiring", "runs", "training/device", "data/catalogue"} & threshold
    assert not any(name.startswith(("reporting", "training")) for name in short(table.evaluation_sources))


@pytest.mark.parametrize("name", MODULES)
def test_every_file_exists(table, name):
    assert all((ROOT / path).is_file() for path in getattr(table, name))
