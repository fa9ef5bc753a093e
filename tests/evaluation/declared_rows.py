"""Rows that an evaluation must write, from the declaration of metrics."""

from collections.abc import Iterable, Mapping

from rarepapers.metrics.declared import METRICS, groups_of


def expected(kind: str, settings: Mapping, leave_out: Iterable[str] = (), domains: Iterable[str] = ()) -> set[tuple]:
    """(metric, group, split) of every declared row of a kind; the group is None where any name can be one.

    leave_out: metrics that these settings do not measure. domains: further test texts.
    """
    rows = set()
    for metric in METRICS.keys() - set(leave_out):
        if kind in METRICS[metric].measured:
            groups = groups_of(metric, kind, settings)
            for pattern in METRICS[metric].measured[kind].splits:
                named = [pattern.replace("domain.*", f"domain.{domain}") for domain in domains]
                splits = named if pattern.startswith("domain.") else [pattern]
                splits = [one.replace("*", name) for one in splits for name in ("best", "last")]
                rows |= {(metric, group, split) for split in splits for group in ([None] if groups is None else groups)}
    return rows


def found(rows: Iterable[tuple], kind: str, settings: Mapping) -> set[tuple]:
    """The rows of an evaluation as `expected` has them; an undeclared metric keeps its groups."""
    return {
        (metric, None if metric in METRICS and groups_of(metric, kind, settings) is None else group, split)
        for metric, group, split in rows
    }
