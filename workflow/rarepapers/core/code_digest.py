"""Digest of the code that decides a result: rules have it in `params`, results record it, `accept` compares it.

Modules are found through import statements, without importing them: Snakemake needs the digest on every dry run, and
importing torch takes seconds. Modules that are loaded by a name from the config (a kind of corpus, a tokenizer, a
model, a method's part, a paper's figures) appear in no import; their names are built here, for the code that loads
them and for the digest.
"""

import ast
import hashlib
import importlib.util
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from rarepapers.core.errors import UserError

try:
    from _ast_unparse import Unparser  # since Python 3.14
except ImportError:
    from ast import _Unparser as Unparser

PACKAGE = Path(__file__).parents[1]
# The packages of this project by name: the pipeline and its library, in library/ or installed elsewhere.
PACKAGES = {PACKAGE.name: PACKAGE, "raretok": Path(importlib.util.find_spec("raretok").origin).parent}
# Cache of parsed programs, which saves a second; used only where Snakemake's own folder exists.
KEPT = PACKAGE.parents[1] / ".snakemake" / "programs"


def sources_of(*modules: str) -> list[str]:
    """Files of `modules` (such as `rarepapers.training.loop`) and of the modules that they import, directly or not.

    Only modules of this project. Imports inside functions count. So does `__init__.py` of an enclosing package if it
    holds code. No module is left out: whatever a job can execute decides its result. Returns sorted paths that begin
    with a package's name; raises UserError if a module does not exist.
    """
    for module in modules:
        if file_of(module) is None:
            raise UserError(f"there is no module {module} ({module.replace('.', '/')}.py)")
    return sorted({path for module in modules for path in _sources(module)})


def model_module(name: str) -> str:
    """The module of a model by its name in a run's settings."""
    return f"rarepapers.models.{name}"


def tokenizer_module(name: str) -> str:
    """The module of a tokenizer by its name in config."""
    return f"rarepapers.data.tokenizers.{name}"


def claims_module(paper: str) -> str:
    """The module of a paper's claims that are functions; it may not exist."""
    return f"rarepapers.papers.{paper}.claims"


def figures_module(paper: str) -> str:
    """The module that draws a paper's figures."""
    return f"rarepapers.papers.{paper}.figures"


@cache
def code_of(*modules: str) -> str:
    """sha256 of the programs in `modules` and all their imports; comments, docstrings and layout do not count."""
    digest = hashlib.sha256()
    for path in sources_of(*modules):
        digest.update(_program(_below(path))[0].encode())
    return digest.hexdigest()


@cache
def _sources(module: str) -> tuple[str, ...]:
    found, waiting = set(), {module}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imports_of(name) - found
    names = [name for name in found if holds_code(name)]
    return tuple(file_of(name).relative_to(PACKAGES[name.split(".")[0]].parent).as_posix() for name in names)


def _below(path: str) -> Path:
    """The file of a path that begins with a package's name."""
    return PACKAGES[path.split("/")[0]].parent / path


@cache
def file_of(module: str) -> Path | None:
    """The file of a module or package of this project; None if it does not exist."""
    package, *names = module.split(".")
    if package not in PACKAGES:
        return None
    path = PACKAGES[package].joinpath(*names)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of this project that the file of `module` imports, and their packages."""
    file = file_of(module)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    named = {module}
    for name, parts in _program(file)[1]:
        source = importlib.util.resolve_name(name, package)
        # A name imported from a package may be one of its modules.
        named |= {source, *(f"{source}.{part}" for part in parts)}
    parts = [name.split(".") for name in named if name.split(".")[0] in PACKAGES]
    with_packages = {".".join(names[:k]) for names in parts for k in range(1, len(names) + 1)}
    return frozenset(name for name in with_packages - {module} if file_of(name))


def holds_code(module: str) -> bool:
    """Whether the file of `module` holds more than a docstring."""
    return bool(_program(file_of(module))[0])


@cache
def _program(file: Path) -> tuple[str, list[tuple[str, list[str]]]]:
    """A file as a program, and its imports as in `_imports`; cached for other processes if possible.

    A cache entry is valid only with the checksum of the same file, Python version, this module's code and the entry.
    """
    text = file.read_bytes()
    kept = KEPT / os.path.relpath(file, PACKAGE).replace(os.sep, ".")
    with suppress(OSError, ValueError):
        checksum, _, content = kept.read_text(encoding="utf-8").partition("\n")
        if checksum == _checksum(text, content):
            return json.loads(content)
    program = _parse(text, file)
    content = json.dumps([_Unparser().visit(program), _imports(program)])
    with suppress(OSError):
        KEPT.mkdir(exist_ok=True)
        kept.write_text(f"{_checksum(text, content)}\n{content}", encoding="utf-8")
    return json.loads(content)


def _checksum(text: bytes, content: str) -> str:
    """sha256 of a cache entry and of everything it was made from."""
    return hashlib.sha256(b"\0".join([_maker(), text, content.encode()])).hexdigest()


@cache
def _maker() -> bytes:
    """The Python version and this module's code, on which the parsed program of a file depends."""
    return sys.version.encode() + Path(__file__).read_bytes()


class _Unparser(Unparser):
    """`ast.unparse` with Python 3.11's quotes in f-strings, so that all Python versions give the same digest."""

    quotes = ("'", '"', '"""', "'''")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        start = len(self._source)
        super().visit_JoinedStr(node)
        text = "".join(self._source[start:])
        used = next(quote for quote in reversed(self.quotes) if text.startswith("f" + quote))
        inner = text[1 + len(used) : -len(used)]
        quote = next((quote for quote in self.quotes if quote not in inner), used)
        self._source[start:] = [f"f{quote}{inner}{quote}"]


def _imports(program: ast.Module) -> list[tuple[str, list[str]]]:
    """The imports of a program: each module (relative ones with their dots) and the names imported from it."""
    found = []
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(("." * node.level + (node.module or ""), [alias.name for alias in node.names]))
    return found


def _parse(text: bytes, file: Path) -> ast.Module:
    """The program in a file with this text, without docstrings and other standalone strings."""
    program = ast.parse(text, str(file))
    for node in ast.walk(program):
        if isinstance(getattr(node, "body", None), list):
            node.body = [statement for statement in node.body if not _is_remark(statement)]
    return program


def _is_remark(statement: ast.stmt) -> bool:
    """Whether a statement is a standalone string, which has no effect."""
    value = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
