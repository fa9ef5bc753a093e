"""Environments and container recipes: generated from the pins, with all that the rules using them import.

What pip installs with the package, with and without the pipeline, is what its modules import.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from rarepapers.core.code_digest import PACKAGE, PACKAGES, file_of, imports_of
from rarepapers.machine.commands import COMMANDS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "envs"))
import conda  # noqa: E402

# Modules that a command loads by a name in the config; imports do not show them.
BY_NAME = {
    "encode": ["data/tokenizers"],
    "encode-pairs": ["data/tokenizers"],
    "count-unigrams": ["data/tokenizers"],
    "train": ["models", "training", "data/tokenizers"],
    "evaluate": ["models", "evaluation", "data/tokenizers"],
    "figure": ["papers"],
    "claims": ["papers"],
}
PINS = dict(pin.split("==") for pin in conda.pins((ROOT / "envs/requirements.txt").read_text()))


def rules():
    """(command, environment) of every rule."""
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        # Including unnamed rules, which are created in a loop.
        for block in re.split(r"^ *rule(?: \w+)?:\n", path.read_text(), flags=re.MULTILINE)[1:]:
            (environment,) = re.findall(r'conda:\n +"\.\./\.\./envs/(\w+)\.yaml"$', block, flags=re.MULTILINE)
            (command,) = re.findall(r"python -m rarepapers ([\w-]+)", block)
            yield command, environment


def imported(command):
    """Distributions that a command imports, also inside functions."""
    waiting = {COMMANDS[command][0]}
    for folder in BY_NAME.get(command, []):
        paths = [path.relative_to(PACKAGE).with_suffix("") for path in (PACKAGE / folder).rglob("*.py")]
        waiting |= {".".join((PACKAGE.name, *path.parts)) for path in paths if path.stem != "__init__"}
    return distributions_in(map(file_of, reached(waiting)))


def reached(waiting):
    """Modules of this project that some modules import, directly or not, and those modules."""
    modules, waiting = set(), set(waiting)
    while waiting:
        module = waiting.pop()
        modules.add(module)
        waiting |= imports_of(module) - modules
    return modules


def distributions_in(files):
    """Distributions that Python files import, by normalised name."""
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    # _ast_unparse is in the standard library from Python 3.14 on.
    names = found - sys.stdlib_module_names - {*PACKAGES, "_ast_unparse"}
    return {conda.normal(name) for module in names for name in distributions.get(module, [module])}


def pinned(environment):
    text = (ROOT / "envs" / f"{environment}.yaml").read_text()
    return dict(re.findall(r"^      - (\S+?)==(\S+)$", text, flags=re.MULTILINE))


def test_environment_files_are_generated_from_the_pins():
    for name, content in conda.environments().items():
        assert (ROOT / "envs" / name).read_text() == content, f"envs/{name} is out of date; run python envs/conda.py"


@pytest.mark.parametrize("environment", [*conda.NEEDS, "raretok"])
def test_installed_versions_are_the_pinned_ones(environment):
    versions = pinned(environment)
    assert versions
    assert versions.items() <= PINS.items()
    assert f"  - python={conda.PYTHON}\n" in (ROOT / "envs" / f"{environment}.yaml").read_text()
    if environment == "raretok":
        assert versions == PINS


@pytest.mark.parametrize(("command", "environment"), list(rules()))
def test_the_environment_of_a_rule_has_what_its_command_imports(command, environment):
    assert imported(command) <= {conda.normal(name) for name in pinned(environment)}


def test_every_environment_has_a_rule_and_no_unused_packages():
    used = {}
    for command, environment in rules():
        used.setdefault(environment, set()).update(imported(command))
    assert set(used) == set(conda.NEEDS)
    for environment, names in used.items():
        assert {conda.normal(name) for name in conda.NEEDS[environment]} == names
    assert "torch" not in pinned("report") | pinned("data") | pinned("align")


@pytest.mark.parametrize(("name", "base"), [("Containerfile", "FROM "), ("raretok.def", "From: ")])
def test_containers_install_the_pins(name, base):
    text = (ROOT / "envs" / name).read_text()
    assert f"\n{base}{conda.IMAGE}\n" in text
    assert re.fullmatch(rf"python:{conda.PYTHON}-slim@sha256:[0-9a-f]{{64}}", conda.IMAGE)
    assert re.search(r"envs/requirements\.txt /opt/requirements\.txt$", text, flags=re.MULTILINE)
    assert "pip install --no-cache-dir --requirement /opt/requirements.txt" in text
    assert text.count("pip install") == 1


def test_a_report_does_not_use_an_outdated_environment(tmp_path):
    """`envs/run.sh` uses .venv if its stamp is current; here the set-up of .venv-report fails for want of a Python."""
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    stamp = tmp_path / ".venv" / "complete-run"
    stamp.parent.mkdir()
    stamp.write_text("the key of other pins\n")
    command = ["sh", "envs/setup.sh", "report"]
    result = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHON": "no-such-python"}, capture_output=True)
    assert (result.returncode, b"no-such-python was not found" in result.stderr) == (1, True)
    assert not stamp.exists()


@pytest.mark.parametrize("level", ["run", "test", "report"])
def test_an_environment_that_is_a_link_is_left_alone(tmp_path, level):
    """It may be that of another checkout."""
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    stamp = tmp_path / "other" / "complete-run"
    stamp.parent.mkdir()
    stamp.write_text("the key of another folder\n")
    (tmp_path / ".venv").symlink_to("other")
    result = subprocess.run(["sh", "envs/setup.sh", level], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("raretok: .venv is a link, and what it leads to may belong to another checkout")
    assert [path.name for path in stamp.parent.iterdir()] == ["complete-run"]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LIBRARY = tomllib.loads((ROOT / "library/pyproject.toml").read_text(encoding="utf-8"))["project"]


def asked_for(requirements):
    """Normalised names in a list of requirements."""
    return {conda.normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}


def test_the_packages_require_what_they_import():
    library, of_trainers = set(PACKAGES["raretok"].rglob("*.py")), PACKAGES["raretok"] / "hf.py"
    assert distributions_in(library - {of_trainers}) == asked_for(LIBRARY["dependencies"])
    assert distributions_in([of_trainers]) <= {"torch", *asked_for(LIBRARY["optional-dependencies"]["hf"])}
    pipeline = asked_for(PROJECT["dependencies"]) - {"raretok"}
    assert distributions_in(PACKAGE.rglob("*.py")) <= pipeline
    assert pipeline <= {conda.normal(name) for name in PINS}


def test_the_version_is_the_same_everywhere():
    import raretok

    assert PROJECT["version"] == raretok.__version__
    assert f"raretok=={raretok.__version__}" in PROJECT["dependencies"]
    assert f"\nversion: {raretok.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_package_requires_the_snakemake_that_the_workflow_does():
    (needed,) = re.findall(r'^min_version\("([\d.]+)"\)$', (ROOT / "Snakefile").read_text(), flags=re.MULTILINE)
    assert f"snakemake>={needed},<10" in PROJECT["dependencies"]
