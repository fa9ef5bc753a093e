"""The public names of `raretok`: complete, documented, typed, and imported without torch until used."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import raretok

PACKAGE = Path(raretok.__file__).parent
MODULES = ("losses", "log_probs", "patching", "frequency", "public_metrics")


def parameters_of(value):
    """Parameters of a public object and of its public methods, each with the docstring that must name it."""
    if inspect.isclass(value) and issubclass(value, Warning):
        return []
    if not inspect.isclass(value):
        return [(name, value.__doc__) for name in inspect.signature(value).parameters]
    found = [(name, value.__doc__) for name in inspect.signature(value).parameters]
    for name, method in vars(value).items():
        if not name.startswith("_") and inspect.isfunction(method) and "Args:" in (method.__doc__ or ""):
            found += [(p, method.__doc__) for p in inspect.signature(method).parameters if p != "self"]
    return found


@pytest.mark.parametrize("name", raretok.__all__)
def test_a_public_name_has_its_parameters_described(name):
    value = getattr(raretok, name)
    assert value.__doc__
    for parameter, text in parameters_of(value):
        # `share: of the types`, or `first, second: ids`.
        assert re.search(rf"^ +(\w+, )*{parameter}(, \w+)*: ", text, flags=re.MULTILINE), parameter


@pytest.mark.parametrize("name", raretok.__all__)
def test_public_methods_have_docstrings(name):
    value = getattr(raretok, name)
    methods = [m for key, m in vars(value).items() if not key.startswith("_") and inspect.isfunction(m)]
    assert all(method.__doc__ for method in methods if inspect.isclass(value))


def test_stub_modules_and_package_have_the_same_names():
    stub = (PACKAGE / "__init__.pyi").read_text()
    imported = re.findall(r"^from raretok\.([\w.]+) import (\w+) as (\w+)$", stub, flags=re.MULTILINE)
    assert all(name == shown for _, name, shown in imported)
    offered = {(module, name) for module, names in raretok._OFFERS.items() for name in names}
    assert {(module, name) for module, name, _ in imported} == offered
    for module in MODULES:
        assert {name for home, name in offered if home == module} == set(
            __import__(f"raretok.{module}", fromlist=["__all__"]).__all__
        )
    assert (PACKAGE / "py.typed").exists()
    assert set(raretok.__all__) <= set(dir(raretok))


def test_the_package_imports_nothing_and_the_losses_only_their_requirements():
    code = """
import sys, raretok
assert not {"torch", "numpy"} & set(sys.modules)
try:
    raretok.Treshold
except AttributeError as error:
    assert "Treshold" in str(error)
else:
    raise SystemExit("a name that is not there was found")
from raretok import *
assert "torch" in sys.modules
heavy = {"snakemake", "pandas", "yaml", "matplotlib", "tokenizers", "sacrebleu", "requests", "scipy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
