"""Code digests: params that appear in no shell line, so that changed code reruns jobs.

Comments, docstrings and layout do not count (`rarepapers.core.code_digest`).
"""

import hashlib
from collections.abc import Callable

from rarepapers.core.code_digest import PACKAGE, claims_module, code_of, figures_module, file_of, tokenizer_module
from rarepapers.experiments.run_table import RunTable
from rarepapers.machine.commands import COMMANDS

# Modules that make synthetic text, by kind of corpus.
SYNTHESISE = {
    "characters": "rarepapers.data.synthetic.synthetic_characters",
    "language": "rarepapers.data.synthetic.synthetic_language",
    "translation": "rarepapers.data.synthetic.synthetic_pairs",
    "unigrams": "rarepapers.data.synthetic.synthetic_pairs",
}
PAGE_TEMPLATES = PACKAGE / "reporting" / "templates" / "page"


def command_code(command: str) -> str:
    """Digest of the code of one command."""
    return code_of(COMMANDS[command][0])


def of_command(command: str) -> Callable:
    """Digest of the code of one command, computed when a job needs it."""
    return lambda wildcards: command_code(command)


def of_encoding(table: RunTable, command: str) -> Callable:
    """Digest of the code of a command that uses the tokenizer of the job's corpus."""

    def digest(wildcards) -> str:
        corpus = table.corpora[wildcards.corpus]
        corpus = table.corpora[corpus.get("reverse_of", wildcards.corpus)]
        return code_of(COMMANDS[command][0], tokenizer_module(corpus["tokenizer"]["name"]))

    return digest


def of_synthesis(kind: str) -> str:
    """Digest of the code that makes synthetic text for a kind of corpus."""
    return code_of(SYNTHESISE[kind])


def of_figures(wildcards) -> str:
    """Digest of the code that draws a paper's figures."""
    return code_of(COMMANDS["figure"][0], figures_module(wildcards.paper))


def of_claims(table: RunTable) -> str:
    """Digest of the code that judges claims, including the functions of every paper."""
    return code_of(COMMANDS["claims"][0], *filter(file_of, map(claims_module, table.papers)))


def of_pages(wildcards) -> str:
    """Digest of the code and templates of the pages."""
    templates = b"".join(path.read_bytes() for path in sorted(PAGE_TEMPLATES.iterdir()))
    return command_code("page") + hashlib.sha256(templates).hexdigest()
