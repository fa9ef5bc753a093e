"""Params of the rules `download` and `synthesise_*`: what determines a downloaded file or a synthetic text."""

from rarepapers.data import catalogue
from rarepapers.experiments.run_table import RunTable
from rarepapers.rule_inputs.per_job import per_job


@per_job
def file_entry(table: RunTable, wildcards) -> str:
    """Canonical JSON of what determines a downloaded file."""
    return catalogue.file_params(table.datasets, wildcards.dataset, wildcards.file)


@per_job
def file_sources(table: RunTable, wildcards, output) -> str:
    """URLs of that file. Snakemake does not compare them with earlier values, because they derive from an output."""
    return catalogue.file_sources(table.datasets, wildcards.dataset, wildcards.file)


@per_job
def corpus_entry(table: RunTable, wildcards) -> str:
    """JSON of what determines a corpus."""
    return catalogue.corpus_params(table.corpora, wildcards.corpus)
