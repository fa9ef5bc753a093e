"""Functions of the run table and a job, as Snakemake takes them."""

from collections.abc import Callable
from functools import partial, wraps


def per_job(function: Callable) -> Callable:
    """`function(table, wildcards, ...)`; in a rule, `function(table)` is what Snakemake calls for each job."""

    @wraps(function)
    def bound(table, *job, **others):
        return function(table, *job, **others) if job else partial(function, table)

    return bound
