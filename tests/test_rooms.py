"""Imports point one way: a room imports only the rooms that its `__init__.py` lists, and there are no cycles."""

import ast
import re
from graphlib import TopologicalSorter

import pytest

from rarepapers.core.code_digest import PACKAGE, PACKAGES, file_of, imports_of

MODULES, LIBRARY = (
    [
        ".".join((name, *path.relative_to(PACKAGES[name]).with_suffix("").parts)).removesuffix(".__init__")
        for path in PACKAGES[name].rglob("*.py")
    ]
    for name in (PACKAGE.name, "raretok")
)
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def room_of(module):
    """`training` for `rarepapers.training.loop`; empty at the root."""
    return [*module.split("."), ""][1]


def may_import(room):
    """The rooms that a room's docstring lists."""
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8")))
    (listed,) = re.findall(r"^May import (.+)\.$", text, flags=re.MULTILINE)
    return set() if listed == "no other room" else set(re.split(r", | and ", listed))


def test_only_the_package_and_its_commands_are_at_the_root():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_its_docstring_lists(room):
    """Including imports inside functions."""
    known = may_import(room)
    assert known <= set(ROOMS)
    own = [module for module in MODULES if room_of(module) == room]
    found = {(module, name) for module in own for name in imports_of(module) if name not in LIBRARY}
    found = {(module, name) for module, name in found if room_of(name) not in (room, "")}
    assert {(module, name) for module, name in found if room_of(name) not in known} == set()
    assert not any(name == "rarepapers.__main__" for module in own for name in imports_of(module))


def test_the_library_imports_nothing_of_the_pipeline():
    assert {(module, name) for module in LIBRARY for name in imports_of(module) if name not in LIBRARY} == set()


def test_rooms_have_no_import_cycle():
    TopologicalSorter({room: may_import(room) for room in ROOMS}).prepare()


def test_modules_have_no_import_cycle():
    # Importing a module also imports its package, so only imports in the package's `__init__.py` matter.
    graph = {module: imports_of(module) - {module.rpartition(".")[0]} for module in MODULES + LIBRARY}
    TopologicalSorter(graph).prepare()


def test_every_package_has_a_docstring():
    folders = [module for module in MODULES + LIBRARY if file_of(module).name == "__init__.py"]
    assert [name for name in folders if not ast.get_docstring(ast.parse(file_of(name).read_text("utf-8")))] == []
