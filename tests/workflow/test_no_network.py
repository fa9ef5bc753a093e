"""Scale `small` without network: from the data mirror to the report, in a network namespace without routes.

All texts of all papers are taken, prepared, counted and aligned, and of each kind of model one is trained for some
updates, evaluated and reported on. Needs a mirror: `RARETOK_MIRROR`, or `shared/mirror` beside the project's folder;
and the right to make a network namespace (root, or user namespaces).
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.workflow.conftest import ROOT
from tests.workflow.running import snakemake

from rarepapers.core.config_files import merge, read_yaml
from rarepapers.experiments.run_table import load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

MIRROR = Path(os.environ.get("RARETOK_MIRROR") or ROOT.parent / "shared" / "mirror")
# Even the loopback is down. Users other than root also need a user namespace.
CUT = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
# One method of each paper, with settings that make training and evaluation short.
KEPT = {"stop_jostling": "baseline", "agg": "mle", "agps": "translator", "natural_bias": "c4", "cross": "mle"}
UPDATES = {"steps": 4, "schedule": {"warmup": 1}}
SHORT = {
    "shakespeare": {"training": UPDATES | {"validation": {"every": 2, "batches": 1}}},
    "empirical": {"training": UPDATES | {"validation": {"every": 2, "tokens": 1024}}},
    "agps_translation_base": {
        "training": UPDATES | {"validation": {"every": 2}, "average": 1},
        "evaluation": {"beam": 1},
    },
    "iwslt14_de-en": {
        "training": UPDATES | {"validation": {"every": 2, "bleu": {"beam": 1, "sentences": 8}}},
        "evaluation": {"domains": False, "beam": 1},
    },
    "cross_character": {"training": UPDATES | {"validation": {"every": 2, "batches": 1}}},
}
# Records every attempt of Snakemake and of all Python programs that it starts to reach another machine.
HOOK = """
import os
import sys


def note(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, (str, bytes)):
            return  # within this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        address = arguments[0]
    else:
        return
    with open(os.environ["NETWORK_LOG"], "a") as file:
        print(event, address, sys.argv[:4], file=file)


sys.addaudithook(note)
"""


def shorten(project):
    """Shorten the project's scale small; returns the corpora of the full one, by name."""
    path = project / "config" / "scales" / "small.yaml"
    config = read_yaml(project / "config" / "config.yaml") | {"scale": "small"}
    corpora = {run.settings["corpus"]["name"] for run in load(config, project).runs.values()}
    scale = read_yaml(path)
    for paper, kept in KEPT.items():
        published = read_yaml(project / "config" / "papers" / paper / "paper.yaml")
        entry = scale["papers"].setdefault(paper, {})
        entry["methods"] = {name: None for name in published["methods"] if name != kept}
        entry["experiments"] = {
            name: merge(entry.get("experiments", {}).get(name) or {}, SHORT[name]) if name in SHORT else None
            for name in published["experiments"]
        }
    scale["papers"]["cross"] |= {"seeds": 1, "candidates": 1}
    scale["papers"]["stop_jostling"]["gpt2"] = {"vocabulary": 1000, "percentile_index": 50}
    path.write_text(yaml.safe_dump(scale, sort_keys=False))
    return sorted(corpora)


def test_small_scale_needs_no_network(project, tmp_path):
    if not MIRROR.is_dir():
        pytest.skip(f"there is no data mirror {MIRROR}; name one in RARETOK_MIRROR")
    if not shutil.which("unshare") or subprocess.run([*CUT, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us make a network namespace")
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK)
    log = tmp_path / "network.txt"
    corpora = shorten(project)
    result = snakemake(
        project,
        *("--cores", "2", "--config", "scale=small", f"data_mirror={MIRROR}", "device=cpu", "--"),
        *(f"results/small/data/{corpus}/manifest.json" for corpus in corpora),
        "results/small/report/index.html",
        before=CUT,
        PYTHONPATH=str(hook),
        NETWORK_LOG=str(log),
    )
    assert result.returncode == 0, result.stdout[-5000:]
    assert not log.exists(), log.read_text()
    assert len(corpora) >= 10
    assert len(list((project / "results" / "small" / "runs").glob("*/*/*/metrics.json"))) == len(SHORT)
    page = (project / "results" / "small" / "report" / "provenance.html").read_text(encoding="utf-8")
    assert "Runs</dt><dd>1 of" in page


def test_the_hook_records_attempts(tmp_path):
    """Otherwise the test above could not fail."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    log = tmp_path / "network.txt"
    program = "import urllib.request as u\ntry:\n u.urlopen('http://127.0.0.1:9')\nexcept OSError:\n pass"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NETWORK_LOG": str(log)}
    subprocess.run(["python", "-c", program], env=environment, check=True)
    assert "socket.connect ('127.0.0.1', 9)" in log.read_text()
