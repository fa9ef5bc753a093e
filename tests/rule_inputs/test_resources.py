"""Resources that jobs request, compared with what recorded runs took and with the limits of Snakemake."""

from pathlib import Path

import yaml

from rarepapers.core.files import read_json
from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs import resources

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))


def test_no_recorded_training_took_more_memory_than_its_job_requests():
    table = load(CONFIG | {"scale": "small", "recorded": True}, ROOT)
    taken = 0
    for run in table.runs.values():
        path = ROOT / table.folder(run) / "metrics.json"
        training = read_json(path)["training"] if path.exists() else {}
        # The memory of a GPU is not requested, and the files of a copied run have the memory of the other.
        if training.get("device", "").startswith("CPU") and "same_as" not in training:
            taken += 1
            peak = training["peak_memory_gib"] * 1024
            assert peak < resources.run_megabytes(table, run, attempt=1), run.name
    assert taken
