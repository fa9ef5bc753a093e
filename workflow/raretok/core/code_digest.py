"""The code that decides a result, as one digest: rules have it in `params`, results record it, `accept` compares it.

Modules are found by import statements, never by importing: Snakemake asks on every dry run, and torch takes seconds.
What is loaded by a name from config (a kind of corpus, a tokenizer, a model, a method's part, a paper's figures) no
import shows; it is named here, for those who load it and for the digest alike.
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

from raretok.core.errors import UserError

PACKAGE = Path(__file__).parents[1]
# Programs that an earlier process parsed, which takes a second for all; only where Snakemake has its own folder.
KEPT = PACKAGE.parents[1] / ".snakemake" / "programs"
# Modules that cannot change a number or a picture: messages, files and their checks, where and when a job
# runs, and how the config becomes a job's parameters, which are compared themselves.
IGNORED = frozenset(
    {
        "raretok",
        "raretok.__main__",
        "raretok.machine.commands",
        "raretok.core.code_digest",
        "raretok.experiments.run_code",
        "raretok.core.config_files",
        "raretok.core.config_types",
        "raretok.core.errors",
        "raretok.core.files",
        "raretok.core.tensor_files",
        "raretok.data.catalogue",
        "raretok.data.catalogue_types",
        "raretok.data.characters.prepare",
        "raretok.data.prepared_corpus",
        "raretok.data.checksums",
        "raretok.data.download.download_command",
        "raretok.data.download.file_check",
        "raretok.data.download.http_transfer",
        "raretok.data.download.unpack",
        "raretok.experiments.run_size",
        "raretok.experiments.config_types",
        "raretok.experiments.run_table",
        "raretok.machine.clock",
        "raretok.machine.device",
        "raretok.machine.gpu_locks",
        "raretok.machine.process_launcher",
        "raretok.machine.processes",
        "raretok.machine.signals",
        "raretok.training.finished_files",
        "raretok.training.train_command",
    }
)


def sources_of(module: str, ignored: frozenset[str] = IGNORED) -> list[str]:
    """Files of `module` (`raretok.training.loop`) and of all in raretok that it imports, however indirectly.

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


def model_module(name: str) -> str:
    """The module of a model by its name in a run's settings."""
    return f"raretok.models.{name}"


def tokenizer_module(name: str) -> str:
    """The module of a tokenizer by its name in config."""
    return f"raretok.data.tokenizers.{name}"


def claims_module(paper: str) -> str:
    """The module of a paper's claims that are functions; not every paper has one."""
    return f"raretok.papers.{paper}.claims"


def figures_module(paper: str) -> str:
    """The module that draws a paper's figures."""
    return f"raretok.papers.{paper}.figures"


@cache
def code_of(*modules: str) -> str:
    """sha256 of the programs in `modules` and all that they import: comments, docstrings and layout do not count."""
    return digest_of(all_sources(*modules))


def digest_of(paths: list[str]) -> str:
    """sha256 of what the files `paths` say as programs."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(_program(PACKAGE.parents[1] / path)[0].encode())
    return digest.hexdigest()


@cache
def _sources(module: str, ignored: frozenset[str]) -> tuple[str, ...]:
    found, waiting = set(), {module}
    while waiting:
        name = waiting.pop()
        # What is asked for counts, even where it is ignored in others.
        if name not in found and (name == module or name not in ignored):
            found.add(name)
            waiting |= imports_of(name)
    files = (file_of(name) for name in found if holds_code(name))
    return tuple(sorted(file.relative_to(PACKAGE.parents[1]).as_posix() for file in files))


@cache
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
    for name, parts in _program(file)[1]:
        source = importlib.util.resolve_name(name, package)
        # What is imported from a package may be a module of it.
        named |= {source, *(f"{source}.{part}" for part in parts)}
    parts = [name.split(".") for name in named if name.split(".")[0] == PACKAGE.name]
    with_packages = {".".join(names[:k]) for names in parts for k in range(1, len(names) + 1)}
    return frozenset(name for name in with_packages - {module} if file_of(name))


def holds_code(module: str) -> bool:
    """Whether more than a docstring stands in the file of `module`."""
    return bool(_program(file_of(module))[0])


@cache
def _program(file: Path) -> tuple[str, list[tuple[str, list[str]]]]:
    """A file as a program, and its imports as `_imports` gives them; kept for other processes, where that is possible.

    What is kept counts only with the checksum of the same file, Python and code of this module, and of itself.
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
    """sha256 of what `_program` made, and of all that it made it with."""
    return hashlib.sha256(b"\0".join([_maker(), text, content.encode()])).hexdigest()


@cache
def _maker() -> bytes:
    """What turns a file into a program: this Python and this module."""
    return sys.version.encode() + Path(__file__).read_bytes()


class _Unparser(ast._Unparser):
    """`ast.unparse`, whose f-strings have the quotes of Python 3.11 in later ones, too: one digest on every machine."""

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
    """What a program imports: a module, relative ones with their dots, and the names taken from it."""
    found = []
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(("." * node.level + (node.module or ""), [alias.name for alias in node.names]))
    return found


def _parse(text: bytes, file: Path) -> ast.Module:
    """The program in a file with this text, without docstrings and other strings that stand alone."""
    program = ast.parse(text, str(file))
    for node in ast.walk(program):
        if isinstance(getattr(node, "body", None), list):
            node.body = [statement for statement in node.body if not _is_remark(statement)]
    return program


def _is_remark(statement: ast.stmt) -> bool:
    """Whether a statement is a string and nothing else, which does nothing."""
    value = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
