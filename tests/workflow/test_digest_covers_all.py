"""Whatever a training or an evaluation executes is in the digest of its code: shown by mutation of every function.

The functions are those that small runs of every kind really call. Not in a digest are the modules around a command: two
pass its arguments on, to this process or to a fork server, and one names the node in the log and requeues the job;
tests/machine shows that they pass arguments unchanged.
"""

import ast
import json
import sys

import pytest
import yaml
from tests.workflow.running import snakemake

from rarepapers.core import code_digest
from rarepapers.experiments.run_table import load
from rarepapers.experiments.trained_runs import code_that_measures, code_that_trains

# Imported by every Python process at its start: which functions of the project a command calls.
SPY = """
import atexit, json, os, sys, threading
called, folders = set(), (os.sep + "rarepapers" + os.sep, os.sep + "raretok" + os.sep)

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and any(folder in code.co_filename for folder in folders):
        called.add((code.co_filename, code.co_name, code.co_firstlineno))

def write():
    if len(sys.argv) > 1 and sys.argv[1] in ("train", "evaluate"):
        with open(os.path.join(os.environ["CALLS"], f"{os.getpid()}.json"), "w") as file:
            json.dump([sys.argv[1:], sorted(called)], file)

if "CALLS" in os.environ:
    atexit.register(write)
    threading.setprofile(note)
    sys.setprofile(note)
"""
RUNS = ("shakespeare/threshold_m1_se/seed1", "language_model/agg/seed1", "translation_base/agg_translation/seed1")
AROUND = tuple(
    f"rarepapers/{name}.py" for name in ("__main__", "machine/commands", "machine/fork_server", "machine/slurm")
)
FOLDERS = ("workflow/rarepapers", "library/raretok")
DIGESTS = {"train": code_that_trains, "evaluate": code_that_measures}


@pytest.fixture
def here(project, monkeypatch):
    """The digest reads the packages of the copied project."""
    packages = {"rarepapers": project / "workflow/rarepapers", "raretok": project / "library/raretok"}
    monkeypatch.setattr(code_digest, "PACKAGES", packages)
    monkeypatch.setattr(code_digest, "PACKAGE", packages["rarepapers"])
    monkeypatch.setattr(code_digest, "KEPT", project / "none")
    forget()
    yield project
    forget()


def forget():
    for cached in ("code_of", "_sources", "file_of", "imports_of", "_program"):
        getattr(code_digest, cached).cache_clear()


def mutated(text, name, line):
    """A program with one more statement in the function that begins at a line; None for a lambda or comprehension."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == line:
                node.body.append(ast.parse("changed = True").body[0])
                return ast.unparse(tree)
    return None


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_change_of_any_function_that_a_job_calls_changes_its_digest(here, tmp_path_factory):
    hook, calls = tmp_path_factory.mktemp("hook"), tmp_path_factory.mktemp("calls")
    (hook / "sitecustomize.py").write_text(SPY)
    targets = [f"results/smoke/runs/{run}/metrics.json" for run in RUNS]
    result = snakemake(here, "--cores", 2, *targets, PYTHONPATH=str(hook), CALLS=str(calls), RARETOK_SERVERS="none")
    assert result.returncode == 0, result.stdout[-5000:]
    table = load(yaml.safe_load((here / "config/config.yaml").read_text()), here)
    seen = {}
    for path in calls.glob("*.json"):
        (command, *words), functions = json.loads(path.read_text())
        place = words[words.index("--run-folder" if command == "evaluate" else "--output") + 1]
        run = table.run(*place.removeprefix("results/smoke/runs/").replace("/seed", "/").split("/"))
        seen.setdefault((command, run.name), set()).update(map(tuple, functions))
    assert {run for command, run in seen if command == "evaluate"} == set(RUNS)
    unchanged, number = [], 0
    for (command, name), functions in seen.items():
        run = table.named(name)
        before = DIGESTS[command](run)
        for file, function, line in sorted(functions):
            path = here / file[file.index(next(folder for folder in FOLDERS if folder in file)) :]
            text = path.read_text()
            program = mutated(text, function, line)
            if program is None or file.endswith(AROUND):
                continue
            number += 1
            path.write_text(program)
            code_digest.code_of.cache_clear()
            code_digest._program.cache_clear()
            if DIGESTS[command](run) == before:
                unchanged.append((command, name, path.name, function))
            path.write_text(text)
        code_digest.code_of.cache_clear()
        code_digest._program.cache_clear()
    assert unchanged == []
    assert number > 500, sys.argv
