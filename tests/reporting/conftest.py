"""Session-wide synthetic results folder; tests that change it copy what they need."""

import json
from types import SimpleNamespace

import fake_page
import fake_translation
import pytest
from fake_results import PUBLISHED, definition_of, write_results

from rarepapers.__main__ import main
from rarepapers.metrics.declared import METRICS, Metric
from rarepapers.reporting.figures import style


@pytest.fixture(scope="session", autouse=True)
def vector_graphics_alone():
    """Draw figures only as svg, which pages need; test_figures.py tests the other formats."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "METADATA", {".svg": style.METADATA[".svg"]})
        yield


@pytest.fixture(scope="session", autouse=True)
def made_up_metrics():
    """Declare the metrics of fake_table.py, of which no direction is better."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("score", "other"):
            patch.setitem(METRICS, name, Metric("made up", "", "none", {}))
        yield


@pytest.fixture(scope="session")
def scale(tmp_path_factory):
    """Folder, definition and its JSON of scale `small`, two seeds, metrics collected, and a way to run commands."""
    folder = tmp_path_factory.mktemp("results") / "small"
    definition = definition_of("small", seeds=2)
    paths = write_results(folder, definition)
    assert main(["collect", "--metrics", *map(str, paths), "--output", str(folder / "metrics.csv")]) == 0

    def table(item, stem, definition=definition, results=folder):
        return main(
            [
                "table",
                f"--item={item}",
                f"--definition={json.dumps(definition)}",
                f"--results={results}",
                f"--published={PUBLISHED}",
                f"--output-stem={stem}",
            ]
        )

    def figure(item, stem, results=folder):
        text = json.dumps(definition)
        return main(
            ["figure", f"--item={item}", f"--definition={text}", f"--results={results}", f"--output-stem={stem}"]
        )

    return SimpleNamespace(
        folder=folder,
        definition=definition,
        text=json.dumps(definition),
        paths=paths,
        table=table,
        figure=figure,
    )


@pytest.fixture(scope="session")
def figures(scale):
    """The folder with all figures, drawn once."""
    folder = scale.folder / "figures" / "stop_jostling"
    for item in scale.definition["figures"]:
        assert scale.figure(item, folder / item) == 0
    return folder


@pytest.fixture(scope="session")
def bias(tmp_path_factory):
    """Folder, definition and results of every experiment of natural_bias, three seeds."""
    folder = tmp_path_factory.mktemp("natural_bias") / "small"
    definition = fake_translation.definition_of(seeds=3)
    results = fake_translation.collected(folder, definition)
    return SimpleNamespace(folder=folder, definition=definition, results=results)


@pytest.fixture(scope="session")
def page(scale, tmp_path_factory):
    """The report of two papers with hostile text in it."""
    return fake_page.make_page(tmp_path_factory.mktemp("page") / "small", scale)
