"""Jobs that Snakemake is about to run, for the checks at the start of the workflow."""

from collections import defaultdict

from rarepapers.data.catalogue import Wanted, find_file
from rarepapers.experiments.run_table import Run, RunTable


def jobs_to_run(dag) -> dict[str, list]:
    """The unfinished jobs of Snakemake's graph by rule; dag: `workflow.dag`, complete when the hooks run."""
    jobs = defaultdict(list)
    for job in dag.needrun_jobs():
        jobs[job.rule.name].append(job)
    return jobs


def runs_to_train(table: RunTable, jobs: dict[str, list]) -> list[Run]:
    """The runs that these jobs train, sorted by name."""
    wildcards = (job.wildcards for job in jobs["train"])
    return sorted((table.run(one.experiment, one.method, one.seed) for one in wildcards), key=lambda run: run.name)


def files_to_get(table: RunTable, jobs: dict[str, list]) -> list[Wanted]:
    """The files that these jobs download, or take from the data mirror."""
    return [find_file(table.datasets, job.wildcards.dataset, job.wildcards.file) for job in jobs["download"]]
