"""Environments and container recipes are made from the pins, and hold what the rules that use them import.

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

from raretok.core.code_digest import PACKAGE, file_of, imports_of
from raretok.machine.commands import COMMANDS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "envs"))
import conda  # noqa: E402

# What a command loads by a name from config, which no import shows.
BY_NAME = {
    "encode": ["data/tokenizers"],
    "encode-pairs": ["data/tokenizers"],
    "count-unigrams": ["data/tokenizers"],
    "train": ["methods", "models", "training", "data/tokenizers"],
    "evaluate": ["methods", "models", "evaluation", "data/tokenizers"],
    "figure": ["papers"],
    "claims": ["papers"],
}
PINS = dict(pin.split("==") for pin in conda.pins((ROOT / "envs/requirements.txt").read_text()))


def rules():
    """(command, environment) of every rule."""
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        # Also rules without a name of their own, which are made in a loop.
        for block in re.split(r"^ *rule(?: \w+)?:\n", path.read_text(), flags=re.MULTILINE)[1:]:
            (environment,) = re.findall(r'conda:\n +"\.\./\.\./envs/(\w+)\.yaml"$', block, flags=re.MULTILINE)
            (command,) = re.findall(r"python -m raretok ([\w-]+)", block)
            yield command, environment


def imported(command):
    """Packages that a command imports, in functions too, as they are distributed."""
    waiting = {COMMANDS[command][0]}
    for folder in BY_NAME.get(command, []):
        paths = [path.relative_to(PACKAGE).with_suffix("") for path in (PACKAGE / folder).rglob("*.py")]
        waiting |= {".".join(("raretok", *path.parts)) for path in paths if path.stem != "__init__"}
    return distributions_in(map(file_of, reached(waiting)))


def reached(waiting):
    """Modules of raretok that some modules import, however indirectly, and those themselves."""
    modules, waiting = set(), set(waiting)
    while waiting:
        module = waiting.pop()
        modules.add(module)
        waiting |= imports_of(module) - modules
    return modules


def distributions_in(files):
    """Packages that Python files import, as they are distributed, under their normal names."""
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    names = found - sys.stdlib_module_names - {"raretok"}
    return {conda.normal(name) for module in names for name in distributions.get(module, [module])}


def pinned(environment):
    text = (ROOT / "envs" / f"{environment}.yaml").read_text()
    return dict(re.findall(r"^      - (\S+?)==(\S+)$", text, flags=re.MULTILINE))


def test_files_are_what_the_pins_make():
    for name, content in conda.environments().items():
        assert (ROOT / "envs" / name).read_text() == content, f"write envs/{name} anew: python envs/conda.py"


@pytest.mark.parametrize("environment", [*conda.NEEDS, "raretok"])
def test_versions_are_the_pins(environment):
    versions = pinned(environment)
    assert versions
    assert versions.items() <= PINS.items()
    assert f"  - python={conda.PYTHON}\n" in (ROOT / "envs" / f"{environment}.yaml").read_text()
    if environment == "raretok":
        assert versions == PINS


@pytest.mark.parametrize(("command", "environment"), list(rules()))
def test_a_rules_environment_has_what_its_command_imports(command, environment):
    assert imported(command) <= {conda.normal(name) for name in pinned(environment)}


def test_every_need_has_a_rule_and_no_more_than_it_takes():
    used = {}
    for command, environment in rules():
        used.setdefault(environment, set()).update(imported(command))
    assert set(used) == set(conda.NEEDS)
    for environment, names in used.items():
        assert {conda.normal(name) for name in conda.NEEDS[environment]} == names
    assert "torch" not in pinned("report") | pinned("data") | pinned("align")


@pytest.mark.parametrize(("name", "base"), [("Containerfile", "FROM python:"), ("raretok.def", "From: python:")])
def test_containers_install_the_pins(name, base):
    text = (ROOT / "envs" / name).read_text()
    assert f"\n{base}{conda.PYTHON}-slim\n" in text
    assert re.search(r"envs/requirements\.txt /opt/requirements\.txt$", text, flags=re.MULTILINE)
    assert "pip install --no-cache-dir --requirement /opt/requirements.txt" in text
    assert text.count("pip install") == 1


def test_a_report_is_not_made_with_an_environment_that_is_out_of_date(tmp_path):
    """`envs/run.sh` takes .venv by its stamp; here the set-up of .venv-report ends early, for want of a Python."""
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    stamp = tmp_path / ".venv" / "complete-run"
    stamp.parent.mkdir()
    stamp.write_text("the key of other pins\n")
    command = ["sh", "envs/setup.sh", "report"]
    result = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHON": "no-such-python"}, capture_output=True)
    assert (result.returncode, b"no-such-python was not found" in result.stderr) == (1, True)
    assert not stamp.exists()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def asked_for(requirements):
    """Normal names in a list of requirements."""
    return {conda.normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}


def test_the_library_needs_what_it_asks_for():
    """What `from raretok import ...` reaches, and what the pipeline needs beyond it."""
    own = asked_for(PROJECT["dependencies"])
    public = reached({"raretok.library.losses", "raretok.library.frequency", "raretok.library.metrics"})
    assert distributions_in(map(file_of, public)) == own
    pipeline = own | asked_for(PROJECT["optional-dependencies"]["pipeline"])
    assert distributions_in(PACKAGE.rglob("*.py")) <= pipeline
    assert pipeline <= {conda.normal(name) for name in PINS}


def test_versions_agree():
    import raretok

    assert PROJECT["version"] == raretok.__version__
    assert f"\nversion: {raretok.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
