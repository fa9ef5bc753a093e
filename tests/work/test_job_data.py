"""Data prepared without Snakemake: each file once; existing files are used."""

from pathlib import Path

import pytest

from raretok.data.prepared_corpus import load_manifest
from raretok.work.job_data import provide_for_evaluation, provide_for_training


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
