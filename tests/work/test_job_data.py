"""Data prepared without Snakemake: each file once; existing files are used."""

from pathlib import Path

import pytest
import yaml

from raretok.core.files import read_json, write_json
from raretok.data.prepared_corpus import load_manifest
from raretok.experiments.trained_runs import code_that_trains
from raretok.machine.commands import main
from raretok.rule_inputs.accept import other_training
from raretok.rule_inputs.train import outside_counts
from raretok.training.finished_files import FILES
from raretok.work.job_data import provide_for_evaluation, provide_for_training


@pytest.fixture
def table(project, table_with, monkeypatch):
    monkeypatch.chdir(project)
    return smoke(table_with)


def smoke(table_with):
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


def change(corpus, **parts):
    """Change parts of a corpus's entry in config/corpora.yaml."""
    path = Path("config/corpora.yaml")
    corpora = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(corpora | {corpus: corpora[corpus] | parts}, sort_keys=False))


def checksum(table, corpus):
    return load_manifest(Path(table.results, "data", corpus, "manifest.json")).sha256


@pytest.mark.parametrize(
    ("experiment", "method", "part", "value"),
    [
        ("shakespeare", "baseline", "synthetic", {"name": "characters", "seed": 2, "length": 60000}),
        ("shakespeare", "baseline", "splits", {"train": 0.8, "valid": 0.2}),
        ("iwslt14_de-en", "c4", "tokenizer", {"name": "sentencepiece", "types": 600}),
        ("iwslt14_en-de", "none", "tokenizer", {"name": "sentencepiece", "types": 600}),
    ],
)
def test_data_of_another_definition_are_made_again(table, table_with, experiment, method, part, value):
    run = table.run(experiment, method, 1)
    corpus = run.settings["corpus"]["name"]
    provide_for_training(table, run)
    before = checksum(table, corpus)
    change(table.corpora[corpus].get("reverse_of", corpus), **{part: value})
    table = smoke(table_with)
    run = table.run(experiment, method, 1)
    provide_for_training(table, run)
    assert checksum(table, corpus) != before
    assert all(Path(path).exists() for path in outside_counts(table, run))
    files = {path: path.stat().st_mtime_ns for folder in FOLDERS for path in Path(folder).rglob("*")}
    provide_for_training(table, run)
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_data_without_a_definition_stay_and_those_of_another_are_refused(table, table_with, capsys):
    run = table.run("shakespeare", "baseline", 1)
    provide_for_training(table, run)
    manifest = Path(table.results, "data", run.settings["corpus"]["name"], "manifest.json")
    content = read_json(manifest)
    change(run.settings["corpus"]["name"], splits={"train": 0.8, "valid": 0.2})
    run = smoke(table_with).run("shakespeare", "baseline", 1)
    arguments = ["train", "--run", run.json(), "--manifest", str(manifest), "--output", "out", "--state", "state"]
    assert main([*arguments, "--device", "cpu"]) == 2
    reason = "is of a corpus with another definition (splits)"
    assert reason in capsys.readouterr().err
    folder = Path("finished")
    folder.mkdir()
    for name in FILES:
        (folder / name).touch()
    record = {"hash": run.hash, "sources": code_that_trains(run), "data": content["sha256"]}
    assert reason in other_training(smoke(table_with), run, record, folder)
    write_json(manifest, {key: value for key, value in content.items() if key != "definition"})
    assert other_training(smoke(table_with), run, record, folder) == ""
    before = manifest.read_bytes()
    provide_for_training(smoke(table_with), run)
    assert manifest.read_bytes() == before
