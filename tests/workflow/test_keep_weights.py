"""`keep_weights: false`: weights are deleted once no job needs them."""

import pytest
import yaml
from tests.workflow.running import snakemake

RUNS = ("baseline", "twin")
METRICS = [f"results/smoke/runs/shakespeare/{run}/seed1/metrics.json" for run in RUNS]
DROPPING = ("--cores", "2", "--config", "keep_weights=false", "--", *METRICS)


@pytest.fixture
def twins(project):
    """A project with a second method that has the baseline's settings and copies its training."""
    path = project / "config/papers/stop_jostling/paper.yaml"
    paper = yaml.safe_load(path.read_text())
    paper["methods"]["twin"] = {"label": "Twin"}
    path.write_text(yaml.safe_dump(paper))
    return project


def test_weights_are_deleted_after_copy_and_evaluation(twins):
    done = snakemake(twins, *DROPPING)
    assert done.returncode == 0, done.stdout
    assert all((twins / path).exists() for path in METRICS)
    # In the run's folder and in the state folder, which has links for a job whose end Snakemake missed.
    assert not list(twins.glob("results/**/*.safetensors"))
    assert "Nothing to be done" in snakemake(twins, *DROPPING).stdout
    (twins / METRICS[1]).unlink()
    plan = snakemake(twins, "--dry-run", *DROPPING).stdout.split()
    assert plan[plan.index("train") + 1] == "2"
