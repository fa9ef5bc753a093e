"""A new corpus needs no more than the three blocks of docs/data.md: a run is trained and evaluated on it."""

import hashlib
import random
import re
import zipfile

import pytest
import yaml
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

from rarepapers.core.config_files import merge
from rarepapers.core.files import read_json

LINES = {"train.txt": 1200, "valid.txt": 300, "test.txt": 300}
METRICS = "results/smoke/runs/language_model/agg/seed1/metrics.json"


def lines(generator, number):
    """Sentences of words with Zipfian frequencies."""
    words = [f"w{rank}" for rank in range(1, 800)]
    weights = [1 / rank for rank in range(1, 800)]
    return [" ".join(generator.choices(words, weights, k=generator.randint(5, 40))) for _ in range(number)]


@pytest.fixture
def extended(project, tmp_path_factory):
    """The project with the corpus of the page, and a mirror with its archive."""
    page = (ROOT / "docs/data.md").read_text(encoding="utf-8").partition("## Adding a data set")[2]
    dataset, corpus, scale = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    mirror, generator = tmp_path_factory.mktemp("mirror"), random.Random(0)
    with zipfile.ZipFile(mirror / "my_text.zip", "w") as archive:
        for name, number in LINES.items():
            archive.writestr(name, "\n".join(lines(generator, number)) + "\n")
    content = (mirror / "my_text.zip").read_bytes()
    dataset = dataset.replace("size: 100000", f"size: {len(content)}")
    dataset = dataset.replace("0" * 64, hashlib.sha256(content).hexdigest())
    for name, entry in (("datasets", dataset), ("corpora", corpus)):
        with (project / f"config/{name}.yaml").open("a", encoding="utf-8") as file:
            file.write(f"\n{entry}")
    path = project / "config/scales/smoke.yaml"
    settings = merge(yaml.safe_load(path.read_text(encoding="utf-8")), yaml.safe_load(scale))
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return project, mirror


@pytest.mark.timeout(300)
def test_a_run_is_trained_and_evaluated_on_it(extended):
    project, mirror = extended
    arguments = ("--cores", "2", METRICS, "--config", f"data_mirror={mirror}", "papers=[agg]")
    done = snakemake(project, *arguments)
    assert done.returncode == 0, done.stdout[-5000:]
    measured = read_json(project / METRICS)
    manifest = read_json(project / "results/smoke/data/my_corpus/manifest.json")
    assert measured["training"]["data"] == manifest["sha256"]
    groups = {row["group"]: row["value"] for row in measured["metrics"] if row["metric"] == "perplexity"}
    assert groups["freq"] < groups["rare"]
