"""Data sets and synthetic texts: what the rules download and synthesise write, and what determines it."""

from raretok.data import catalogue
from raretok.experiments.run_table import RunTable


def file_entry(table: RunTable, wildcards) -> str:
    """What determines a downloaded file, as canonical JSON."""
    return catalogue.file_params(table.datasets, wildcards.dataset, wildcards.file)


def file_sources(table: RunTable, wildcards, output) -> str:
    """Where that file can be had. As it derives from an output, Snakemake compares it with no earlier one."""
    return catalogue.file_sources(table.datasets, wildcards.dataset, wildcards.file)


def corpus_entry(table: RunTable, wildcards) -> str:
    """What determines a corpus, as JSON."""
    return catalogue.corpus_params(table.corpora, wildcards.corpus)
