"""Resources that jobs request, compared with what recorded runs took and with the limits of Snakemake."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rarepapers.core.errors import UserError
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


def check_processes(limits, elsewhere, processes=4, device="cuda"):
    table = load(CONFIG | {"processes": processes, "device": device}, ROOT)
    resources.check_processes(table, limits, elsewhere)


def test_processes_need_cores_and_gpus_of_the_profile():
    enough = {"_cores": 4, "gpu": 4, "gpu_percent": 0}
    check_processes(enough, elsewhere=True)
    check_processes({}, elsewhere=True)  # without limits, Snakemake cuts nothing
    check_processes(enough | {"gpu": 1}, elsewhere=True, device="cpu")
    check_processes(enough | {"gpu": 1}, elsewhere=True, processes=1)
    with pytest.raises(
        UserError, match="processes is 4, but a job may use only gpu=1; lower `processes`, or set `cores`"
    ):
        check_processes(enough | {"gpu": 1}, elsewhere=True)
    # Snakemake 9.27 wraps the numbers.
    with pytest.raises(UserError, match="only cores=2 and gpu=1; lower"):
        check_processes({name: SimpleNamespace(value=n) for name, n in (("_cores", 2), ("gpu", 1))}, elsewhere=True)


def test_processes_need_gpus_of_this_machine():
    check_processes({"_cores": 2, "gpu_percent": 400}, elsewhere=False)
    check_processes({"_cores": 2, "gpu_percent": 0}, elsewhere=False)  # all GPUs are hidden: torch says so
    with pytest.raises(UserError, match="only gpu_percent=200; lower `processes`, or use a machine with more GPUs"):
        check_processes({"_cores": 2, "gpu_percent": 200}, elsewhere=False)
