"""Data prepared without Snakemake: each file once; existing files are used."""

import shutil
from pathlib import Path

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.work.job_data import provide_for_evaluation, provide_for_training


@pytest.fixture
def table(project, table_with, monkeypatch):
    monkeypatch.chdir(project)
    return table_with(root=Path(), scale="smoke", papers=["stop_jostling", "agg", "natural_bias"])


FOLDERS = ("results/smoke/data", "resources")


@pytest.mark.parametrize(
    ("experiment", "method", "made"),
    [
        ("shakespeare", "baseline", []),
        ("language_model", "mle", ["resources/synthetic/synthetic_language/similarity.tsv"]),
        ("iwslt14_en-de", "none", ["results/smoke/data/synthetic_translation/manifest.json"]),
        ("iwslt14_de-en", "c4", ["results/smoke/counts/synthetic_translation/synthetic_documents.npy"]),
    ],
)
def test_a_run_gets_the_data_that_it_reads(table, experiment, method, made):
    run = table.run(experiment, method, 1)

    def provide():
        provide_for_training(table, run)
        provide_for_evaluation(table, run)
        return {path: path.stat().st_mtime_ns for folder in FOLDERS for path in Path(folder).rglob("*")}

    before = provide()
    corpus = load_manifest(Path(table.results, "data", run.settings["corpus"]["name"], "manifest.json"))
    assert corpus.splits["train"] > 1000
    assert all(Path(path).exists() for path in made)
    assert provide() == before
    # Locks are elsewhere, so these folders hold only data.
    assert not [path for path in before if path.suffix == ".lock"]


def test_data_of_another_definition_are_refused(table, table_with):
    def provide(table):
        run = table.run("iwslt14_en-de", "none", 1)
        provide_for_training(table, run)
        return Path(table.results, "data", run.settings["corpus"]["name"])

    reversed_ = provide(table)
    forward = Path(table.results, "data", table.corpora[reversed_.name]["reverse_of"])
    corpora = Path("config/corpora.yaml")
    content = yaml.safe_load(corpora.read_text())
    content[forward.name]["tokenizer"] = {"name": "sentencepiece", "types": 600}
    corpora.write_text(yaml.safe_dump(content, sort_keys=False))
    changed = table_with(root=Path(), scale="smoke", papers=["natural_bias"])
    for folder in (reversed_, forward):
        with pytest.raises(UserError, match=f"{folder} was made from another definition of {folder.name} than"):
            provide(changed)
        shutil.rmtree(folder)
    provide(changed)
    with pytest.raises(UserError, match=f"{reversed_} was made from another definition"):
        provide(table)
    # What the workflow has made anew since, or was copied from another machine, is used as it is.
    for folder in (reversed_, forward):
        write_json(folder / "manifest.json", read_json(folder / "manifest.json") | {"sha256": "0"})
    provide(table)
    shutil.rmtree(Path(table.results, "state"))
    provide(table)
