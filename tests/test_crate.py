"""`make crate`: what a Workflow Run RO-Crate must say, and errors in one sentence."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = "runs/shakespeare/baseline/seed1/metrics.json"


def crate(results, output):
    """Run the script in a process of its own."""
    command = [sys.executable, ROOT / "envs/crate.py", results, output]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_crate_names_the_workflow_its_inputs_and_its_results(tmp_path):
    pytest.importorskip("rocrate")
    results = tmp_path / "smoke"
    for name, text in {RUN: json.dumps({"training": {"commit": "abc"}}), "claims.csv": "a\n", "model.bin": "w"}.items():
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(text)
    done = crate(results, tmp_path / "crate.zip")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "crate.zip") as archive:
        entities = {one["@id"]: one for one in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}
        packed = set(archive.namelist())
    root, action = entities["./"], entities["#run"]
    assert root["mainEntity"] == action["instrument"] == {"@id": "Snakefile"}
    assert "ComputationalWorkflow" in entities["Snakefile"]["@type"]
    assert root["mentions"] == {"@id": "#run"}
    assert action["@type"] == "CreateAction"
    assert {one["@id"] for one in action["result"]} == {f"results/{RUN}", "results/claims.csv"}
    used = {one["@id"] for one in action["object"]}
    assert {"config/config.yaml", "workflow/rules/train.smk", "config/papers/agg/paper.yaml"} <= used
    assert packed == used | {"Snakefile", "ro-crate-metadata.json", f"results/{RUN}", "results/claims.csv"}
    assert "abc" in action["description"]
    profiles = [one["@id"] for one in root["conformsTo"]]
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles
    assert all(entities[name]["@type"] == "CreativeWork" for name in profiles if "/wfrun/" in name)


def test_without_results_there_is_one_sentence(tmp_path):
    pytest.importorskip("rocrate")
    done = crate(tmp_path, tmp_path / "crate.zip")
    assert done.returncode == 1
    assert done.stderr == f"raretok: {tmp_path} holds no evaluated run; run the workflow at that scale first\n"


def test_without_the_package_a_sentence_says_how_to_get_it(tmp_path):
    code = f"import sys; sys.modules['rocrate'] = None; sys.path.insert(0, {str(ROOT / 'envs')!r}); import crate\n"
    code += "from pathlib import Path; print(crate.main(Path('a'), Path('b')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("the package rocrate is not installed; type: ")
