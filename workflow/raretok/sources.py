"""Which source files a module's results depend on, so that rules can name them as inputs.

Read from the import statements, never by importing: Snakemake asks on every dry run, and torch takes seconds.
What is loaded by a name from config (a method's part, a paper's figures) no import shows; `wiring.py` and
`reports.py` add it.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from raretok.errors import UserError

PACKAGE = Path(__file__).parent
# Modules that cannot change a number or a picture: messages, files and their checks, where and when a job
# runs, and how the config becomes a job's parameters, which are compared themselves.
IGNORED = frozenset(
    {
        "raretok",
        *(
            f"raretok.{name}"
            for name in ("__main__", "configuration", "errors", "files", "runs", "sources", "size", "wiring")
        ),
        # Data are named by their checksums in every result, however they were fetched and written.
        *(f"raretok.data.{name}" for name in ("catalogue", "checks", "corpora", "sources", "transfer", "unpack")),
        *(
            f"raretok.training.{name}"
            for name in ("clock", "command", "device", "finished", "gpus", "launch", "processes", "signals")
        ),
    }
)


def sources_of(module: str, ignored: frozenset[str] = IGNORED) -> list[str]:
    """Files of `module` (`raretok.reporting.tables`) and of all in raretok that it imports, however indirectly.

    Imports inside functions count, and so does the `__init__.py` of a package passed through, where it holds
    code. `ignored` modules are left out, and not followed. Returns sorted paths below the project's folder;
    raises UserError where there is no such module.
    """
    if file_of(module) is None:
        raise UserError(f"there is no workflow/{module.replace('.', '/')}.py")
    return list(_sources(module, ignored))


def all_sources(*modules: str) -> list[str]:
    """`sources_of` several modules, each file once."""
    return sorted({path for module in modules for path in sources_of(module)})


def training_sources(parts: Iterable[str]) -> list[str]:
    """Files that can change what a training gives, with a method made of `parts` (files of raretok/methods)."""
    return all_sources("raretok.training.loop", *(f"raretok.methods.{name}" for name in parts))


def digest_of(paths: list[str]) -> str:
    """sha256 of what `paths` say as programs: comments and layout do not count."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(_said(PACKAGE.parents[1] / path))
    return digest.hexdigest()


@cache
def _sources(module: str, ignored: frozenset[str]) -> tuple[str, ...]:
    found, waiting = set(), {module}
    while waiting:
        name = waiting.pop()
        if name not in ignored | found:
            found.add(name)
            waiting |= imports_of(name)
    files = (file_of(name) for name in found if holds_code(name))
    return tuple(sorted(file.relative_to(PACKAGE.parents[1]).as_posix() for file in files))


def file_of(module: str) -> Path | None:
    """The file of a module or package of raretok, or None where there is none."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of raretok that the file of `module` names in its imports, and the packages that they are in."""
    file = file_of(module)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    named = {module}
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            # What is imported from a package may be a module of it.
            named |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    parts = [name.split(".") for name in named if name.split(".")[0] == PACKAGE.name]
    with_packages = {".".join(names[:k]) for names in parts for k in range(1, len(names) + 1)}
    return frozenset(name for name in with_packages - {module} if file_of(name))


def holds_code(module: str) -> bool:
    """Whether more than a docstring stands in the file of `module`."""
    return any(not isinstance(node, ast.Expr) for node in _parse(file_of(module)).body)


@cache
def _said(file: Path) -> bytes:
    """A file as a program."""
    return ast.unparse(_parse(file)).encode()


@cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))
